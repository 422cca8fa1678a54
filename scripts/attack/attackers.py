"""The attacks of `scripts.attack.fairness`. Each runs in its own processes, over loopback, until it is
stopped or its time ends."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import secrets
import selectors
import socket
import struct
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from urllib.parse import urlsplit

import httpx

from scripts.attack.world import RepositoryOwner
from tests.localstore.core.updates import encode, inserted
from tests.relay.auth.people import Browser
from tests.relay.histories import Files, Repository, ok

GUESTS = 12
PROPOSALS = 12
BLOCK = 1 << 18  # bytes that an attacker writes at once
Work = Callable[[str, str, float, int, Event, Event], None]


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack. Each of its processes calls `work(url, source, seconds, number, stop, begun)`, with the
    process's `number`. The call attacks the relay at `url` from the address `source` for `seconds`, or until
    `stop` is set. `warm_up`: seconds to wait before the measurement; None to wait until the attack has
    prepared itself and sets `begun`."""

    work: Work
    processes: int = 1
    warm_up: float | None = 1.0


class Flood:
    """Connections from the address `source` that write the bytes that `more` returns, and discard what they
    receive. `reads`: whether they read at all. `reopen`: whether connections that end are replaced."""

    def __init__(self, url: str, source: str, *, reads: bool = True, reopen: bool = True) -> None:
        at = urlsplit(url)
        self._to = (at.hostname or "", at.port or 0)
        self._source, self._reads, self._reopen = source, reads, reopen
        self._selector = selectors.DefaultSelector()

    def run(self, count: int, opening: Callable[[], bytes], more: Callable[[], bytes], until: Until) -> None:
        for _ in range(count):
            with contextlib.suppress(OSError):
                self._open(opening)
        while until.goes_on() and (self._selector.get_map() or self._reopen):
            ready = self._selector.select(0.1)
            for key, events in ready:
                one, waiting = key.fileobj, key.data
                assert isinstance(one, socket.socket)  # nothing else was registered
                try:
                    if events & selectors.EVENT_READ and self._reads and not one.recv(BLOCK):
                        raise ConnectionError("closed")
                    if events & selectors.EVENT_WRITE:
                        if not waiting:
                            waiting += more()
                        del waiting[: one.send(waiting)]
                except BlockingIOError:
                    continue
                except OSError:
                    self._selector.unregister(one)
                    one.close()
                    if self._reopen:
                        time.sleep(0.01)
                        with contextlib.suppress(OSError):
                            self._open(opening)

    def _open(self, opening: Callable[[], bytes]) -> None:
        one = socket.create_connection(self._to, timeout=5, source_address=(self._source, 0))
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one.setblocking(False)
        events = selectors.EVENT_WRITE | (selectors.EVENT_READ if self._reads else 0)
        self._selector.register(one, events, bytearray(opening()))


class Until:
    """A time limit that also ends early, when an event is set."""

    def __init__(self, seconds: float, stop: Event) -> None:
        self._end, self._stop = time.monotonic() + seconds, stop

    def goes_on(self) -> bool:
        return time.monotonic() < self._end and not self._stop.is_set()


# --- WebSockets


def guest(url: str) -> str:
    """Sign in as a new guest. Returns the guest's cookie."""
    with Browser(url) as browser:
        answer = browser.post("/auth/guest-login")
        assert answer.is_success, answer.text
        return f"tr_session={browser.cookies['tr_session']}"


def upgrade(url: str, cookie: str) -> bytes:
    lines = [
        "GET /api/v1/sync/ws HTTP/1.1",
        f"Host: {urlsplit(url).netloc}",
        f"Origin: {url}",
        f"Cookie: {cookie}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Protocol: svc-sync.v1",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def frame(opcode: int, payload: bytes = b"", fin: bool = True) -> bytes:
    """A WebSocket frame as a client sends it, masked with zeros."""
    first = (0x80 if fin else 0) | opcode
    size = len(payload)
    head = struct.pack("!BB", first, 0x80 | size) if size < 126 else struct.pack("!BBH", first, 0xFE, size)
    return head + bytes(4) + payload


PINGS = frame(9) * (BLOCK // 6)
FRAGMENTS = frame(0, fin=False) * (BLOCK // 6)
ONE_FRAGMENT = frame(1, b"{", fin=False)


def subscribes() -> bytes:
    return b"".join(
        frame(1, json.dumps({"type": "subscribe", "repo_id": secrets.token_hex(16), "since": 0}).encode())
        for _ in range(500)
    )


def sockets(count: int, more: Callable[[], bytes], first: bytes = b"", reads: bool = True) -> Work:
    def work(url: str, source: str, seconds: float, number: int, stop: Event, begun: Event) -> None:
        cookie = guest(url)
        Flood(url, source, reads=reads).run(
            count, lambda: upgrade(url, cookie) + first, more, Until(seconds, stop)
        )

    return work


# --- costly edits


def across(replica: int, count: int) -> bytes:
    """Encode a CRDT update of `count` items that is small but costly. Each item names a right neighbour but
    no left one, so that the CRDT library walks over all earlier items."""
    ladder = inserted(replica, 0, "r" * count)
    return encode(
        [ladder, *(inserted(replica, count + n, "x", right_origin=(replica, n)) for n in range(count))]
    )


def edits(count: int, pause: float) -> Work:
    """An attack that sends valid but costly edits, one every `pause` seconds. Each edit inserts `count` items
    (see `across`) into a new file."""

    def work(url: str, source: str, seconds: float, number: int, stop: Event, begun: Event) -> None:
        with RepositoryOwner(url, source) as person:
            person.http.timeout = httpx.Timeout(120)
            text, until = person.text(b"a line of text\n"), Until(seconds, stop)
            operation = across(text.replica, count)
            while until.goes_on():
                with contextlib.suppress(httpx.HTTPError, AssertionError):
                    text.post(text.make_edit(operation))
                    time.sleep(pause)
                    text.begin()

    return work


# --- heavy reads


def reads(histories: Callable[[], list[Files]], *paths: str, hidden: str | None = None) -> Work:
    """An attack that makes several seals in a public repository. Then twelve guests request the API paths
    `paths` below this repository. In a path, {0} stands for the id of the first seal and {1} for that of the
    last. `histories`: returns the files of each seal. `hidden`: a file that the guests cannot see."""

    def work(url: str, source: str, seconds: float, number: int, stop: Event, begun: Event) -> None:
        until = Until(seconds, stop)
        with RepositoryOwner(url, source, visibility="public") as person:
            person.http.timeout = httpx.Timeout(120)
            seals = [person.repo.seal(files)[0] for files in histories()]
            if hidden is not None:
                rule = {"path": hidden, "visibility": "private"}
                person.http.put(f"{person.repo.url}/paths", json=rule).raise_for_status()
            asked = [f"{person.repo.url}/{path.format(seals[0], seals[-1])}" for path in paths]
            as_guests(url, source, asked, until, begun)

    return work


def as_guests(url: str, source: str, asked: Sequence[str], until: Until, begun: Event) -> None:
    """Have twelve guests request the addresses `asked` over and over, each guest starting at another address
    of the list. `begun` is set when the first request is sent, because an answer may take longer than the
    whole measurement."""

    def read(at: int) -> None:
        with httpx.Client(
            base_url=url,
            trust_env=False,
            timeout=60,
            transport=httpx.HTTPTransport(local_address=source),
        ) as http:
            http.post("/auth/guest-login", headers={"origin": url})
            for address in itertools.cycle([*asked[at % len(asked) :], *asked[: at % len(asked)]]):
                if not until.goes_on():
                    return
                begun.set()
                with contextlib.suppress(httpx.HTTPError):
                    http.get(address)

    with ThreadPoolExecutor(GUESTS) as pool:
        list(pool.map(read, range(GUESTS)))


def merges(base: Callable[[int], bytes], change: Callable[[bytes, int], bytes], files: int) -> Work:
    """An attack that makes proposals in a public repository whose merges are costly. Then twelve guests look
    at the proposals, and the relay tries each merge when somebody first looks at it. In each proposal, the
    head and the base have changed the same `files` texts. `base(n)`: the text number n before the changes.
    `change(text, n)`: this text as branch number n changes it."""

    def work(url: str, source: str, seconds: float, number: int, stop: Event, begun: Event) -> None:
        until = Until(seconds, stop)
        with RepositoryOwner(url, source, visibility="public") as person:
            person.http.timeout = httpx.Timeout(120)
            repo, texts = person.repo, {f"t{n}": base(n) for n in range(files)}
            (start,) = repo.seal(texts)
            replace(repo, texts, change, 0, "main")
            asked = []
            for n in range(1, PROPOSALS + 1):
                repo.branch(f"topic{n}", start)
                replace(repo, texts, change, n, f"topic{n}")
                made = {"head": f"topic{n}", "base": "main", "title": f"topic {n}"}
                number = ok(person.http.post(f"{repo.url}/proposals", json=made))["number"]
                asked.append(f"{repo.url}/proposals/{number}")
            as_guests(url, source, asked, until, begun)

    return work


def replace(
    repo: Repository, texts: dict[str, bytes], change: Callable[[bytes, int], bytes], at: int, branch: str
) -> None:
    """Change the texts on a branch by two seals: the first removes them, the second adds them changed by
    `change(text, at)`. If one seal did both, the relay would compare the texts while it is made, and the
    attack would begin minutes later."""
    repo.seal(dict.fromkeys(texts, None), branch=branch)
    repo.seal({path: change(text, at) for path, text in texts.items()}, branch=branch)


def long_text(number: int) -> bytes:
    return b"".join(b"%d line %d of it\n" % (number, at) for at in range(10_000))


def lines_changed(text: bytes, at: int) -> bytes:
    """The text with one line of every hundred changed, from line `at` on. Changes with different `at` can be
    merged."""
    lines = text.splitlines(keepends=True)
    lines[at::100] = [b"changed %d\n" % at] * len(lines[at::100])
    return b"".join(lines)


def moved_and_changed() -> list[Files]:
    """The files of two seals: 200 texts, and the same texts renamed and changed."""
    texts = [[b"%d line %x of it\n" % (n, at) for at in range(2000)] for n in range(200)]
    first: Files = {f"old/{n}": b"".join(text) for n, text in enumerate(texts)}
    moved: Files = {f"new/x{n}": b"".join(text[:-200]) + b"more\n" * 200 for n, text in enumerate(texts)}
    return [first, {**dict.fromkeys(first, None), **moved}]


def random_texts() -> list[Files]:
    """The files of two seals: each has 12 texts of 5 MB with short lines. The texts of one have nothing in
    common with those of the other."""

    return [{f"t{n}": short_lines(1_500_000) for n in range(12)} for _ in range(2)]


def random_lines(_: bytes = b"", at: int = 0) -> bytes:
    """A random text of 300 kB with short lines, which has nothing in common with any other. The parameters
    are not used."""
    return short_lines(100_000)


def short_lines(count: int) -> bytes:
    return secrets.token_bytes(count).hex("\n").encode()


def many_files(count: int) -> Callable[[], list[Files]]:
    def make_versions() -> list[Files]:
        names = [f"d{n // 1000}/f{n}" for n in range(count)]
        return [dict.fromkeys(names, b"1\n"), dict.fromkeys(names, b"2\n")]

    return make_versions


# --- before sign-in


def head(url: str, method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join(
        [f"{method} {path} HTTP/1.1", f"Host: {urlsplit(url).netloc}", *lines, "", ""]
    ).encode()


def chunks(count: int, part: bytes) -> Work:
    """An attack that sends `count` request bodies at a time, in chunks of `part`, which are as small as
    possible. When a body is refused, it begins the next."""

    def work(url: str, source: str, seconds: float, number: int, stop: Event, begun: Event) -> None:
        coded = ("Transfer-Encoding: chunked", "Content-Type: application/json")
        first = head(url, "POST", "/api/v1/auth/device-key/challenge", *coded)
        chunk = b"%x\r\n%s\r\n" % (len(part), part)
        block = chunk * (BLOCK // len(chunk))
        Flood(url, source).run(count, lambda: first, lambda: block, Until(seconds, stop))

    return work


def pipelines(count: int, path: str, fields: int = 0) -> Work:
    def work(url: str, source: str, seconds: float, number: int, stop: Event, begun: Event) -> None:
        one = head(url, "GET", path, *["a: b"] * fields)
        block = one * (BLOCK // len(one))
        Flood(url, source).run(count, lambda: block, lambda: block, Until(seconds, stop))

    return work


def drips(count: int, size: int) -> Work:
    """An attack that sends `count` request bodies at a time, in segments of `size` bytes."""

    def work(url: str, source: str, seconds: float, number: int, stop: Event, begun: Event) -> None:
        sized = ("Content-Length: 2000000", "Content-Type: application/json")
        first = head(url, "POST", "/api/v1/auth/device-key/challenge", *sized)
        Flood(url, source).run(count, lambda: first, lambda: b" " * size, Until(seconds, stop))

    return work


def nothing(url: str, source: str, seconds: float, number: int, stop: Event, begun: Event) -> None:
    """An attack that does nothing, for comparison."""


COMPARE, OTHER = "compare?base={0}&head=main", "compare?base={0}&head=main&limit=299"
ATTACKS: dict[str, Attack] = {
    "nobody": Attack(nothing, processes=0),
    "one socket of pings": Attack(sockets(1, lambda: PINGS)),
    "one socket of subscribe": Attack(sockets(1, subscribes)),
    "one socket of fragments": Attack(sockets(1, lambda: FRAGMENTS, ONE_FRAGMENT)),
    "100 sockets of pings": Attack(sockets(100, lambda: PINGS)),
    "100 sockets, never reading": Attack(sockets(100, subscribes, reads=False)),
    "costly edits, one account": Attack(edits(1300, 0.0), warm_up=4),
    "costly edits, four accounts": Attack(edits(1300, 0.0), processes=4, warm_up=4),
    "costly edits, 50 kB/s": Attack(edits(1300, 0.5), warm_up=4),
    "chunks of 2 bytes": Attack(chunks(32, b"  ")),
    "requests in one write": Attack(pipelines(32, "/health")),
    "heads of 2,600 fields": Attack(pipelines(120, "/health", 2600)),
    "heads of 99 fields": Attack(pipelines(120, "/health", 98)),
    "compare, moved and changed": Attack(reads(moved_and_changed, COMPARE, OTHER), warm_up=None),
    "blame of a moved file": Attack(reads(moved_and_changed, "seals/{1}/blame/new/x7"), warm_up=None),
    "compare, random texts": Attack(reads(random_texts, OTHER), warm_up=None),
    "compare, 60,000 files": Attack(reads(many_files(60_000), OTHER), warm_up=None),
    "archive, 60,000 files": Attack(reads(many_files(60_000), "archive/{1}.tar.gz"), warm_up=None),
    "history pack, 60,000 files": Attack(reads(many_files(60_000), "history-pack?from={1}"), warm_up=None),
    "tree, 60,000 files": Attack(reads(many_files(60_000), "tree/{1}?recursive=true"), warm_up=None),
    "directory, a filtered view": Attack(reads(many_files(60_000), "tree/{1}", hidden="d0/f1"), warm_up=None),
    "artifacts, 60,000 files": Attack(reads(many_files(60_000), "seals/{1}/artifacts"), warm_up=None),
    "proof, 60,000 files": Attack(reads(many_files(60_000), "tree/{1}/proof"), warm_up=None),
    "proof, a filtered view": Attack(
        reads(many_files(60_000), "tree/{1}/proof", hidden="d0/f1"), warm_up=None
    ),
    "merge, texts of many lines": Attack(merges(long_text, lines_changed, 100), warm_up=None),
    "merge, random texts": Attack(merges(lambda _: random_lines(), random_lines, 6), warm_up=None),
    "bodies in segments": Attack(drips(32, 2)),
}
