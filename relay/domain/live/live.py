"""The live frontier for devices: its first download, lane states, updates, checkpoints."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from functools import partial
from typing import NamedTuple

import msgspec

from localstore.core.encoding import b64u, hex_digest
from localstore.core.errors import Forbidden, Invalid, SignatureInvalid, TooLarge, Unavailable
from localstore.core.identity.keys import verify
from localstore.core.lane import update as updates
from localstore.core.model import limits
from localstore.core.model.live import (
    Bootstrap,
    BootstrapRequest,
    ProofContext,
    ProofContextRequest,
    UpdateAnswer,
    UpdateAnswers,
    UpdateBatch,
)
from localstore.core.names import MANIFEST
from relay.caller import View
from relay.db.engine.database import Author, Look, Tx
from relay.db.live import lane as rows
from relay.db.live import replica as replica_rows
from relay.db.live.lane import LaneRow
from relay.db.live.replica import KeyRow, ReplicaRow
from relay.db.ref import RefRow
from relay.domain.history import content, live_updates
from relay.domain.history.live_update_format import Asked
from relay.domain.live import branch_base, frames, frontier, lane_work
from relay.domain.live import checkpoint as checkpoints
from relay.domain.live import replica as replicas
from relay.domain.live.branch_base import Base, Lacking
from relay.domain.live.lane_work import Bench, OtherEdit, Replay, Workbench
from relay.domain.live.rules import Batch, Frontier
from relay.domain.protection import protection
from relay.domain.storage import chunked
from relay.memory.lanes import LaneKey, Source

VERIFIED_AT_ONCE = 4  # updates verified without a thread, whose start costs as much
ATTEMPTS = 5  # to decide while other processes or seals change the lanes
_encoded = msgspec.msgpack.Encoder().encode
_ANSWER = msgspec.msgpack.Decoder(tuple)


async def bootstrap(view: View, branch: str, body: BootstrapRequest) -> Bootstrap:
    """Rows of the live frontier, all or those changed since a number, and the replica id of the working copy

    A new replica id is the only thing written. Everything else is read from one snapshot of the branch.
    """
    if body.replica is not None:
        view.require_whole()
        async with view.read(snapshot=True) as tx:
            ref = await frontier.find_branch(tx.one, view.repo.id, branch)
            key = await my_key(tx.one, view, body.device_key_id)
            replica_row = await replicas.find_own(tx, view, ref, key, body.replica)
            replicas.require_clock(replica_row, body.n)
            return await _read_frontier(tx, view, ref, key, body.since, replica_row.id)
    async with view.write() as tx:
        view.require_whole()
        ref = await frontier.find_branch(tx.one, view.repo.id, branch)
        key = await my_key(tx.one, view, body.device_key_id)
        replica = await replicas.issue(tx, view, ref, key)
        await view.node.hub.announce(
            tx,
            view.repo.id,
            "replica.create",
            audience="writer",
            branch=ref.name,
            branch_id=ref.id,
            replica=replica,
        )
    async with view.read(snapshot=True) as tx:  # listing files needs no write lock
        ref = await frontier.find_branch(tx.one, view.repo.id, branch)
        return await _read_frontier(tx, view, ref, key, body.since, replica)


async def _read_frontier(tx: Tx, view: View, ref: RefRow, key: KeyRow, since: int, replica: int) -> Bootstrap:
    if since:
        changed = await tx.all(rows.SINCE, branch_id=ref.id, since=since)
        frontier_rows = [branch_base.row_to_wire(rows.to_row(row), replica) for row in changed]
    else:
        frontier_rows = await branch_base.to_wire(view.node, tx, ref, replica)
    live_by = await frontier.live_by(tx, ref, key.id)
    return Bootstrap(
        branch_id=ref.id,
        replica=replica,
        seq=ref.seq,
        sealed_head=ref.head,
        tree_key=b64u(view.repo.tree_key),
        tree_key_id=view.repo.tree_key_id,
        rows=frontier_rows,
        kind=view.repo.kind,
        repo=view.repo.full_name,
        class_=view.repo.class_,
        live_by=live_by,
    )


async def proof_context(view: View, branch: str, body: ProofContextRequest) -> ProofContext:
    """The exact bytes that a device signs for an update"""
    async with view.read() as tx:
        ref = await frontier.find_branch(tx.one, view.repo.id, branch)
    replicas.check_id(body.replica)
    raw = updates.signing_bytes(view.repo.id, ref.id, body.replica, body.device_key_id, body.update)
    return ProofContext(bytes=b64u(raw), digest=hex_digest(raw))


async def accept(view: View, branch: str, batch: UpdateBatch) -> UpdateAnswers:
    """Apply a batch in one transaction. Each update is checked in the order that the lane protocol gives
    (docs/design/004)."""
    if not batch.updates or any(update.kind != "delete" for update in batch.updates):
        view.node.reserve.require()
    signatures = _check_shape(batch)
    ref = await frontier.find_branch(view.node.db.lookup, view.repo.id, branch)
    key = await my_key(view.node.db.lookup, view, batch.device_key_id)
    async with view.read() as tx:
        texts = await _find_texts(tx, view, batch)
    if len(batch.updates) <= VERIFIED_AT_ONCE:
        operations = _verify_updates(view.repo.id, ref.id, batch, signatures, key.ed25519)
    else:
        operations = await asyncio.to_thread(
            _verify_updates, view.repo.id, ref.id, batch, signatures, key.ed25519
        )
    requested = list(zip(batch.updates, operations, strict=True))
    async with view.node.lanes.turn(ref.id):
        return await _land_batch(view, ref, batch, requested, texts)


async def _land_batch(
    view: View, ref: RefRow, batch: UpdateBatch, requested: list[Asked], texts: frozenset[bytes]
) -> UpdateAnswers:
    """Decide on the batch of updates and write its changes. Long computations run before the transaction; if
    the lanes have changed meanwhile, they run again. `requested`: the updates with their decoded operations.
    `texts`: digests of the new files that are text."""
    view.node.share.require(view.me.account_id)
    computed: _WorkedBatch | None = None
    began = Base()
    for _ in range(ATTEMPTS):
        try:
            async with view.write() as tx:
                done, answers = await _take(tx, view, ref, batch, requested, texts, computed, began)
                keep = partial(lane_work.keep, view.node.lanes, done.bench, _rows_by_lane(done.frontier))
                tx.after_commit(keep)
        except Lacking as lacking:
            async with view.read() as tx:
                await branch_base.look_up(view.node, tx, ref, lacking, began)
            continue
        except _Costly as costly:
            computed = await _compute(view, costly.work, requested)
            continue
        return answers
    raise Unavailable("this branch is changing too fast; try again")


async def _take(
    tx: Tx,
    view: View,
    ref: RefRow,
    batch: UpdateBatch,
    requested: list[Asked],
    texts: frozenset[bytes],
    computed: _WorkedBatch | None,
    began: Base,
) -> tuple[Batch, UpdateAnswers]:
    seq = await frontier.lock(tx, ref.id)
    await protection.check(tx, view, ref.name, "write")
    key = await my_key(tx.one, view, batch.device_key_id)
    replica = await replicas.find_own(tx, view, ref, key, batch.replica)
    numbers = [update.n for update in batch.updates]
    stored = await tx.all(replica_rows.ANSWERS, replica_id=replica.id, numbers=numbers)
    named = _collect_named(batch)
    edited = {u.path for u in batch.updates if u.kind == "edit_text" and "\0" not in u.path}
    others = {u.path for u in batch.updates if u.kind != "edit_text" and "\0" not in u.path}
    if _may_raise_cap(view, batch):
        edited.add(MANIFEST)
    before = await frontier.load(tx, ref, seq, others, edited, began)
    large = _collect_named(batch, above=limits.BLOB_FILE)
    if large:
        await chunked.touch(tx, view.repo.id, large)
    work = Batch(
        frontier=before,
        replica=replica.id,
        repo_kind=view.repo.kind,
        settled=replica.settled,
        answers={n: decode_answer(answer) for n, answer in stored},
        held=await content.protect_held(view.node, tx, view.repo.id, named),
        large=await chunked.find_sizes(tx, view.repo.id, large),
        texts=texts,
        bench=Bench({}, {}),
        manifests=await _find_manifests(tx, view, before, batch),
        highest=replica.highest,
    )
    done = await _decide(tx, view, work, requested, computed)
    await frontier.save(tx, before, done.frontier, view.me.account_id, key.id)
    await _remember(tx, replica, done)
    await live_updates.keep(tx, view, ref.id, key.id, replica.id, seq, requested, done.done)
    after = done.frontier
    checkpoint = await checkpoints.add_for_turn(tx, ref.id, after.seq, batch.turn_id)
    if after.seq != seq:
        await checkpoints.when_idle(tx, view.node, ref.id)
        turn = batch.turn_id or view.turn
        sent = frames.to_signed(batch, requested, done.done, seq, key, view.me.handle, turn)
        author = Author(view.me.account_id, key.id, turn)
        await frames.write_frame(tx, view, ref, seq, after, sent, author, replica.id)
    return done, UpdateAnswers(seq=after.seq, answers=done.done, checkpoint=checkpoint)


class _WorkedBatch(NamedTuple):
    """A batch of updates whose edits of texts were computed outside of a transaction. `given`: the batch
    before the computation. `taken`: the batch with the decision on each update. `bench`: the texts that the
    edits make, for the transaction, which does not compute them again."""

    given: Batch
    taken: Batch
    bench: Bench


class _Costly(Exception):
    """Raised if the edits of a batch must first be computed outside of the transaction. The transaction has
    changed nothing."""

    def __init__(self, work: Batch) -> None:
        super().__init__()
        self.work = work


async def _decide(
    tx: Tx, view: View, work: Batch, requested: list[Asked], computed: _WorkedBatch | None
) -> Batch:
    """Decide on the updates of the batch by the rules. Returns the batch with its answers and changes. Uses
    edits that were computed before, or computes them now if they are small. The same input always gives the
    same answers. Raises _Costly if edits must be computed first."""
    if computed is not None and computed.given == work:
        return computed.taken
    if computed is not None:
        decided = _begin(work, Replay(computed.bench))
        try:
            decided.run(requested)
        except OtherEdit:
            raise _Costly(work) from None
        return decided
    edits = _find_edits(work, requested)
    if not lane_work.is_small(view.node.lanes, work.frontier.branch_id, edits):
        raise _Costly(work)
    decided = _begin(work, await _make_bench(tx, view, work, edits))
    began = time.perf_counter()
    decided.run(requested)
    view.node.share.count_spent(view.me.account_id, time.perf_counter() - began)
    return decided


async def _compute(view: View, work: Batch, requested: list[Asked]) -> _WorkedBatch:
    """Compute the edits of the batch outside of transactions, in slices, on the lanes that `work` has. Raises
    RateLimited if the account's budget is used up."""
    async with view.read(snapshot=True) as tx:
        bench = await _make_bench(tx, view, work, _find_edits(work, requested))
    trial = _begin(work, bench)
    await view.node.share.finish(view.me.account_id, partial(trial.run, requested))
    return _WorkedBatch(work, trial, bench)


def _find_edits(work: Batch, requested: list[Asked]) -> list[tuple[LaneRow, list[bytes]]]:
    """Find the rows that edits of the batch change. Returns (row before the batch, operations) for each
    edit."""
    return [
        (row, operations)
        for update, operations in requested
        if update.kind == "edit_text"
        and (row := work.frontier.living(update.path))
        and row.kind == "text"
        and row.gen == update.gen
    ]


async def _make_bench(tx: Tx, view: View, work: Batch, edits: list[tuple[LaneRow, list[bytes]]]) -> Bench:
    rows = {row.path: row for row, _ in edits}
    branch_id = work.frontier.branch_id
    desk = await frontier.open_desk(view.node, tx, view.repo.id, branch_id, rows.values())
    return Bench(desk.lanes, desk.sources)


def _rows_by_lane(after: Frontier) -> dict[LaneKey, LaneRow]:
    return {frontier.key_of(after.branch_id, row): row for row in after.rows.values() if row.living}


async def _find_manifests(tx: Tx, view: View, before: Frontier, batch: UpdateBatch) -> dict[bytes, bytes]:
    """Read the manifests (`.svc.yaml`) that the frontier has, or may have after an update of this batch.
    Returns their bytes by digest. Returns {} unless a file of the batch is over the common size limit and a
    manifest could raise that limit."""
    if not _may_raise_cap(view, batch):
        return {}
    named = {
        bytes.fromhex(u.blake3 or "") for u in batch.updates if u.path == MANIFEST and u.kind == "create_text"
    }
    manifests: dict[bytes, bytes] = {}
    row = before.living(MANIFEST)
    if row is not None and row.kind == "text" and row.size <= limits.MANIFEST_BYTES:
        if row.edited:
            sources = await frontier.find_sources(view.node, tx, view.repo.id, before.branch_id, [row])
            manifests[row.digest] = await view.node.lanes.run(_build_text, sources)
        else:
            named.add(row.digest)
    sizes = await content.find_sizes(tx, view.repo.id, named)
    small = [digest for digest, size in sizes.items() if size <= limits.MANIFEST_BYTES]
    return manifests | dict(await content.read(view.node, tx, view.repo.id, small))


def _may_raise_cap(view: View, batch: UpdateBatch) -> bool:
    """Whether a file of the batch is over the common size limit and a manifest could raise that limit."""
    return view.repo.kind == "app" and any((u.size or 0) > limits.BLOB_FILE for u in batch.updates)


def _build_text(sources: dict[LaneKey, Source]) -> bytes:
    """Build the text of the one lane in `sources`, which has the lane's first text and its operations. Runs
    on the thread that works on lanes."""
    ((key, source),) = sources.items()
    return source.build(key).text()


def _begin(work: Batch, bench: Workbench) -> Batch:
    """Copy the batch `work`, so that its updates can be applied to the copy. The copy has no answers yet.
    `bench`: computes the edits of the copy."""
    copy, manifests = work.frontier.copy(), dict(work.manifests)
    return dataclasses.replace(work, frontier=copy, bench=bench, manifests=manifests, fresh={}, done=[])


async def _remember(tx: Tx, replica: ReplicaRow, done: Batch) -> None:
    """Store the new answers of the batch, so that a repeated update gets the same answer. Delete those that
    the device has received."""
    if not done.fresh:
        return
    await tx.many(
        replica_rows.ANSWER,
        [
            {"replica": replica.id, "n": n, "answer": _encoded(msgspec.structs.astuple(answer))}
            for n, answer in done.fresh.items()
            if n > done.settled
        ],
    )
    await replicas.settle(tx, replica, done.settled, done.highest)


def _check_shape(batch: UpdateBatch) -> list[bytes]:
    """Check the limits of a batch. Returns the decoded signatures. Raises Invalid or TooLarge."""
    if len(batch.updates) > limits.UPDATES_PER_BATCH:
        raise TooLarge(f"a batch holds at most {limits.UPDATES_PER_BATCH} updates")
    if batch.turn_id is not None and (
        not 0 < len(batch.turn_id) <= limits.TURN_CHARS
        or "\0" in batch.turn_id
        or not batch.turn_id.isprintable()
    ):
        raise Invalid(f"turn_id is 1 to {limits.TURN_CHARS} printable characters", pointer="/turn_id")
    replicas.check_id(batch.replica)
    return [updates.check(update) for update in batch.updates]


def _verify_updates(
    repo_id: str, branch_id: str, batch: UpdateBatch, signatures: list[bytes], public: bytes
) -> list[list[bytes]]:
    """Verify that the key signed every update. Returns the decoded operations of each update. Raises
    SignatureInvalid."""
    decoded: list[list[bytes]] = []
    for update, signature in zip(batch.updates, signatures, strict=True):
        ops = updates.decoded_ops(update)
        raw = updates.signing_bytes(repo_id, branch_id, batch.replica, batch.device_key_id, update, ops)
        if not verify(public, raw, signature):
            raise SignatureInvalid(
                f"update {update.n} is not signed by this device key",
                pointer=f"/updates/{len(decoded)}/signature",
            )
        decoded.append(ops)
    return decoded


async def _find_texts(tx: Tx, view: View, batch: UpdateBatch) -> frozenset[bytes]:
    """Find which of the files that `create_text` updates name are text. Returns their digests."""
    named = {bytes.fromhex(u.blake3 or "") for u in batch.updates if u.kind == "create_text"}
    cached = view.node.lanes.texts.among(named)
    sizes = await content.find_sizes(tx, view.repo.id, named - cached)
    fits = {digest: size for digest, size in sizes.items() if size <= limits.TEXT_FILE}
    text_digests = await content.find_texts(view.node, tx, view.repo.id, fits)
    view.node.lanes.texts.add(text_digests)
    return frozenset(text_digests | cached)


def decode_answer(raw: bytes) -> UpdateAnswer:
    """Decode an answer from its form in the database."""
    return UpdateAnswer(*_ANSWER.decode(raw))


def _collect_named(batch: UpdateBatch, above: int = -1) -> set[bytes]:
    """The digests that updates of the batch name for files with more than `above` bytes."""
    return {bytes.fromhex(u.blake3) for u in batch.updates if u.blake3 and (u.size or 0) > above}


async def my_key(look: Look, view: View, key_id: str) -> KeyRow:
    key = await frontier.find_key(look, view.me.account_id, key_id)
    if key is None:
        raise Forbidden("this device key is not registered to you, or was revoked; run: svc login")
    return key
