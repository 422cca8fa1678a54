"""Checks live frontiers. The log of every lane must give the text of its row, and the repository must have
the objects of all rows.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Container, Sequence

from localstore.core import paths, tree
from localstore.core.errors import SvcError
from localstore.core.model.limits import MIB
from relay.db import ref as refs
from relay.db.engine.database import Database, Row, Tx
from relay.db.live import lane as lanes
from relay.db.live.lane import LaneRow
from relay.db.ref import RefRow
from relay.domain.upkeep.rows import verification as rows
from relay.memory import trees
from relay.memory.lanes import LaneKey, Source
from relay.objects.store import ObjectStore

AT_ONCE = 32 * MIB  # bytes of text


async def check(db: Database, store: ObjectStore) -> AsyncIterator[str]:
    async with db.read() as tx:
        branches = [refs.to_row(row) for row in await tx.all(rows.BRANCHES)]
    for ref in branches:
        async with db.read(snapshot=True) as tx:
            for line in await _check_branch(tx, store, ref):
                yield f"branch {ref.name} of repository {ref.repo_id}: {line}"


async def _check_branch(tx: Tx, store: ObjectStore, ref: RefRow) -> list[str]:
    """Find the errors of one branch's frontier. Returns a sentence for each."""
    branch_id, repo_id = ref.id, ref.repo_id
    seq = await tx.value(rows.SEQ, branch_id=branch_id)
    try:
        base = await trees.drive(tree.walk(ref.base), trees.loader_of(store, tx))
    except SvcError as error:
        return [f"the tree that it began with cannot be read ({error.detail})"]
    changed = [lanes.to_row(lane) for lane in await tx.all(lanes.ALL, branch_id=branch_id)]
    living = [lane for lane in changed if lane.living]
    wrong = [
        f"{lane.path} is of change {max(lane.ver, lane.last_seq)}, the branch has {seq}"
        for lane in living
        if max(lane.ver, lane.last_seq) > seq
    ]
    wrong += await _wrong_directories(tx, branch_id, changed, base)
    wrong += await _wrong_files(tx, repo_id, living)
    edited = [lane for lane in living if lane.kind == "text" and lane.edited]
    for batch in _split_batches(edited):
        wrong += await _wrong_lanes(tx, store, branch_id, batch)
    for final in await tx.all(rows.FINALS, branch_id=branch_id):
        wrong += await _wrong_final(tx, store, branch_id, final)
    return wrong


async def _wrong_directories(
    tx: Tx, branch_id: str, changed: list[LaneRow], base: Container[str]
) -> list[str]:
    """Find the directories whose stored file count is wrong. Returns a sentence for each. The right count is
    the number of files that the branch's base does not have, minus the deleted files of the base."""
    counted: Counter[str] = Counter()
    for lane in changed:
        for parent in paths.parents(lane.path):
            counted[parent] += lane.living - (lane.path in base)
    stored = {str(row[0]): int(row[1]) for row in await tx.all(rows.DIRECTORIES, branch_id=branch_id)}
    return [
        f"directory {path}: {stored.get(path, 0)} files are counted, {counted[path]} are there"
        for path in counted.keys() | stored.keys()
        if stored.get(path, 0) != counted[path]
    ]


async def _wrong_files(tx: Tx, repo_id: str, living: list[LaneRow]) -> list[str]:
    """Find wrong rows of files. Returns a sentence for each, for example that the repository lacks the bytes
    of a file, or the genesis of an edited text."""
    plain = {lane.digest for lane in living if lane.kind != "chunked" and not lane.edited}
    named = sorted(plain | {lane.genesis for lane in living if lane.kind == "text"})
    held = {bytes(d): s for d, s in await tx.all(rows.HELD, repo_id=repo_id, digests=named)} if named else {}
    wrong: list[str] = []
    for lane in living:
        if lane.kind == "text" and lane.genesis not in held:
            wrong.append(f"{lane.path}: its genesis {lane.genesis.hex()} is missing")
        if lane.digest in plain and not lane.edited and lane.kind != "chunked":
            if lane.digest not in held:
                wrong.append(f"{lane.path}: object {lane.digest.hex()} is missing")
            elif held[lane.digest] != lane.size:
                wrong.append(f"{lane.path}: {held[lane.digest]} bytes are held, its row says {lane.size}")
        if lane.kind == "text" and not lane.edited and lane.genesis != lane.digest:
            wrong.append(f"{lane.path}: no edit leads from its genesis to its text")
    return wrong


def _split_batches(edited: list[LaneRow]) -> list[list[LaneRow]]:
    batches: list[list[LaneRow]] = []
    size = AT_ONCE
    for lane in edited:
        if size + lane.size > AT_ONCE:
            batches.append([])
            size = 0
        batches[-1].append(lane)
        size += lane.size
    return batches


async def _wrong_lanes(tx: Tx, store: ObjectStore, branch_id: str, batch: list[LaneRow]) -> list[str]:
    wrong: list[str] = []
    work: list[tuple[LaneKey, LaneRow, Source]] = []
    for lane in batch:
        key = LaneKey(branch_id, lane.gen, lane.epoch)
        try:
            genesis = await store.read(lane.genesis, None, tx)
        except SvcError as error:
            wrong.append(f"{lane.path}: its genesis cannot be read ({error.detail})")
            continue
        log = await tx.all(lanes.LOG, branch_id=branch_id, gen=lane.gen, epoch=lane.epoch)
        work.append((key, lane, Source(genesis, [bytes(row[0]) for row in log])))
    return wrong + await asyncio.to_thread(_check_lanes, work)


def _check_lanes(work: Sequence[tuple[LaneKey, LaneRow, Source]]) -> list[str]:
    wrong: list[str] = []
    for key, row, source in work:
        try:
            lane = source.build(key)
        except SvcError as error:
            wrong.append(f"{row.path}: its log does not apply ({error.detail})")
            continue
        if lane.digest() != row.digest or len(lane.text()) != row.size:
            wrong.append(f"{row.path}: its log gives another text than its row says")
    return wrong


async def _wrong_final(tx: Tx, store: ObjectStore, branch_id: str, final: Row) -> list[str]:
    gen, epoch, genesis, state = final
    try:
        text = await store.read(bytes(genesis), None, tx)
        log = await tx.all(lanes.LOG, branch_id=branch_id, gen=gen, epoch=epoch) if state is None else []
        source = Source(text, [bytes(row[0]) for row in log])
        await asyncio.to_thread(_merge_state, LaneKey(branch_id, gen, epoch), source, state)
    except SvcError as error:
        return [f"lane {gen}: the end of epoch {epoch} does not apply ({error.detail})"]
    return []


def _merge_state(key: LaneKey, source: Source, state: bytes | None) -> None:
    lane = source.build(key)
    if state is not None:
        lane.merge(bytes(state))
