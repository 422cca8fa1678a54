"""Writes of every kind, held up at the lock of a repository until a test lets them go."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from unittest import mock

import httpx
import msgspec
from blake3 import blake3
from sqlalchemy import func, insert, select

from localstore.core.encoding import b64u, unb64u
from localstore.core.lane.update import LiveUpdate, signing_bytes
from localstore.core.storage.pack import write_packs
from relay.base.clock import now_ms
from relay.caller import repo_name
from relay.db.schema import tables
from tests.patience import PATIENCE
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok

OF_EACH = 6  # writes of each of the ten kinds
TEXT = b"hello\n"
# What the acts themselves, and refused requests, leave behind.
ASIDE = {
    "audit",
    "event",
    "job",
    "nonce",
    "collaborator",
    "created",
    "repo",
    "repo_usage",
    "account_usage",
    "session",
}
ASIDE |= {"device_key", "idempotency", "known_address", "frame", "pack", "object", "heartbeat"}
ASIDE |= {"checkpoint"}  # of branches that went quiet

Write = Callable[[], httpx.Response]


class Team:
    """A repository with a seal on main and on OF_EACH branches, its owner, and a member with the role write
    who is about to do much at once."""

    def __init__(self, relay: Relay, *, public: bool) -> None:
        self.relay, self.public = relay, public
        owner, self.member = (
            relay.account(f"o{secrets.token_hex(5)}"),
            relay.account(f"m{secrets.token_hex(5)}"),
        )
        self.http = relay.client(owner)
        self.repo = create(self.http, owner, "thing", visibility="public" if public else "private")
        self.head, self.later = self.repo.seal({"a.txt": TEXT}, {"c.txt": TEXT})
        for number in range(OF_EACH):
            self.repo.branch(f"b{number}", self.head)
        self.grant(self.member, "write")
        limits = httpx.Limits(max_connections=100)
        self.work = relay.client(self.member, limits=limits)
        self.work.timeout = self.http.timeout = httpx.Timeout(120)  # all of them wait, on a busy machine too
        self.at_work = Repository(self.work, self.member, self.repo.body)

    def close(self) -> None:
        self.http.close()
        self.work.close()

    def grant(self, who: Account, role: str) -> None:
        self.run(insert(tables["collaborator"]), account_id=who.id, role=role, created_at=now_ms())

    def run(self, statement: Any, **values: Any) -> None:
        async def act() -> None:
            async with self.relay.node.db.write(repo_name(self.repo.id)) as tx:
                await tx.run(statement, repo_id=self.repo.id, **values)

        self.relay.run(act())

    def rows(self) -> dict[str, int]:
        """How many rows each table has, but those that are allowed to grow."""

        async def count() -> dict[str, int]:
            async with self.relay.node.db.read() as tx:
                names = sorted(set(tables) - ASIDE)
                return {one: await tx.value(select(func.count()).select_from(tables[one])) for one in names}

        return self.relay.run(count())

    def heads(self) -> list[Any]:
        """Name, head and number of the frontier of every ref."""
        ref = tables["ref"]

        async def read() -> list[Any]:
            async with self.relay.node.db.read() as tx:
                found = await tx.all(
                    select(ref.c.repo_id, ref.c.name, ref.c.head, ref.c.seq, ref.c.deleted_at)
                )
            return sorted(tuple(row) for row in found if row[0] == self.repo.id)

        return self.relay.run(read())

    def writes(self) -> list[Write]:
        """Requests of the member that are good as things stand, prepared as far as they can be."""
        found: list[Write] = []
        for number in range(OF_EACH):
            found += [
                self._ref(number),
                self._deletion(number),
                self._payload(),
                self._bootstrap(number),
                self._update(number),
                self._seal(number),
                self._prepare(number),
                self._frontier(number),
                self._pack(),
                self._move(number),
            ]
        return found

    def _ref(self, number: int) -> Write:
        body = {"type": "branch", "name": f"new{number}", "head": self.head}
        return lambda: self.work.post(f"{self.repo.url}/refs", json=body)

    def _deletion(self, number: int) -> Write:
        self.repo.branch(f"old{number}", self.head)
        return lambda: self.work.delete(f"{self.repo.url}/refs/branch/old{number}")

    def _payload(self) -> Write:
        data = secrets.token_bytes(50)
        digest = blake3(data)
        extensions = {"blake3": digest.digest()}
        url = f"{self.repo.url}/payloads/{digest.hexdigest()}"
        return lambda: self.work.put(url, content=data, extensions=extensions)

    def _bootstrap(self, number: int) -> Write:
        body = {"device_key_id": self.member.key.id}
        return lambda: self.work.post(f"{self.repo.url}/branches/b{number}/live/bootstrap", json=body)

    def _update(self, number: int) -> Write:
        batch = self._batch(f"b{number}")
        return lambda: self.work.post(f"{self.repo.url}/branches/b{number}/live/updates", json=batch)

    def _batch(self, branch: str) -> dict[str, Any]:
        """A signed update that creates a file on the branch."""
        key = self.member.key
        live = f"{self.repo.url}/branches/{branch}/live"
        start = ok(self.work.post(f"{live}/bootstrap", json={"device_key_id": key.id}))
        made = LiveUpdate(
            n=1,
            settled=0,
            path="new.txt",
            kind="create_text",
            gen=0,
            base=0,
            signature="",
            blake3=blake3(TEXT).hexdigest(),
            size=len(TEXT),
        )
        raw = signing_bytes(self.repo.id, start["branch_id"], start["replica"], key.id, made)
        signed = msgspec.structs.replace(made, signature=b64u(key.sign(raw)))
        updates = [msgspec.to_builtins(signed)]
        return {"device_key_id": key.id, "replica": start["replica"], "updates": updates}

    def _frontier(self, number: int) -> Write:
        """The seal of a frontier with an edit."""
        branch = f"{self.repo.url}/branches/live{number}"
        self.repo.branch(f"live{number}", self.head)
        ok(self.work.post(f"{branch}/live/updates", json=self._batch(f"live{number}")))
        key = self.member.key
        sent = {"device_key_id": key.id, "message": "live", "expected_head": self.head}
        prepared = ok(self.work.post(f"{branch}/seal/prepare", json=sent))
        signature = b64u(key.sign(unb64u(prepared["bytes"])))
        body = {
            "device_key_id": key.id,
            "prepare_id": prepared["prepare_id"],
            "signature": signature,
        }
        return lambda: self.work.post(f"{branch}/seal/finalize", json=body)

    def _pack(self) -> Write:
        data = secrets.token_bytes(70)
        (pack,) = write_packs([(blake3(data).digest(), data, False)])
        content, extensions = b"".join(pack.parts()), {"blake3": pack.toc_digest}
        return lambda: self.work.post(f"{self.repo.url}/packs", content=content, extensions=extensions)

    def _move(self, number: int) -> Write:
        """A branch back to the seal before its head."""
        self.repo.branch(f"moved{number}", self.later)
        body = {"head": self.head, "expected_head": self.later}
        return lambda: self.work.patch(f"{self.repo.url}/refs/branch/moved{number}", json=body)

    def _prepare(self, number: int) -> Write:
        body = self._wish(f"b{number}")
        return lambda: self.work.post(f"{self.repo.url}/seals/prepare", json=body)

    def _seal(self, number: int) -> Write:
        self.repo.branch(f"sealed{number}", self.head)
        prepared = ok(self.work.post(f"{self.repo.url}/seals/prepare", json=self._wish(f"sealed{number}")))
        signatures = [b64u(self.member.key.sign(unb64u(one["bytes"]))) for one in prepared["seals"]]
        body = {
            "prepare_id": prepared["prepare_id"],
            "device_key_id": self.member.key.id,
            "signatures": signatures,
        }
        return lambda: self.work.post(f"{self.repo.url}/seals/finalize", json=body)

    def _wish(self, branch: str) -> dict[str, Any]:
        changes = [["b.txt", "text", blake3(TEXT).hexdigest(), len(TEXT)]]
        return {
            "branch": branch,
            "device_key_id": self.member.key.id,
            "expected_head": self.head,
            "seals": [{"message": "more", "changes": changes, "parents": []}],
        }


@contextlib.contextmanager
def held(relay: Relay, repo_id: str) -> Iterator[None]:
    """Whoever wants to write to the repository waits until this ends."""
    begun, go = threading.Event(), asyncio.Event()

    async def hold() -> None:
        async with relay.node.db.write(repo_name(repo_id)):
            begun.set()
            await go.wait()

    holding = asyncio.run_coroutine_threadsafe(hold(), relay.loop)
    try:
        assert begun.wait(PATIENCE)
        yield
    finally:
        relay.loop.call_soon_threadsafe(go.set)
        holding.result(PATIENCE)


@contextlib.contextmanager
def counted(db: Any, repo_id: str) -> Iterator[list[str]]:
    """Grows by one for each transaction about the repository that is begun, or waits to begin."""
    begun: list[str] = []
    write = db.write

    def counting(*names: str) -> Any:
        if repo_name(repo_id) in names:
            begun.append(repo_id)
        return write(*names)

    with mock.patch.object(db, "write", counting):
        yield begun


def behind(
    team: Team, first: Callable[[], object] | None, writes: list[Write]
) -> tuple[Any, list[httpx.Response]]:
    """The answers to `writes`, all of which passed the gate while nothing had happened, and queue behind
    `first`."""
    repo_id, db = team.repo.id, team.relay.node.db
    _until(lambda: not team.relay.run(_waiting_jobs(db)), "the jobs are not done")  # their writes would count
    with ThreadPoolExecutor(len(writes) + 1) as pool:
        with held(team.relay, repo_id), counted(db, repo_id) as begun:
            act: Future[Any] | None = None
            if first is not None:
                act = pool.submit(first)
                _until(lambda: len(begun) == 1)
            asked = [pool.submit(one) for one in writes]
            _until(lambda: len(begun) == len(writes) + (first is not None))
        return act and act.result(PATIENCE), [one.result(PATIENCE) for one in asked]


async def _waiting_jobs(db: Any) -> int:
    """How many jobs are due or being done."""
    jobs = tables["job"]
    async with db.read() as tx:
        due = select(func.count()).where(jobs.c.done_at.is_(None), jobs.c.run_at <= now_ms())
        return int(await tx.value(due))


def _until(true: Callable[[], bool], why: str = "the writes do not wait where they should") -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, why
        time.sleep(0.01)
