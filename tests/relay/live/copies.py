"""Working copies that live on frames alone: what they show has to be what a bootstrap says."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from sqlalchemy import bindparam, delete, insert, select, update

from localstore.core.encoding import b64u, digest, unb64u
from localstore.core.identity.bearer import to_text
from localstore.core.identity.keys import key_id, verify
from localstore.core.lane.lane import Lane
from localstore.core.lane.update import LiveUpdate, decoded_ops, signing_bytes
from localstore.core.model import live
from localstore.core.model.live import (
    Bootstrap,
    BootstrapRequest,
    LanesRequest,
    LaneStates,
    Row,
    UpdateAnswer,
    UpdateAnswers,
    UpdateBatch,
    UpdatesRequest,
)
from localstore.core.model.sync import Answers, Gap, Live, Opened, People, Refused
from relay.base.clock import now_ms
from relay.db.schema import tables
from svc.api import Api
from svc.api.sync import Heard, SyncSocket
from svc.http.client import Http
from svc.http.credential import Credential
from tests.patience import PATIENCE
from tests.relay.conftest import Account, Relay

T = TypeVar("T")
SECONDS = PATIENCE
Copies = Callable[..., "Copy"]


def api_of(relay: Relay, who: Account) -> Api:
    return Api(Http(relay.url, Credential(to_text(who.token), who.key), sleep=lambda _: None))


@dataclass
class Copy:
    """One working copy of a branch. `texts`: lanes by number and epoch; `read`: up to which number they hold
    what was typed, where they were fetched; `asked`: lanes that were fetched because
    no frame had what they needed."""

    relay: Relay
    who: Account
    repo_id: str
    branch: str = "main"
    n: int = 0
    seq: int = 0
    replica: int = 0
    branch_id: str = ""
    rows: dict[str, Row] = field(default_factory=dict)
    texts: dict[tuple[int, int], Lane] = field(default_factory=dict)
    read: dict[tuple[int, int], int] = field(default_factory=dict)
    asked: int = 0
    gaps: int = 0
    people: dict[str, Any] = field(default_factory=dict)
    told: list[Live] = field(default_factory=list)
    socket: SyncSocket | None = None

    def __post_init__(self) -> None:
        self.api = api_of(self.relay, self.who)
        self.catch_up()

    # --- over HTTP

    def catch_up(self) -> None:
        """Bootstrap from where the copy stands."""
        start = self.bootstrap(self.seq)
        self.replica, self.branch_id, self.seq = start.replica, start.branch_id, start.seq
        for row in start.rows:
            self.rows[row.path] = row
            self._read(row)

    def bootstrap(self, since: int = 0) -> Bootstrap:
        body = BootstrapRequest(
            device_key_id=self.who.key.id, replica=self.replica or None, since=since, n=self.n
        )
        return self.api.send(live.BOOTSTRAP, body, id=self.repo_id, branch=self.branch)

    def _read(self, row: Row) -> None:
        """Fetch the text of a row as the relay has it."""
        if row.kind != "text":
            return
        self.asked += 1
        body = LanesRequest(
            lanes=[live.LaneName(path=row.path, gen=row.gen, epoch=None)], replica=self.replica
        )
        found: LaneStates = self.api.send(live.LANES, body, id=self.repo_id, branch=self.branch)
        for state in found.lanes:
            text = self._bytes(state.genesis)
            lane = Lane.genesis(self.branch_id, state.gen, state.epoch, text)
            if state.state is not None:
                lane.merge(unb64u(state.state))
            self.texts[state.gen, state.epoch] = lane
            self.read[state.gen, state.epoch] = state.ver

    def _bytes(self, named: str) -> bytes:
        return self.relay.run(self.relay.node.objects.read(bytes.fromhex(named), self.repo_id))

    def put(self, data: bytes) -> str:
        return self.relay.run(self.relay.node.objects.put(self.repo_id, data)).hex()

    def sign(self, update: LiveUpdate) -> LiveUpdate:
        raw = signing_bytes(self.repo_id, self.branch_id, self.replica, self.who.key.id, update)
        return msgspec.structs.replace(update, signature=b64u(self.who.key.sign(raw)))

    def make(self, kind: str, path: str, **members: Any) -> LiveUpdate:
        row = self.rows.get(path)
        living = row if row is not None and row.kind != "gone" else None
        self.n += 1
        return self.sign(
            LiveUpdate(
                n=self.n,
                settled=self.n - 1,
                path=path,
                kind=kind,  # type: ignore[arg-type]
                gen=living.gen if living else 0,
                base=row.ver if row else 0,
                signature="",
                **members,
            )
        )

    def create(self, path: str, data: bytes) -> LiveUpdate:
        return self.make("create_text", path, blake3=self.put(data), size=len(data))

    def blob(self, path: str, data: bytes) -> LiveUpdate:
        return self.make("set_blob", path, blake3=self.put(data), size=len(data))

    def delete(self, path: str) -> LiveUpdate:
        return self.make("delete", path)

    def edit(self, path: str, text: bytes) -> LiveUpdate | None:
        """Type the difference; None where the text is this one already."""
        row = self.rows[path]
        scratch = self.texts[row.gen, row.epoch].copy()
        operation = scratch.edit(self.replica, text)
        if operation is None:
            return None
        return self.make("edit_text", path, epoch=row.epoch, ops=[b64u(operation)], typed=True)

    def text(self, path: str) -> bytes:
        row = self.rows[path]
        return self.texts[row.gen, row.epoch].text()

    def batch(self, *updates: LiveUpdate, turn: str | None = None) -> UpdateBatch:
        return UpdateBatch(
            device_key_id=self.who.key.id, replica=self.replica, updates=list(updates), turn_id=turn
        )

    def post(self, *updates: LiveUpdate, turn: str | None = None) -> list[UpdateAnswer]:
        batch = self.batch(*updates, turn=turn)
        body = UpdatesRequest(
            device_key_id=batch.device_key_id, replica=batch.replica, updates=batch.updates, turn_id=turn
        )
        found: UpdateAnswers = self.api.send(live.UPDATES, body, id=self.repo_id, branch=self.branch)
        return found.answers

    # --- over a socket

    def connect(self) -> Opened:
        """Open a socket with a channel of main from where the copy stands."""
        self.socket = self.api.sync.socket()
        self.socket.open(1, self.repo_id, self.branch, self.replica, self.who.key.id, self.seq)
        opened = self.until(Opened)
        self.until(People)
        return opened

    def leave(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def say(self, *updates: LiveUpdate, turn: str | None = None) -> list[UpdateAnswer]:
        """Send updates over the socket; their answers."""
        assert self.socket is not None
        self.socket.send_updates(1, 7, self.batch(*updates, turn=turn))
        return self.until(Answers).answers.answers

    def here(
        self, path: str, line: int = 0, col: int = 0, state: Any = "view", turn: str | None = None
    ) -> None:
        """Say where the user is; somebody has to receive for it to be sent."""
        assert self.socket is not None
        self.socket.send_here(1, path, line, col, state, turn)
        for _ in self.heard(0.01):
            pass

    def until(self, kind: type[T], seconds: float = SECONDS) -> T:
        """Take in what comes until something of this kind does; it is taken in too."""
        for one in self.heard(seconds):
            if isinstance(one, kind):
                return one
        raise AssertionError(f"no {kind.__name__} came")

    def reach(self, seq: int) -> None:
        """Take in what comes until the copy stands at `seq`."""
        if self.seq >= seq:
            return
        for _ in self.heard(SECONDS):
            if self.seq >= seq:
                return
        raise AssertionError(f"stands at {self.seq}, not {seq}")

    def heard(self, seconds: float) -> Iterator[Heard]:
        assert self.socket is not None
        while (one := self.socket.receive(seconds)) is not None:
            self.take(one)
            yield one

    def heard_to_the_end(self, after: float = 0.3) -> list[Heard]:
        """What comes until the channel is refused, however long that takes, and for some seconds after it."""
        assert self.socket is not None
        frames: list[Heard] = []
        while not any(isinstance(frame, Refused) for frame in frames):
            frame = self.socket.receive(SECONDS)
            assert frame is not None, "no Refused came"
            self.take(frame)
            frames.append(frame)
        return [*frames, *self.heard(after)]

    def take(self, one: Heard) -> None:
        match one:
            case Live():
                self.apply(one)
            case Gap():
                self.gaps += 1
                self.catch_up()
            case People():
                self.people.update({person.conn: person for person in one.here})
                for conn in one.gone:
                    self.people.pop(conn, None)

    def apply(self, frame: Live) -> None:
        """As a device does."""
        self.told.append(frame)
        if frame.seq <= self.seq:
            return
        if frame.after != self.seq:
            self.catch_up()
            return
        for one in frame.updates:
            self._verify(one)
            if one.update.kind == "create_text":
                text = self._bytes(one.update.blake3 or "")
                self.texts[one.seq, 0] = Lane.genesis(self.branch_id, one.seq, 0, text)
            elif one.update.kind == "edit_text":
                at = (one.update.gen, one.update.epoch or 0)
                if at in self.texts and self.read.get(at, 0) < one.seq:
                    for operation in decoded_ops(one.update):
                        self.texts[at].apply(operation, one.replica)
        for row in frame.rows:
            other = row.other if frame.replica == self.replica else row.ver
            self.rows[row.path] = Row(
                row.path, row.kind, row.gen, row.epoch, row.ver, other, row.digest, row.size, row.live
            )
            lane = self.texts.get((row.gen, row.epoch))
            if row.kind == "text" and (lane is None or digest(lane.text()).hex() != row.digest):
                self._read(row)
        self.seq = frame.seq

    def _verify(self, one: Any) -> None:
        public = unb64u(one.public_key)
        assert key_id(public) == one.device_key_id
        raw = signing_bytes(self.repo_id, self.branch_id, one.replica, one.device_key_id, one.update)
        assert verify(public, raw, unb64u(one.update.signature, 64))

    # --- judging

    def equals_bootstrap(self) -> None:
        """Whether the copy shows what a new one would be told."""
        start = self.bootstrap()
        assert start.seq == self.seq
        mine = {path: row for path, row in self.rows.items() if row.kind != "gone"}
        theirs = {row.path: row for row in start.rows if row.kind != "gone"}
        assert mine == theirs
        for path, row in mine.items():
            if row.kind == "text":
                assert digest(self.text(path)).hex() == row.digest


async def join(relay: Relay, repo_id: str, account_id: str, role: str = "write") -> None:
    async with relay.node.db.write() as tx:
        values = {"repo_id": repo_id, "account_id": account_id, "role": role, "created_at": now_ms()}
        await tx.many(insert(tables["collaborator"]), [values])


async def access(relay: Relay, repo_id: str, account_id: str, role: str | None) -> int:
    """Give or take a role, with its event, as the routes of access do; where main stands at that event."""
    table, refs = tables["collaborator"], tables["ref"]
    mine = (table.c.repo_id == bindparam("repo")) & (table.c.account_id == bindparam("account"))
    async with relay.node.db.write(f"repo {repo_id}") as tx:
        if role is None:
            await tx.run(delete(table).where(mine), repo=repo_id, account=account_id)
        else:
            values = {"repo": repo_id, "account": account_id, "to": role}
            await tx.run(update(table).where(mine).values(role=bindparam("to")), **values)
        await relay.node.hub.announce(tx, repo_id, "access.change", account=account_id)
        seq: int = await tx.value(select(refs.c.seq).where(refs.c.repo_id == bindparam("repo")), repo=repo_id)
    return seq


def race(ann: Copy, bob: Copy) -> None:
    """Somebody writes without a pause while access is taken from `bob`, who may hear what came before."""
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(
            lambda: (time.sleep(0.05), ann.relay.run(access(ann.relay, ann.repo_id, bob.who.id, None)))[1]
        )
        number = 0
        while not taken.done() or number < 10:
            number += 1
            ann.reach(ann.post(ann.create(f"{secrets.token_hex(4)}.txt", b"x"))[0].seq)
        at = taken.result()
    ann.reach(ann.post(ann.create("after.txt", b"x"))[0].seq)  # all of the above may have come before
    heard = []
    for one in bob.heard(SECONDS):
        heard.append(one)
        if isinstance(one, Refused):
            break
    assert isinstance(heard[-1], Refused)
    assert max([one.seq for one in heard if isinstance(one, Live)], default=0) <= at
    assert not [one for one in bob.heard(0.3) if isinstance(one, Live)]
    assert ann.seq > at
