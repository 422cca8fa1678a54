"""A small relay in memory, by the rules of docs/design/004: the oracle of the histories test.

Real signatures, real lanes, real packs, real seals; no faults, no clock, no access rules.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from localstore.core import seal as seals
from localstore.core.encoding import b64u, unb64u, unhex
from localstore.core.errors import Invalid, NotFound, SignatureInvalid
from localstore.core.identity.keys import DeviceKey, verify
from localstore.core.lane.lane import Lane
from localstore.core.lane.update import LiveUpdate, check, decoded_ops, signing_bytes
from localstore.core.model.base import Actor
from localstore.core.model.history import Seal, SealKey, SealProvenance, SealSignature, Tree, TreeFile
from localstore.core.model.live import (
    Bootstrap,
    BootstrapRequest,
    ClockReused,
    LanesRequest,
    LaneState,
    LaneStates,
    ReplicaUnknown,
    Row,
    UpdateAnswer,
    UpdateAnswers,
    UpdateBatch,
)
from localstore.core.model.ref import Ref, StaleHead
from localstore.core.model.seal import FinalizeRequest, Prepared, PrepareRequest, SealChange
from localstore.core.storage.pack import Pack, PackReader, write_packs
from localstore.core.tree import TreeEntry as TreeEntry
from localstore.core.tree import root_digest
from localstore.sync.transfer.transport import Transport

REPO_ID = "repo-1"
TREE_KEY = bytes(range(32))


@dataclass
class File:
    """A row of the frontier. `lane` is None for bytes and for text that nobody touched since `genesis`."""

    kind: str
    gen: int
    genesis: bytes
    size: int
    ver: int
    epoch: int = 0
    lane: Lane | None = None
    last: dict[int, int] = field(default_factory=dict)
    log: list[tuple[int, int, Sequence[bytes]]] = field(default_factory=list)  # (seq, replica, operations)

    def content(self) -> bytes:
        return self.lane.digest() if self.lane else self.genesis

    def other(self, replica: int) -> int:
        return max((seq for who, seq in self.last.items() if who != replica), default=0)


Files = dict[str, tuple[str, bytes, int]]


class Mixed(NamedTuple):
    """A text, the one that a sender had who did not know it, and what a typed edit made of both."""

    theirs: bytes
    mine: bytes
    both: bytes


@dataclass
class Branch:
    id: str
    seq: int = 0
    head: str | None = None
    files: dict[str, File] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)
    answers: dict[tuple[int, int], UpdateAnswer] = field(default_factory=dict)
    settled: dict[int, int] = field(default_factory=dict)
    highest: dict[int, int] = field(default_factory=dict)


@dataclass
class Sealed:
    seal: Seal
    files: Files


class ModelRelay:
    """All branches of one repository."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        self.objects: dict[bytes, bytes] = {}
        self.branches = {name: Branch(f"branch-{name}") for name in ("main", "side")}
        self.seals: dict[str, Sealed] = {}
        self.keys: dict[str, DeviceKey] = {}
        self.replicas: dict[int, str] = {}
        self.prepared: dict[str, tuple[str, bytes, Files, int, str | None]] = {}
        self.done: dict[str, str] = {}
        self.accepted: list[tuple[str, LiveUpdate]] = []
        self.refuses_moved = True  # captured edits of lanes that others have changed since
        self.typed = 0  # updates that came as typed ones
        self.mixed: list[Mixed] = []

    def transport(self, branch: str, key: DeviceKey) -> ModelTransport:
        self.keys[key.id] = key
        return ModelTransport(self, branch)

    def text(self, name: str, path: str) -> bytes:
        """What the frontier holds at a path."""
        file = self.branches[name].files[path]
        return file.lane.text() if file.lane else self.objects[file.genesis]

    def tree(self, name: str) -> dict[str, bytes]:
        return {path: self.text(name, path) for path in self.branches[name].files}

    def sealed_tree(self, seal_id: str | None) -> dict[str, bytes]:
        files = self.seals[seal_id].files if seal_id else {}
        return {path: self.objects[content] for path, (_, content, _) in files.items()}

    # --- backups

    def backup(self) -> Callable[[], None]:
        """Keep branches, seals and replicas as they are now. Returns what restores them."""
        branches = {name: _copied(branch) for name, branch in self.branches.items()}
        seals, replicas = dict(self.seals), dict(self.replicas)

        def restore() -> None:
            self.branches = {name: _copied(branch) for name, branch in branches.items()}
            self.seals, self.replicas = dict(seals), dict(replicas)

        return restore

    # --- one update

    def update(self, name: str, replica: int, key_id: str, update: LiveUpdate) -> UpdateAnswer:
        branch = self.branches[name]
        check(update)
        signed = signing_bytes(REPO_ID, branch.id, replica, key_id, update)
        if not verify(self.keys[key_id].public, signed, unb64u(update.signature, 64)):
            raise SignatureInvalid("the update is not signed by its device")
        if update.n <= branch.settled.get(replica, 0):
            return UpdateAnswer(n=update.n, result="settled")
        if (replica, update.n) in branch.answers:
            return branch.answers[replica, update.n]
        for n in range(branch.settled.get(replica, 0) + 1, update.settled + 1):
            branch.answers.pop((replica, n), None)
        branch.settled[replica] = max(update.settled, branch.settled.get(replica, 0))
        branch.highest[replica] = max(update.n, branch.highest.get(replica, 0))
        answer = self._apply(branch, replica, update)
        branch.answers[replica, update.n] = answer
        if answer.result == "ok":
            self.accepted.append((name, update))
        return answer

    def _apply(self, branch: Branch, replica: int, update: LiveUpdate) -> UpdateAnswer:
        file = branch.files.get(update.path)
        if update.kind == "edit_text":
            return self._edit(branch, replica, update, file)
        if update.kind == "delete" and file is None:
            return UpdateAnswer(n=update.n, result="ok", seq=branch.seq)
        if update.kind != "delete":
            kind, content = "text" if update.kind == "create_text" else "blob", unhex(update.blake3 or "")
            if file is not None and (file.kind, file.content()) == (kind, content):
                return self._ok(update, file)
            if content not in self.objects:
                return UpdateAnswer(n=update.n, result="refused", code="payload_missing")
        if update.gen != (file.gen if file else 0) or (file and file.other(replica) > update.base):
            return UpdateAnswer(n=update.n, result="stale")
        if update.kind == "delete":
            del branch.files[update.path]
            branch.seq += 1
            branch.gone[update.path] = branch.seq
            return UpdateAnswer(n=update.n, result="ok", seq=branch.seq)
        if _collides(update.path, branch.files):
            return UpdateAnswer(n=update.n, result="stale")
        branch.seq += 1
        branch.gone.pop(update.path, None)
        created = File(kind, branch.seq, content, len(self.objects[content]), branch.seq)
        created.last[replica] = branch.seq
        branch.files[update.path] = created
        return self._ok(update, created)

    def _edit(self, branch: Branch, replica: int, update: LiveUpdate, file: File | None) -> UpdateAnswer:
        if file is None or file.gen != update.gen or file.kind != "text":
            return UpdateAnswer(n=update.n, result="stale")
        if file.epoch != update.epoch:
            return UpdateAnswer(n=update.n, result="epoch")
        self.typed += update.typed
        if self.refuses_moved and not update.typed and file.other(replica) > update.base:
            return UpdateAnswer(n=update.n, result="refused", code="lane_moved")
        lane, ops = self._lane(branch, file), decoded_ops(update)
        mixes, theirs = update.typed and file.other(replica) > update.base, lane.text()
        mine = self._alone(branch, file, replica, update.base, ops) if mixes else b""
        for op in ops:
            lane.apply(op, replica)
        file.lane = lane
        if mixes:
            self.mixed.append(Mixed(theirs, mine, lane.text()))
        branch.seq += 1
        file.log.append((branch.seq, replica, ops))
        file.ver = file.last[replica] = branch.seq
        file.size = len(lane.text())
        self.objects[lane.digest()] = lane.text()
        return self._ok(update, file)

    def _alone(self, branch: Branch, file: File, replica: int, base: int, ops: Sequence[bytes]) -> bytes:
        """The text that the sender of these operations had: without what others wrote after `base`."""
        alone = Lane.genesis(branch.id, file.gen, file.epoch, self.objects[file.genesis])
        for seq, who, earlier in file.log:
            for op in earlier if seq <= base or who == replica else ():
                alone.apply(op, who)
        for op in ops:
            alone.apply(op, replica)
        return alone.text()

    def _lane(self, branch: Branch, file: File) -> Lane:
        return file.lane or Lane.genesis(branch.id, file.gen, file.epoch, self.objects[file.genesis])

    def _ok(self, update: LiveUpdate, file: File) -> UpdateAnswer:
        return UpdateAnswer(
            n=update.n, result="ok", seq=file.ver, gen=file.gen, epoch=file.epoch, digest=file.content().hex()
        )

    def new_epochs(self, branch: Branch, files: Files, at: int) -> None:
        for path, file in branch.files.items():
            if file.kind != "text" or file.ver > at or self.random.random() < 0.5:
                continue
            file.epoch += 1
            file.genesis, file.lane, file.log = files[path][1], None, []


def _copied(branch: Branch) -> Branch:
    files = {
        path: replace(
            file, lane=file.lane and Lane.load(file.lane.state()), last=dict(file.last), log=list(file.log)
        )
        for path, file in branch.files.items()
    }
    kept = (branch.gone, branch.answers, branch.settled, branch.highest)
    gone, answers, settled, highest = (dict(one) for one in kept)  # type: ignore[call-overload]
    return replace(branch, files=files, gone=gone, answers=answers, settled=settled, highest=highest)


class ModelTransport(Transport):
    """The relay as one device meets it."""

    def __init__(self, relay: ModelRelay, branch: str) -> None:
        self.relay, self.name = relay, branch

    @property
    def branch(self) -> Branch:
        return self.relay.branches[self.name]

    def bootstrap(self, request: BootstrapRequest) -> Bootstrap:
        replica = request.replica
        if replica is None:
            replica = len(self.relay.replicas) + 1000
            self.relay.replicas[replica] = request.device_key_id
        elif replica not in self.relay.replicas:
            raise ReplicaUnknown("this replica id was not issued")
        elif self.relay.replicas.get(replica) != request.device_key_id:
            raise Invalid("the replica belongs to another key")
        elif request.n < self.branch.highest.get(replica, 0):
            raise ClockReused("the folder is older than what it sent before")
        rows = [
            Row(
                path=path,
                kind=file.kind,
                gen=file.gen,
                epoch=file.epoch,
                ver=file.ver,
                other=file.other(replica),
                digest=file.content().hex(),
                size=file.size,
                live=file.lane is not None,
            )
            for path, file in self.branch.files.items()
            if file.ver > request.since
        ]
        rows += [
            Row(path=path, kind="gone", gen=0, epoch=0, ver=seq, other=0, digest="", size=0)
            for path, seq in self.branch.gone.items()
            if seq > request.since > 0
        ]
        return Bootstrap(
            branch_id=self.branch.id, replica=replica, seq=self.branch.seq, sealed_head=self.branch.head,
            tree_key=b64u(TREE_KEY), tree_key_id="tree-key-1", rows=rows,
            live_by=self._live_by(request.device_key_id),
        )  # fmt: skip

    def _live_by(self, mine: str) -> dict[str, list[str]]:
        """Who else touched the paths that differ from the seal; the model calls people by their key."""
        sealed = self.relay.seals[self.branch.head].files if self.branch.head else {}
        found = {}
        for path, file in self.branch.files.items():
            others = {self.relay.replicas[who] for who in file.last if self.relay.replicas[who] != mine}
            if others and sealed.get(path) != (file.kind, file.content(), file.size):
                found[path] = sorted(others)
        return found

    def lanes(self, request: LanesRequest) -> LaneStates:
        found, missing = [], []
        for name in request.lanes:
            file = self.branch.files.get(name.path)
            if file is None or file.gen != name.gen:
                missing.append(name.path)
                continue
            found.append(
                LaneState(
                    path=name.path,
                    kind=file.kind,
                    gen=file.gen,
                    epoch=file.epoch,
                    ver=file.ver,
                    other=max(file.last.values(), default=0),
                    digest=file.content().hex(),
                    size=file.size,
                    genesis=file.genesis.hex(),
                    state=b64u(file.lane.state()) if file.lane else None,
                )
            )
        return LaneStates(lanes=found, missing=missing)

    def updates(self, batch: UpdateBatch) -> UpdateAnswers:
        answers = [
            self.relay.update(self.name, batch.replica, batch.device_key_id, update)
            for update in batch.updates
        ]
        return UpdateAnswers(seq=self.branch.seq, answers=answers)

    def have(self, digests: Sequence[bytes]) -> list[bytes]:
        return [one for one in digests if one not in self.relay.objects]

    def upload_pack(self, pack: Pack) -> None:
        reader = PackReader(pack.toc_digest)
        for part in pack.parts():
            for frame in reader.feed(part):
                self.relay.objects.update((name, bytes(data)) for name, data in frame.objects())
        reader.close()

    def fetch_pack(self, digests: Sequence[bytes]) -> Iterator[bytes]:
        wanted = [(one, self.relay.objects[one], True) for one in digests if one in self.relay.objects]
        packs = list(write_packs(wanted))
        assert len(packs) <= 1
        for pack in packs or [Pack(msgspec.msgpack.encode([]), [])]:
            yield from pack.parts()

    def prepare(self, request: PrepareRequest) -> Prepared:
        branch = self.branch
        if request.expected_head != branch.head:
            raise StaleHead(self.name, branch.head)
        files = {path: (file.kind, file.content(), file.size) for path, file in branch.files.items()}
        parent = self.relay.seals[branch.head].files if branch.head else {}
        entries = {path: TreeEntry(*file) for path, file in files.items()}
        content = root_digest(entries, TREE_KEY)
        when = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=len(self.relay.prepared))
        raw = seals.encode(
            seals.SealPayload(
                repo_id=REPO_ID,
                branch=self.name,
                parents=[branch.head] if branch.head else [],
                content_digest=content.hex(),
                tree_key_id="tree-key-1",
                message=request.message,
                provenance=seals.Provenance(
                    account_id="account",
                    device_key_id=request.device_key_id,
                    capability="write",
                    author=request.author,
                ),
                created_at=seals.timestamp(when),
                nonce=b64u(self.relay.random.randbytes(16)),
            )
        )
        changes = [
            SealChange(path=path, kind=kind, digest=one.hex(), size=size)
            for path, (kind, one, size) in files.items()
            if parent.get(path) != (kind, one, size)
        ]
        changes += [SealChange(path=path, kind=None) for path in parent if path not in files]
        live_by = {path: ["somebody"] for path, file in branch.files.items() if len(file.last) > 1}
        mine = {replica for replica, key in self.relay.replicas.items() if key == request.device_key_id}
        live_by |= {path: ["other"] for path, file in branch.files.items() if not mine & file.last.keys()}
        name = f"prepare-{len(self.relay.prepared)}"
        self.relay.prepared[name] = (self.name, raw, files, branch.seq, branch.head)
        return Prepared(
            prepare_id=name, bytes=b64u(raw), digest=seals.seal_id(raw), content_digest=content.hex(),
            at=branch.seq, expires_at=seals.timestamp(when), changes=changes, live_by=live_by,
            unchanged=files == parent and branch.head is not None,
        )  # fmt: skip

    def finalize(self, request: FinalizeRequest) -> Seal:
        _, raw, files, at, parent = self.relay.prepared[request.prepare_id]
        sealed_id = seals.seal_id(raw)
        if sealed_id in self.relay.seals:
            return self.relay.seals[sealed_id].seal
        if self.branch.head != parent:
            raise StaleHead(self.name, self.branch.head)
        seals.verify(raw, unb64u(request.signature), self.relay.keys[request.device_key_id].public)
        one = self._seal(raw, request)
        self.relay.seals[sealed_id] = Sealed(one, files)
        self.branch.head = sealed_id
        self.relay.new_epochs(self.branch, files, at)
        return one

    def _seal(self, raw: bytes, request: FinalizeRequest) -> Seal:
        payload, key = seals.decode(raw), self.relay.keys[request.device_key_id]
        return Seal(
            id=seals.seal_id(raw), sha=seals.seal_id(raw), branch=payload.branch, parents=payload.parents,
            content_digest=payload.content_digest, message=payload.message,
            provenance=SealProvenance(who=Actor(id="account"), device_key_id=key.id, capability="write"),
            created_at=payload.created_at,
            signature=SealSignature(alg="ed25519", key_id=key.id, value=request.signature),
            payload=b64u(raw),
            key=SealKey(
                id=key.id, public_key=b64u(key.public), account="account",
                registered_at=payload.created_at, revoked_at=None, registration="",
            ),
        )  # fmt: skip

    def ref(self) -> Ref:
        return Ref(id=self.branch.id, type="branch", name=self.name, head=self.branch.head)

    def head(self) -> str | None:
        return self.branch.head

    def seal(self, seal_id: str) -> Seal:
        if seal_id not in self.relay.seals:
            raise NotFound("no such seal")
        return self.relay.seals[seal_id].seal

    def tree(self, seal_id: str) -> Tree:
        found = self.relay.seals[seal_id]
        entries = [
            TreeFile(path=path, kind=kind, blake3=one.hex(), size=size)
            for path, (kind, one, size) in sorted(found.files.items())
        ]
        return Tree(
            sha=seal_id, content_digest=found.seal.content_digest, path="", recursive=True, filtered=False,
            entries=entries, tree_key=b64u(TREE_KEY), tree_key_id="tree-key-1",
        )  # fmt: skip


def _collides(path: str, files: dict[str, File]) -> bool:
    """Whether a file would lie under a file, or over a directory."""
    above = path.split("/")
    under = any("/".join(above[:depth]) in files for depth in range(1, len(above)))
    return under or (path not in files and any(other.startswith(path + "/") for other in files))


__all__ = ["REPO_ID", "ModelRelay", "ModelTransport"]
