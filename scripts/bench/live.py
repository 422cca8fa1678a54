"""Measures what one live update costs when many devices listen, and when the last of them receives it.

    python -m scripts.bench.live [--devices 200] [--updates 100] [--rounds 3] [--write]

Each device is a real WebSocket, which this process only reads. The devices belong to several sessions and
addresses. A keystroke is sent over HTTP once all devices have received the previous one. CPU is that of the
relay's whole process tree. Times are measured by the sender, on loopback, from the first byte of the request
until the last device has received the live frame. "With events" means that every device also subscribes to
the events of the repository. The figures are the lowest of the rounds.
"""

from __future__ import annotations

import argparse
import base64
import os
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from localstore.core.encoding import b64u, digest
from localstore.core.lane.lane import Lane
from localstore.core.lane.update import LiveUpdate, signing_bytes
from localstore.core.model import live
from localstore.core.model.live import Bootstrap, BootstrapRequest, UpdateAnswers, UpdateBatch
from localstore.core.model.sync import PROTOCOL, SOCKET_PATH, Open, Subscribe
from localstore.core.storage.pack import write_packs
from scripts.attack.attackers import frame
from scripts.bench.ingest import signed_in
from scripts.bench.relay_cost import BRANCH, UNSIGNED, Caller, MeasuredRelay, Wire
from scripts.bench.shared import report
from scripts.bench.shared.cpu import Cost, serving
from svc.api import Api, connect
from svc.http.client import Http
from svc.http.credential import Credential
from svc.http.session import Sessions

SESSIONS = 30  # sockets of one session
ADDRESSES = 100  # and of one address
WARM_UP = 10  # updates that are not counted
AIMS = {"CPU of an update, ms": 8.0, "the last hears, median ms": 50.0}
TEXT = b"".join(b"line %d of a file that somebody edits\n" % number for number in range(500))


class Listener:
    """The WebSocket of one device, which follows the branch and reads the live frames that arrive."""

    def __init__(self, relay: MeasuredRelay, credential: Credential, address: str) -> None:
        url = urlsplit(relay.origin)
        self.line = socket.create_connection((url.hostname or "", url.port or 0), source_address=(address, 0))
        request = Caller(relay.origin, credential).get(SOCKET_PATH, signed=True)
        lines = [
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Protocol: {PROTOCOL}",
        ]
        self.line.sendall(request[:-2] + "\r\n".join([*lines, "", ""]).encode())
        answer = self.line.recv(65536)
        if not answer.startswith(b"HTTP/1.1 101"):
            raise RuntimeError(f"the socket was refused: {answer[:300]!r}")

    def say(self, message: msgspec.Struct) -> None:
        self.line.sendall(frame(1, msgspec.json.encode(message)))

    def until(self, word: bytes) -> None:
        data = b""
        while word not in data:
            part = self.line.recv(65536)
            if not part:
                raise RuntimeError("the relay closed a socket")
            data += part


class Typist:
    """A device that types into one file."""

    def __init__(self, relay: MeasuredRelay, api: Api, repo_id: str, credential: Credential) -> None:
        for pack in write_packs([(digest(TEXT), TEXT, False)]):
            api.payload.put_pack(repo_id, pack)
        self._repo_id, self._credential, self._n = repo_id, credential, 0
        self._start = bootstrap(api, repo_id, credential)
        self._wire, self._caller = Wire(relay), Caller(relay.origin, credential)
        made = self._send_update(
            path="a.txt", kind="create_text", gen=0, base=0, blake3=digest(TEXT).hex(), size=len(TEXT)
        )
        self._gen, self._text = made.answers[0].gen, TEXT
        self._lane = Lane.genesis(self._start.branch_id, self._gen, 0, TEXT)

    def key(self) -> int:
        """Type one letter and send it as an update. Returns the number that the relay gives the update."""
        half = len(self._text) // 2
        self._text = self._text[:half] + b"x" + self._text[half:]
        operation = self._lane.edit(self._start.replica, self._text)
        assert operation is not None  # the text is another one
        answers = self._send_update(
            path="a.txt",
            kind="edit_text",
            gen=self._gen,
            base=self._gen,
            epoch=0,
            ops=[b64u(operation)],
            typed=True,
        )
        return answers.seq

    def _send_update(self, **members: object) -> UpdateAnswers:
        self._n += 1
        key = self._credential.key
        update = LiveUpdate(n=self._n, settled=self._n - 1, signature=UNSIGNED, **members)  # type: ignore[arg-type]
        raw = signing_bytes(self._repo_id, self._start.branch_id, self._start.replica, key.id, update)
        signed = msgspec.structs.replace(update, signature=b64u(key.sign(raw)))
        batch = UpdateBatch(device_key_id=key.id, replica=self._start.replica, updates=[signed])
        path = live.UPDATES.target(id=self._repo_id, branch=BRANCH)
        self._wire.send(self._caller.post(path, msgspec.json.encode(batch)))
        answers = msgspec.json.decode(self._wire.answers[-1], type=UpdateAnswers)
        if answers.answers[0].result != "ok":
            raise RuntimeError(str(answers))
        return answers


def bootstrap(api: Api, repo_id: str, credential: Credential) -> Bootstrap:
    body = BootstrapRequest(device_key_id=credential.key.id)
    return api.send(live.BOOTSTRAP, body, id=repo_id, branch=BRANCH)


def credentials(base: Path, relay: MeasuredRelay, count: int, handle: str = "bench") -> Iterator[Credential]:
    """Sign in `count` times with one account and key. Yields the credential of each session."""
    environment = {**os.environ, "SVC_HOME": str(base / "home"), "SVC_SERVER": relay.origin}
    words = [sys.executable, "-m", "svc", "login", "--device-key", "--handle", handle]
    for _ in range(count):
        subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL)
        found = connect(relay.origin, Sessions(base / "home")).http.credential
        assert found is not None  # it just signed in
        yield found


@contextmanager
def devices(
    base: Path, relay: MeasuredRelay, repo_id: str, count: int, subscribed: bool, handle: str = "bench"
) -> Iterator[Sequence[Listener]]:
    """A context that yields `count` sockets of the account `handle`, whose SVC_HOME is in `base`.
    `subscribed`: also subscribe them to events."""
    found: list[Listener] = []
    sessions = list(credentials(base, relay, -(-count // SESSIONS), handle))
    for number in range(count):
        credential = sessions[number // SESSIONS]
        listener = Listener(relay, credential, f"127.0.0.{2 + number // ADDRESSES}")
        start = bootstrap(Api(Http(relay.origin, credential)), repo_id, credential)
        listener.say(
            Open(
                channel=1,
                repo_id=repo_id,
                branch=BRANCH,
                replica=start.replica,
                device_key_id=credential.key.id,
                since=start.seq,
            )
        )
        listener.until(b'"people"')
        if subscribed:
            listener.say(Subscribe(repo_id=repo_id))
            listener.until(b'"subscribed"')
        found.append(listener)
    try:
        yield found
    finally:
        for one in found:
            one.line.close()


def heard_by_all(listeners: Sequence[Listener], chooser: selectors.BaseSelector, seq: int) -> None:
    """Wait until each device has received the live frame with the update number `seq`."""
    word, left = b'"seq":%d,"replica"' % seq, len(listeners)
    while left:
        for key, _ in chooser.select(10):
            left -= word in key.fileobj.recv(65536)  # type: ignore[union-attr]


def round_of(count: int, updates: int, subscribed: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        base = Path(folder)
        with MeasuredRelay(base / "relay") as relay, selectors.DefaultSelector() as chooser:
            api, repo_id = signed_in(base, relay.origin)
            credential = api.http.credential
            assert credential is not None  # it just signed in
            typist = Typist(relay, api, repo_id, credential)
            with devices(base, relay, repo_id, count, subscribed) as listeners:
                for one in listeners:
                    chooser.register(one.line, selectors.EVENT_READ)
                for _ in range(WARM_UP):
                    heard_by_all(listeners, chooser, typist.key())
                cost, last = Cost(), []
                with serving(relay.pid, cost):
                    for _ in range(updates):
                        began = time.perf_counter()
                        heard_by_all(listeners, chooser, typist.key())
                        last.append(1000 * (time.perf_counter() - began))
    return {
        "CPU of an update, ms": 1000 * cost.cpu / updates,
        "the last hears, median ms": statistics.median(last),
        "the last hears, p95 ms": statistics.quantiles(last, n=20)[-1],
    }


def format_figures(figures: dict[str, float]) -> str:
    rows = [
        [name, _format_figure(value, AIMS.get(name)), _aim(AIMS.get(name))] for name, value in figures.items()
    ]
    return f"{report.table(['200 devices', 'least', 'aim'], rows)}\n\n{report.conditions()}"


def _format_figure(value: float, most: float | None) -> str:
    return f"{value:.1f}" if most is None or value <= most else f"**{value:.1f}**"


def _aim(most: float | None) -> str:
    return "" if most is None else f"≤{most:.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--devices", type=int, default=200)
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    options = parser.parse_args()
    figures: dict[str, float] = {}
    for subscribed in (False, True):
        rounds = [round_of(options.devices, options.updates, subscribed) for _ in range(options.rounds)]
        ending = ", with events" if subscribed else ""
        figures |= {name + ending: min(one[name] for one in rounds) for name in rounds[0]}
    report.show("live", format_figures(figures), options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
