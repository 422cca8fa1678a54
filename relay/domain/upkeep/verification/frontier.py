"""Live frontiers: every lane's log gives the text of its row, and the repository holds what rows name."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Container, Sequence

from localstore.core import paths, tree
from localstore.core.errors import SvcError
from localstore.core.limits import MIB
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
        branches = [refs.row(one) for one in await tx.all(rows.BRANCHES)]
    for ref in branches:
        async with db.read(snapshot=True) as tx:
            for line in await _branch(tx, store, ref):
                yield f"branch {ref.name} of repository {ref.repo_id}: {line}"


async def _branch(tx: Tx, store: ObjectStore, ref: RefRow) -> list[str]:
    """What is wrong with the frontier of one branch, a sentence for each fault."""
    branch_id, repo_id = ref.id, ref.repo_id
    seq = await tx.value(rows.SEQ, branch_id=branch_id)
    try:
        base = await trees.drive(tree.walk(ref.base), trees.stored(store, tx))
    except SvcError as error:
        return [f"the tree that it began with cannot be read ({error.detail})"]
    changed = [lanes.row(one) for one in await tx.all(lanes.ALL, branch_id=branch_id)]
    living = [one for one in changed if one.living]
    wrong = [
        f"{one.path} is of change {max(one.ver, one.last_seq)}, the branch has {seq}"
        for one in living
        if max(one.ver, one.last_seq) > seq
    ]
    wrong += await _wrong_directories(tx, branch_id, changed, base)
    wrong += await _wrong_files(tx, repo_id, living)
    edited = [one for one in living if one.kind == "text" and one.edited]
    for lot in _lots(edited):
        wrong += await _wrong_lanes(tx, store, branch_id, lot)
    for final in await tx.all(rows.FINALS, branch_id=branch_id):
        wrong += await _wrong_final(tx, store, branch_id, final)
    return wrong


async def _wrong_directories(
    tx: Tx, branch_id: str, changed: list[LaneRow], base: Container[str]
) -> list[str]:
    """Files are counted apart from those that the branch began with."""
    counted: Counter[str] = Counter()
    for one in changed:
        for parent in paths.parents(one.path):
            counted[parent] += one.living - (one.path in base)
    stored = {str(one[0]): int(one[1]) for one in await tx.all(rows.DIRECTORIES, branch_id=branch_id)}
    return [
        f"directory {path}: {stored.get(path, 0)} files are counted, {counted[path]} are there"
        for path in counted.keys() | stored.keys()
        if stored.get(path, 0) != counted[path]
    ]


async def _wrong_files(tx: Tx, repo_id: str, living: list[LaneRow]) -> list[str]:
    """What a row names is held: the bytes of a file, the genesis of an edited text."""
    plain = {one.digest for one in living if one.kind != "chunked" and not one.edited}
    named = sorted(plain | {one.genesis for one in living if one.kind == "text"})
    held = {bytes(d): s for d, s in await tx.all(rows.HELD, repo_id=repo_id, digests=named)} if named else {}
    wrong: list[str] = []
    for one in living:
        if one.kind == "text" and one.genesis not in held:
            wrong.append(f"{one.path}: its genesis {one.genesis.hex()} is missing")
        if one.digest in plain and not one.edited and one.kind != "chunked":
            if one.digest not in held:
                wrong.append(f"{one.path}: object {one.digest.hex()} is missing")
            elif held[one.digest] != one.size:
                wrong.append(f"{one.path}: {held[one.digest]} bytes are held, its row says {one.size}")
        if one.kind == "text" and not one.edited and one.genesis != one.digest:
            wrong.append(f"{one.path}: no edit leads from its genesis to its text")
    return wrong


def _lots(edited: list[LaneRow]) -> list[list[LaneRow]]:
    lots: list[list[LaneRow]] = []
    size = AT_ONCE
    for one in edited:
        if size + one.size > AT_ONCE:
            lots.append([])
            size = 0
        lots[-1].append(one)
        size += one.size
    return lots


async def _wrong_lanes(tx: Tx, store: ObjectStore, branch_id: str, lot: list[LaneRow]) -> list[str]:
    wrong: list[str] = []
    work: list[tuple[LaneKey, LaneRow, Source]] = []
    for one in lot:
        key = LaneKey(branch_id, one.gen, one.epoch)
        try:
            genesis = await store.read(one.genesis, None, tx)
        except SvcError as error:
            wrong.append(f"{one.path}: its genesis cannot be read ({error.detail})")
            continue
        log = await tx.all(lanes.LOG, branch_id=branch_id, gen=one.gen, epoch=one.epoch)
        work.append((key, one, Source(genesis, [bytes(row[0]) for row in log])))
    return wrong + await asyncio.to_thread(_rebuilt, work)


def _rebuilt(work: Sequence[tuple[LaneKey, LaneRow, Source]]) -> list[str]:
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
        await asyncio.to_thread(_merged, LaneKey(branch_id, gen, epoch), source, state)
    except SvcError as error:
        return [f"lane {gen}: the end of epoch {epoch} does not apply ({error.detail})"]
    return []


def _merged(key: LaneKey, source: Source, state: bytes | None) -> None:
    lane = source.build(key)
    if state is not None:
        lane.merge(bytes(state))
