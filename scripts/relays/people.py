"""Relays that can be killed, and clients that use them, for `scripts.relays.two_relays`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import secrets
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from localstore.core.encoding import b64u, digest, unb64u
from localstore.core.identity.bearer import authorization
from localstore.core.identity.keys import DeviceKey
from localstore.core.identity.request_signature import ContentDigest, sign
from localstore.core.lane.lane import Lane
from localstore.core.lane.update import LiveUpdate, signing_bytes
from localstore.core.model.live import Bootstrap, LaneMoved, LaneState, LaneStates
from relay.base.ids import new_id
from scripts.free_port import free_port
from scripts.tour import ROOT

SHARED = "shared.txt"


class Relays:
    """Relay processes on fixed ports. A relay that is killed is started again."""

    def __init__(self, data: Path, url: str, count: int, variables: Mapping[str, str]) -> None:
        self._data, self._variables = data, {"DATABASE_URL": url, **variables}
        self.ports = [free_port() for _ in range(count)]
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.kills = 0

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        signer = self._start("signer")
        try:
            for port in self.ports:
                self.running[port] = self.serve(port)
            await asyncio.gather(*map(self.ready, self.ports))
            yield
        finally:
            for process in [*self.running.values(), signer]:
                process.kill()
                process.wait()

    def serve(self, port: int) -> subprocess.Popen[bytes]:
        return self._start("serve", "--dev", "--port", str(port))

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TR_", "S3_"))}
        with (self._data / "relays.log").open("a") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "relay", *words, "--data", str(self._data)],
                env={
                    **kept,
                    "PYTHONPATH": str(ROOT),
                    "TR_RATE_LIMITS": "off",
                    "RUST_LOG": "error",
                    **self._variables,
                },
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    async def ready(self, port: int) -> None:
        async with httpx.AsyncClient(trust_env=False) as http:
            for _ in range(600):
                with contextlib.suppress(httpx.HTTPError):
                    if (await http.get(f"http://127.0.0.1:{port}/readyz")).status_code == 200:
                        return
                await asyncio.sleep(0.05)
        raise RuntimeError(f"the relay on port {port} does not come up; see {self._data}/relays.log")

    async def kill_at_random(self, every: float) -> None:
        """Kill a random relay with SIGKILL and start it again, about every `every` seconds, without end."""
        while True:
            await asyncio.sleep(every * (0.5 + random.random()))
            port = random.choice(self.ports)
            self.running[port].kill()
            self.running[port].wait()
            self.kills += 1
            await asyncio.sleep(0.1)
            self.running[port] = self.serve(port)
            await self.ready(port)


@dataclass
class Ledger:
    """The work that relays acknowledged. `updates`: (replica, number of the update) → sequence number in the
    relay's answer."""

    updates: dict[tuple[int, int], int] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)  # lines of the shared file
    refused: set[str] = field(default_factory=set)  # lines that were refused: the lane had moved on
    text: list[str] = field(default_factory=list)  # its lines at the end
    seals: set[str] = field(default_factory=set)
    count: Counter[str] = field(default_factory=Counter)
    heard: dict[int, list[int]] = field(default_factory=dict)


class RelayClient:
    """An account with one device that sends each request to a random relay."""

    def __init__(self, relays: Relays, ledger: Ledger, repo_id: str) -> None:
        self.relays, self.ledger, self.repo_id = relays, ledger, repo_id
        self.id, self.session = str(uuid.uuid4()), new_id()
        self.key = DeviceKey.generate()
        self.token = b""
        self.n = self.replica = self.shared = 0
        self.branch_id = ""
        self._http = httpx.AsyncClient(trust_env=False, timeout=10)

    async def close(self) -> None:
        await self._http.aclose()

    async def ask(self, method: str, path: str, body: Any = None, raw: bytes | None = None) -> httpx.Response:
        """Send a request, again and again until a relay answers. Each attempt is signed anew. Returns the
        answer."""
        content = raw if raw is not None else b"" if body is None else msgspec.json.encode(body)
        while True:
            port = random.choice(self.relays.ports)
            headers = {"Authorization": authorization(self.token)}
            if raw is None and body is not None:
                headers["Content-Type"] = "application/json"
            if method != "GET":
                headers |= sign(
                    self.key,
                    method,
                    f"127.0.0.1:{port}",
                    path,
                    "",
                    body=ContentDigest.of(content) if raw is None else ContentDigest.of_stream(digest(raw)),
                    authorization=headers["Authorization"],
                    now=int(time.time()),
                )
            with contextlib.suppress(httpx.HTTPError):
                answer = await self._http.request(
                    method, f"http://127.0.0.1:{port}{path}", content=content, headers=headers
                )
                if answer.status_code < 500 and answer.status_code != 429:
                    return answer
                if answer.status_code == 500:
                    self.ledger.count["500"] += 1
            self.ledger.count["repeated"] += 1
            await asyncio.sleep(0.05)

    def at(self, rest: str) -> str:
        return f"/api/v1/repos/{self.repo_id}{rest}"

    async def bootstrap(self) -> None:
        """Join the branch, and read the shared file."""
        answer = await self.ask(
            "POST", self.at("/branches/main/live/bootstrap"), {"device_key_id": self.key.id}
        )
        found = msgspec.json.decode(answer.content, type=Bootstrap)
        self.replica, self.branch_id = found.replica, found.branch_id
        self.shared = next((row.gen for row in found.rows if row.path == SHARED), 0)

    async def send(self, kind: str, path: str, **members: Any) -> dict[str, Any]:
        """Send one signed update, repeatedly until a relay answers. Returns the answer about the update."""
        self.n += 1
        made = LiveUpdate(n=self.n, settled=0, path=path, kind=kind, signature="", **members)  # type: ignore[arg-type]
        raw = signing_bytes(self.repo_id, self.branch_id, self.replica, self.key.id, made)
        made = msgspec.structs.replace(made, signature=b64u(self.key.sign(raw)))
        batch = {
            "device_key_id": self.key.id,
            "replica": self.replica,
            "updates": [msgspec.to_builtins(made)],
        }
        answers = json_of(await self.ask("POST", self.at("/branches/main/live/updates"), batch))["answers"]
        answer: dict[str, Any] = answers[0]
        self.ledger.count[f"update {answer['result']}"] += 1
        if answer["result"] == "ok":
            self.ledger.updates[self.replica, self.n] = answer["seq"]
        return answer

    async def put(self, data: bytes) -> str:
        name = digest(data).hex()
        json_of(await self.ask("PUT", self.at(f"/payloads/{name}"), raw=data))
        return name

    async def write_words(self) -> None:
        """Append words to the shared file, and sometimes write a binary file, without end."""
        while True:
            if random.random() < 0.1:
                data = secrets.token_bytes(random.randrange(1, 4000))
                name = await self.put(data)
                path = f"{self.session[-12:]}/{self.n}.bin"
                await self.send("set_blob", path, gen=0, base=0, blake3=name, size=len(data))
            else:
                await self._append(f"{self.session[-12:]}-{self.n}")

    async def read_shared_lane(self) -> tuple[LaneState, Lane]:
        """Read the shared file from a relay. Returns (its state, its CRDT text)."""
        body = {"lanes": [{"path": SHARED, "gen": self.shared}], "replica": self.replica}
        answer = await self.ask("POST", self.at("/branches/main/live/lanes"), body)
        if answer.status_code != 200:
            raise AssertionError(f"lanes answered {answer.status_code}: {answer.text[:300]}")
        (state,) = msgspec.json.decode(answer.content, type=LaneStates).lanes
        text = await self.ask("GET", self.at(f"/payloads/{state.genesis}"))
        lane = Lane.genesis(self.branch_id, self.shared, state.epoch, text.content)
        if state.state is not None:
            lane.merge(unb64u(state.state))
        return state, lane

    async def _append(self, word: str) -> None:
        """Append a word to the shared file, as a typed or as a captured edit."""
        state, lane = await self.read_shared_lane()
        operation = lane.edit(self.replica, lane.text() + word.encode() + b"\n")
        done = await self.send(
            "edit_text",
            SHARED,
            gen=self.shared,
            base=state.ver,
            epoch=state.epoch,
            ops=[b64u(operation or b"")],
            typed=random.random() < 0.5,
        )
        if done["result"] == "ok":
            self.ledger.words.add(word)
        elif done.get("code") == LaneMoved.code:
            self.ledger.refused.add(word)
            self.ledger.count[LaneMoved.code] += 1

    async def seal_always(self) -> None:
        while True:
            head = json_of(await self.ask("GET", self.at("/refs/branch/main")))["head"]
            await self.seal(head)
            await asyncio.sleep(random.random() / 5)

    async def seal(self, head: str | None) -> None:
        body = {"message": "seal", "device_key_id": self.key.id, "expected_head": head}
        answer = await self.ask("POST", self.at("/branches/main/seal/prepare"), body)
        if answer.status_code != 200 or answer.json().get("unchanged"):
            self.ledger.count["prepare lost"] += 1
            return
        prepared = answer.json()
        done = {
            "prepare_id": prepared["prepare_id"],
            "device_key_id": self.key.id,
            "signature": b64u(self.key.sign(unb64u(prepared["bytes"]))),
        }
        answer = await self.ask("POST", self.at("/branches/main/seal/finalize"), done)
        if answer.is_success:
            self.ledger.seals.add(answer.json()["id"])
            self.ledger.count["seal"] += 1
        elif answer.status_code == 409:
            self.ledger.count["seal lost"] += 1
        else:
            raise RuntimeError(f"finalize: {answer.status_code} {answer.text}")

    async def listen(self, port: int) -> None:
        """Receive every event of the repository from one relay, without end. After a lost connection it
        continues after the last event received."""
        heard = self.ledger.heard.setdefault(port, [])
        since = 0
        while True:
            with contextlib.suppress(OSError, WebSocketException):
                async with connect(
                    f"ws://127.0.0.1:{port}/api/v1/sync/ws",
                    subprotocols=["svc-sync.v1"],  # type: ignore[list-item]
                    additional_headers={"Authorization": authorization(self.token)},
                    proxy=None,
                ) as socket:
                    body = {"type": "subscribe", "repo_id": self.repo_id, "since": since}
                    await socket.send(msgspec.json.encode(body).decode())
                    async for message in socket:
                        told = msgspec.json.decode(message)
                        if told.get("type") == "event":
                            heard.append(told["id"])
                            since = told["id"]
                        elif told.get("type") == "resync":
                            raise RuntimeError("a listener was told to resync")
            await asyncio.sleep(0.05)


def json_of(answer: httpx.Response) -> Any:
    if not answer.is_success:
        raise RuntimeError(
            f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text}"
        )
    return answer.json()
