"""Measures the relay's CPU for one request and for one live update, over HTTP on loopback.

    python -m scripts.bench.relay_cost [--requests 3000] [--batches 8] [--rounds 3] [--write]

Every request is signed and encoded before the first one is sent, so the client's cost is not in the figures.
All are sent over one connection that stays open. A request waits for the answer to the previous one, so that
the relay wakes up for each. Updates are sent in batches of 500, each for another text of Python source.
"cold" means that the relay was restarted since it last used the text. The figures are microseconds of user
and system time, the lowest of the rounds, because other work on the machine only adds to them.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from localstore.core.encoding import b64u, digest
from localstore.core.identity.request_signature import ContentDigest, authority_of, sign
from localstore.core.lane.lane import Lane
from localstore.core.lane.update import LiveUpdate, signing_bytes
from localstore.core.model import live
from localstore.core.model import repo as repos
from localstore.core.model.limits import UPDATES_PER_BATCH
from localstore.core.model.live import BootstrapRequest, UpdateAnswers, UpdateBatch
from localstore.core.storage.pack import write_packs
from scripts.bench.ingest import signed_in
from scripts.bench.shared import report
from scripts.bench.shared.cpu import Cost, serving
from scripts.tour import start_relay
from svc.api import Api
from svc.http.client import Http
from svc.http.credential import Credential

UNSIGNED = b64u(bytes(64))
BRANCH = "main"
AIMS = {"repository, token": 200.0, "update, created": 150.0, "update, edited": 150.0}
WARM_UP = 300  # requests that are not counted: caches of the process fill

Figures = dict[str, float]


@dataclass(slots=True)
class LiveFile:
    """A text file that a device edits live. `lane`: the device's copy of its CRDT text."""

    path: str
    text: bytes
    gen: int = 0
    seen: int = 0
    lane: Lane | None = None


class MeasuredRelay:
    """A relay on a data folder. It is a context that starts and ends the process."""

    def __init__(self, data: Path) -> None:
        with contextlib.redirect_stdout(sys.stderr):
            self._process, self.origin = start_relay(data)
        self.pid = self._process.pid

    def __enter__(self) -> MeasuredRelay:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)


class Wire:
    """One connection to a relay, over which prepared requests are sent. `answers`: the bodies that were
    received."""

    def __init__(self, relay: MeasuredRelay) -> None:
        self._relay = relay
        url = urlsplit(relay.origin)
        self._socket = socket.create_connection((url.hostname or "", url.port or 0))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answers: list[bytes] = []

    def send(self, request: bytes) -> None:
        """Send one request and read its answer. Raises an error unless the request succeeds."""
        self._socket.sendall(request)
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._more()
        head = data[:end].lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        while len(data) < end + 4 + length:
            data += self._more()
        self.answers.append(data[end + 4 :])
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(f"{request[:80]!r} was answered with {data[:500]!r}")

    def _more(self) -> bytes:
        part = self._socket.recv(1 << 20)
        if not part:
            raise RuntimeError("the relay closed the connection")
        return part

    def cost(self, requests: Sequence[bytes]) -> float:
        """Send these requests. Returns the microseconds of the relay's CPU for one request."""
        cost = Cost()
        with serving(self._relay.pid, cost):
            for request in requests:
                self.send(request)
        return cost.cpu * 1e6 / len(requests)


class Caller:
    """Encodes and signs requests as the client does."""

    def __init__(self, origin: str, credential: Credential) -> None:
        self._authority = authority_of(origin)
        self._credential = credential

    def get(self, path: str, *, token: bool = True, signed: bool = False) -> bytes:
        headers = {"Authorization": self._credential.authorization} if token else {}
        return self._write_head("GET", path, headers | (self._signature("GET", path, None) if signed else {}))

    def post(self, path: str, body: bytes) -> bytes:
        headers = {
            "Authorization": self._credential.authorization,
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **self._signature("POST", path, body),
        }
        return self._write_head("POST", path, headers) + body

    def _signature(self, method: str, target: str, body: bytes | None) -> dict[str, str]:
        path, _, query = target.partition("?")
        return sign(
            self._credential.key,
            method,
            self._authority,
            path,
            query,
            body=None if body is None else ContentDigest.of(body),
            authorization=self._credential.authorization,
            now=int(time.time()),
        )

    def _write_head(self, method: str, path: str, headers: dict[str, str]) -> bytes:
        common = {"Host": self._authority, "Accept": "*/*", "User-Agent": "svc-bench"}
        lines = [f"{name}: {value}" for name, value in (common | headers).items()]
        return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode()


class UpdateSigner:
    """A device on a branch: creates, signs and numbers updates."""

    def __init__(self, api: Api, repo_id: str, credential: Credential) -> None:
        key = credential.key
        start = api.send(live.BOOTSTRAP, BootstrapRequest(device_key_id=key.id), id=repo_id, branch=BRANCH)
        self._repo_id, self._branch_id, self._replica = repo_id, start.branch_id, start.replica
        self._key, self._credential, self._n = key, credential, 0

    def create(self, file: LiveFile) -> LiveUpdate:
        return self._make_update(
            path=file.path,
            kind="create_text",
            gen=0,
            base=0,
            blake3=digest(file.text).hex(),
            size=len(file.text),
        )

    def edit(self, file: LiveFile) -> LiveUpdate:
        """Make the update that inserts a word in the middle of the file."""
        if file.lane is None:
            file.lane = Lane.genesis(self._branch_id, file.gen, 0, file.text)
        half = len(file.text) // 2
        file.text = file.text[:half] + f"edit{self._n}".encode() + file.text[half:]
        operation = file.lane.edit(self._replica, file.text)
        assert operation is not None  # the text is another one
        return self._make_update(
            path=file.path, kind="edit_text", gen=file.gen, base=file.seen, epoch=0, ops=[b64u(operation)]
        )

    def _make_update(self, **members: object) -> LiveUpdate:
        self._n += 1
        update = LiveUpdate(n=self._n, settled=self._n - 1, signature=UNSIGNED, **members)  # type: ignore[arg-type]
        raw = signing_bytes(self._repo_id, self._branch_id, self._replica, self._key.id, update)
        return msgspec.structs.replace(update, signature=b64u(self._key.sign(raw)))

    def send(self, relay: MeasuredRelay, batches: list[list[tuple[LiveFile, LiveUpdate]]]) -> float:
        """Send these batches; the first one only warms up the relay. Returns the microseconds of the relay's
        CPU for one update of the other batches."""
        wire, caller = Wire(relay), Caller(relay.origin, self._credential)
        bodies = [
            msgspec.json.encode(
                UpdateBatch(
                    device_key_id=self._key.id, replica=self._replica, updates=[update for _, update in one]
                )
            )
            for one in batches
        ]
        requests = [
            caller.post(live.UPDATES.target(id=self._repo_id, branch=BRANCH), body) for body in bodies
        ]
        wire.send(requests[0])
        cost = wire.cost(requests[1:])
        for one, body in zip(batches, wire.answers, strict=True):
            answers = msgspec.json.decode(body, type=UpdateAnswers).answers
            for (file, _), answer in zip(one, answers, strict=True):
                if answer.result != "ok":
                    raise RuntimeError(f"{file.path}: {answer}")
                file.gen, file.seen = answer.gen, answer.seq
        return cost / UPDATES_PER_BATCH


def source_files(count: int) -> Iterator[LiveFile]:
    """Yields `count` files with Python source of this project, under different names."""
    texts = [path.read_bytes() for path in sorted(Path("relay").rglob("*.py"))]
    for number in range(count):
        text = b"# %d\n" % number + texts[number % len(texts)]
        yield LiveFile(f"folder{number % 40}/file{number}.py", text)


def requests_of(relay: MeasuredRelay, repo_id: str, credential: Credential, count: int) -> Figures:
    caller, wire = Caller(relay.origin, credential), Wire(relay)
    one, every = repos.GET.target(id=repo_id), "/api/v1/repos?owner=bench"
    kinds = {
        "health": [caller.get("/health", token=False)],
        "repository, token": [caller.get(one)],
        "list, token": [caller.get(every)],
        "repository, token and signature": [caller.get(one, signed=True) for _ in range(count)],
    }
    figures: Figures = {}
    for name, ready in kinds.items():
        requests = (ready * count)[:count]
        for request in requests[:WARM_UP]:
            wire.send(request)
        figures[name] = wire.cost(requests)
    return figures


def updates_of(
    relay: MeasuredRelay, data: Path, repo_id: str, credential: Credential, batches: int
) -> Figures:
    """Measure updates that create and edit files. Returns name of the figure → microseconds of CPU for one
    update. Before the last figure the relay is restarted, so that it has no text in memory ("cold")."""
    api = Api(Http(relay.origin, credential))
    files = list(source_files((batches + 1) * UPDATES_PER_BATCH))
    for pack in write_packs((digest(file.text), file.text, False) for file in files):
        api.payload.put_pack(repo_id, pack)
    device = UpdateSigner(api, repo_id, credential)
    groups = [files[at : at + UPDATES_PER_BATCH] for at in range(0, len(files), UPDATES_PER_BATCH)]
    figures: Figures = {}
    with relay:
        figures["update, created"] = device.send(relay, [[(f, device.create(f)) for f in g] for g in groups])
        device.send(relay, [[(f, device.edit(f)) for f in g] for g in groups])  # makes the lanes
        figures["update, edited"] = device.send(relay, [[(f, device.edit(f)) for f in g] for g in groups])
    with MeasuredRelay(data) as again:
        figures["update, edited from cold"] = device.send(
            again, [[(f, device.edit(f)) for f in g] for g in groups]
        )
    return figures


def round_of(requests: int, batches: int) -> Figures:
    """Run one round with a new relay, one account and its repository. Returns name of the figure →
    microseconds of CPU."""
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        data = Path(folder) / "relay"
        with MeasuredRelay(data) as relay:
            api, repo_id = signed_in(Path(folder), relay.origin)
            credential = api.http.credential
            assert credential is not None  # it just signed in
            figures = requests_of(relay, repo_id, credential, requests)
            return figures | updates_of(relay, data, repo_id, credential, batches)


def format_figures(figures: Figures) -> str:
    rows = [
        [name, _format_figure(value, AIMS.get(name)), _aim(AIMS.get(name))] for name, value in figures.items()
    ]
    return f"{report.table(['µs of CPU', 'least', 'aim'], rows)}\n\n{report.conditions()}"


def _format_figure(value: float, most: float | None) -> str:
    return f"{value:.0f}" if most is None or value <= most else f"**{value:.0f}**"


def _aim(most: float | None) -> str:
    return "" if most is None else f"≤{most:.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    options = parser.parse_args()
    rounds = [round_of(options.requests, options.batches) for _ in range(options.rounds)]
    figures = {name: min(one[name] for one in rounds) for name in rounds[0]}
    report.show("relay_cost", format_figures(figures), options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
