"""A node without its HTTP surface, and devices that speak the lane protocol to its services."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import insert

from localstore.core import seal as seals
from localstore.core import tree
from localstore.core.encoding import b64u, digest, unb64u
from localstore.core.identity.keys import DeviceKey, sign_registration
from localstore.core.lane import update as updates
from localstore.core.lane.lane import Lane
from localstore.core.lane.update import LiveUpdate
from localstore.core.model.history import Seal
from localstore.core.model.live import (
    Bootstrap,
    BootstrapRequest,
    LanesRequest,
    LaneState,
    UpdateAnswer,
    UpdateBatch,
)
from localstore.core.model.live import LaneName as LaneAsked
from localstore.core.model.rights import OPERATIONS
from localstore.core.model.seal import FinalizeRequest, Prepared, PrepareRequest
from localstore.core.storage import chunks
from relay import config
from relay.base.clock import now_ms
from relay.base.metrics import Metrics
from relay.caller import Principal, View
from relay.capacity import quota
from relay.capacity.limiter import Limiter
from relay.db import repo as repos
from relay.db import seal as seal_rows
from relay.db.engine import connect
from relay.db.schema import tables
from relay.domain.live import lane as lanes
from relay.domain.live import live
from relay.domain.sealing import seal
from relay.domain.storage import chunked
from relay.events.followers import Followers
from relay.events.hub import Hub
from relay.events.jobs import Jobs
from relay.memory import trees
from relay.memory.lanes import Lanes
from relay.node import Node
from relay.objects.store import ObjectStore
from relay.outbound.client import Outbound
from relay.outbound.reach import Reach
from relay.signing.client import Signer
from tests import buckets
from tests.databases import new_url
from tests.relay.chunked_files import Large

ORIGIN = "http://127.0.0.1:1"
UNSIGNED = b64u(bytes(64))
START = 1_700_000_000_000


@dataclass
class World:
    node: Node
    repo_id: str
    branch_id: str
    owner: str

    async def account(self, role: str | None = "write") -> str:
        account_id = str(uuid.uuid4())
        async with self.node.db.write() as tx:
            await add_account(tx, account_id)
            if role:
                await add(
                    tx,
                    tables["collaborator"],
                    repo_id=self.repo_id,
                    account_id=account_id,
                    role=role,
                    created_at=START,
                )
        return account_id

    async def view(self, account_id: str) -> View:
        async with self.node.db.read() as tx:
            row = await tx.one(repos.VISIBLE, id=self.repo_id, account=account_id)
        assert row is not None
        principal = Principal(
            account_id=account_id,
            handle=account_id[:8],
            kind="user",
            phase="active",
            session_id=account_id,
            session_kind="device",
            expires_at=now_ms() + 10**9,
            caps=frozenset({"admin", "read", "write"}),
            device_key_id=None,
            via="bearer",
        )
        return View(
            node=self.node,
            principal=principal,
            address="127.0.0.1",
            repo=repos.to_row(row),
            role=repos.to_role(row),
            operation=OPERATIONS["live.updates"],
        )

    async def device(self, account_id: str | None = None) -> Device:
        """A registered device of the account (default: the owner's), bootstrapped on main."""
        account_id = account_id or self.owner
        key = DeviceKey.generate()
        async with self.node.db.write() as tx:
            await add(
                tx,
                tables["device_key"],
                id=key.id,
                account_id=account_id,
                ed25519=key.public,
                x25519=bytes(32),
                name="test",
                registration=sign_registration(key, ORIGIN, account_id),
                caps="admin read write",
                created_at=START,
            )
        device = Device(self, key, await self.view(account_id))
        await device.bootstrap()
        return device

    async def files(self, seal_id: str) -> dict[str, bytes]:
        """A seal's tree, each directory verified, with the bytes of every file."""
        view = await self.view(self.owner)
        async with self.node.db.read() as tx:
            root = await seal_rows.root_of(tx, self.repo_id, seal_id)
            steps = tree.walk(root, verification=tree.Verification(view.repo.tree_key))
            found = await trees.drive(steps, trees.loader_of(self.node.objects, tx))
        return {path: await self.node.objects.read(one.digest, self.repo_id) for path, one in found.items()}

    async def put(self, data: bytes) -> str:
        return (await self.node.objects.put(self.repo_id, data)).hex()

    async def put_large(self, data: bytes) -> str:
        """A file above the blob cap, as its chunks and their manifest."""
        rows = [(await self.node.objects.put(self.repo_id, one), len(one)) for one in Large(data).chunks]
        made = chunks.manifest(digest(data), rows)
        await chunked.verify_and_record(await self.view(self.owner), made, chunks.encode(made))
        return made.blake3


@dataclass
class Device:
    """One folder: signs and sends, and remembers the number it has reached."""

    world: World
    key: DeviceKey
    view: View
    branch: str = "main"
    replica: int = 0
    n: int = 0
    branch_id: str = ""
    head: str | None = None
    lanes: dict[int, Lane] = field(default_factory=dict)

    async def bootstrap(self, since: int = 0) -> Bootstrap:
        body = BootstrapRequest(
            device_key_id=self.key.id, replica=self.replica or None, since=since, n=self.n
        )
        answer = await live.bootstrap(self.view, self.branch, body)
        self.replica, self.branch_id, self.head = answer.replica, answer.branch_id, answer.sealed_head
        return answer

    def sign(self, update: LiveUpdate) -> LiveUpdate:
        raw = updates.signing_bytes(self.view.repo.id, self.branch_id, self.replica, self.key.id, update)
        return msgspec.structs.replace(update, signature=b64u(self.key.sign(raw)))

    def make(self, kind: str, path: str, gen: int = 0, base: int = 0, **members: Any) -> LiveUpdate:
        self.n += 1
        return self.sign(
            LiveUpdate(
                n=self.n,
                settled=members.pop("settled", 0),
                path=path,
                kind=kind,  # type: ignore[arg-type]
                gen=gen,
                base=base,
                signature=UNSIGNED,
                **members,
            )
        )

    async def create(self, path: str, data: bytes, gen: int = 0, base: int = 0) -> LiveUpdate:
        blob = await self.world.put(data)
        return self.make("create_text", path, gen, base, blake3=blob, size=len(data))

    async def blob(self, path: str, data: bytes, gen: int = 0, base: int = 0) -> LiveUpdate:
        return self.make("set_blob", path, gen, base, blake3=await self.world.put(data), size=len(data))

    def delete(self, path: str, gen: int, base: int) -> LiveUpdate:
        return self.make("delete", path, gen, base)

    def edit(
        self,
        path: str,
        lane: Lane,
        gen: int,
        new: bytes,
        epoch: int = 0,
        base: int = 0,
        typed: bool = True,
    ) -> LiveUpdate:
        """Edit a lane of ours (changed in place) to `new`, typing."""
        operation = lane.edit(self.replica, new)
        assert operation is not None
        return self.make("edit_text", path, gen, base, epoch=epoch, ops=[b64u(operation)], typed=typed)

    async def text(self, path: str, data: bytes) -> tuple[int, Lane]:
        """A new text: its lane's number, and the lane."""
        answer = await self.one(await self.create(path, data))
        assert answer.result == "ok"
        return answer.gen, Lane.genesis(self.branch_id, answer.gen, 0, data)

    async def send(self, *batch: LiveUpdate, turn: str | None = None) -> list[UpdateAnswer]:
        answers = await live.accept(self.view, self.branch, self.batch(*batch, turn=turn))
        return answers.answers

    async def one(self, update: LiveUpdate) -> UpdateAnswer:
        return (await self.send(update))[0]

    def batch(self, *batch: LiveUpdate, turn: str | None = None) -> UpdateBatch:
        return UpdateBatch(device_key_id=self.key.id, replica=self.replica, updates=list(batch), turn_id=turn)

    async def fetch(self, path: str, gen: int, epoch: int | None = None) -> tuple[LaneState, Lane]:
        """A lane as the relay tells it: genesis, then its state."""
        body = LanesRequest(lanes=[LaneAsked(path=path, gen=gen, epoch=epoch)], replica=self.replica)
        (state,) = (await lanes.read(self.view, self.branch, body)).lanes
        text = await self.world.node.objects.read(bytes.fromhex(state.genesis), self.world.repo_id)
        lane = Lane.genesis(self.branch_id, gen, state.epoch, text)
        if state.state is not None:
            lane.merge(unb64u(state.state))
        assert lane.digest().hex() == state.digest
        return state, lane

    async def prepare(self, head: str | None = None, message: str = "seal") -> Prepared:
        body = PrepareRequest(message=message, device_key_id=self.key.id, expected_head=head)
        return await seal.prepare(self.view, self.branch, body)

    async def finalize(self, prepared: Prepared) -> Seal:
        body = FinalizeRequest(
            prepare_id=prepared.prepare_id,
            device_key_id=self.key.id,
            signature=b64u(self.key.sign(unb64u(prepared.bytes))),
        )
        return await seal.finalize(self.view, self.branch, body)

    async def seal(self, head: str | None = None) -> Seal:
        made = await self.finalize(await self.prepare(head))
        raw = unb64u(made.payload)
        seals.verify(raw, unb64u(made.signature.value), unb64u(made.key.public_key))
        assert seals.seal_id(raw) == made.id
        return made


async def add(tx: Any, table: Any, **values: Any) -> None:
    await tx.many(insert(table), [values])


async def add_account(tx: Any, account_id: str) -> None:
    await add(
        tx,
        tables["account"],
        id=account_id,
        kind="user",
        handle=account_id[:8],
        phase="active",
        operator=False,
        created_at=START,
    )
    await add(
        tx,
        tables["session"],
        id=account_id,
        account_id=account_id,
        kind="device",
        label="test",
        caps="admin read write",
        created_at=START,
        expires_at=START,
    )


@contextlib.asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Node]:
    """A node on the data folder; its database is made when there is none, and its URL kept in the folder."""
    kept = folder / "database"
    if not kept.exists():
        kept.write_text(await asyncio.to_thread(new_url, folder))
    db = connect.make_database(kept.read_text())
    await db.open()
    objects = ObjectStore(folder, db, await buckets.packs_of(folder), verify=True)
    lanes = Lanes()
    try:
        node = Node(
            config=config.read(
                {"TR_REPO_MERGE_ENABLED": "on"}, dev=True, host="127.0.0.1", port=1, data=folder
            ),
            db=db,
            objects=objects,
            signer=Signer(folder),
            hub=Hub(db),
            jobs=Jobs(db),
            followers=Followers(db),
            lanes=lanes,
            limiter=Limiter(enabled=False),
            metrics=Metrics(),
            outbound=Outbound(Reach.of((), dev=True), "test"),
        )
        try:
            yield node
        finally:
            node.share.close()
    finally:
        lanes.close()
        await objects.close()
        await db.close()


@contextlib.asynccontextmanager
async def world(folder: Path, kind: str = "app") -> AsyncIterator[World]:
    """A node with one account and its repository, whose branch main is empty."""
    async with opened(folder) as node:
        made = World(node, uuid.uuid4().hex, uuid.uuid4().hex, str(uuid.uuid4()))
        async with node.db.write() as tx:
            await add_account(tx, made.owner)
            await add(
                tx,
                tables["repo"],
                id=made.repo_id,
                owner_id=made.owner,
                name="r",
                kind=kind,
                **{"class": "private"},
                description="",
                default_branch="main",
                state="active",
                tree_key=digest(b"tree key"),
                tree_key_id="k1",
                created_at=START,
                updated_at=START,
            )
            await quota.count_repository(tx, made.owner, made.repo_id, node.config.quota)
            await add(
                tx,
                tables["ref"],
                id=made.branch_id,
                repo_id=made.repo_id,
                type="branch",
                name="main",
                head=None,
                seq=0,
                sealed_seq=0,
                created_at=START,
                updated_at=START,
            )
        yield made
