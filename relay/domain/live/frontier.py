"""Loads and saves the live frontier of a branch (its files now, with unsealed edits). Loads only the part
that a change needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable
from typing import TypeVar

import msgspec

from localstore.core import paths
from localstore.core.errors import NotFound, TooLarge
from localstore.core.identity.keys import KEY_ID_CHARS
from localstore.core.model import limits
from localstore.core.tree import TreeEntry
from relay.base.clock import now_ms
from relay.db import ref as refs
from relay.db.engine.database import Look, Tx
from relay.db.live import lane as rows
from relay.db.live import replica as replicas
from relay.db.live.lane import LaneRow
from relay.db.live.replica import KeyRow
from relay.db.ref import RefRow
from relay.domain.history import content
from relay.domain.live.branch_base import Base, Lacking, look_up
from relay.domain.live.rules import Frontier
from relay.memory.lanes import Desk, LaneKey, Source
from relay.node import Node

R = TypeVar("R")
NOTHING = Base()


async def find_branch(look: Look, repo_id: str, name: str) -> RefRow:
    """Find the row of the branch with this name. Raises NotFound if there is none. `look`: a function that
    runs a statement and returns its first row."""
    row = await look(refs.ONE, repo_id=repo_id, type="branch", name=name)
    if row is None:
        raise NotFound
    return refs.to_row(row)


async def find_key(look: Look, account_id: str, key_id: str) -> KeyRow | None:
    """Find the account's registered key. Returns None if it is unknown or revoked. `look`: a function that
    runs a statement and returns its first row."""
    if len(key_id) != KEY_ID_CHARS or not key_id.isascii() or "\0" in key_id:
        return None
    row = await look(replicas.KEY, key_id=key_id)
    key = replicas.to_key(row) if row else None
    return key if key and key.account_id == account_id and key.revoked_at is None else None


async def live_by(
    tx: Tx, ref: RefRow, device_key_id: str, among: Container[str] | None = None
) -> dict[str, list[str]]:
    """Find who has changed files since the newest seal, with other devices than this one. Returns the handles
    of these people by path. `among`: the paths to look at; None means all."""
    handles: dict[str, list[str]] = {}
    for path, handle in await tx.all(
        rows.LIVE_BY, branch_id=ref.id, since=ref.sealed_seq, device_key_id=device_key_id
    ):
        if among is None or path in among:
            handles.setdefault(path, []).append(handle or "")
    return handles


async def lock(tx: Tx, branch_id: str) -> int:
    """Lock the branch's counter of live updates until the transaction ends. Returns the value of the
    counter."""
    seq = await tx.value(rows.LOCK, ref_id=branch_id)
    if seq is None:
        raise NotFound
    return int(seq)


async def load(
    tx: Tx, ref: RefRow, seq: int, changing: Iterable[str], staying: Iterable[str] = (), base: Base = NOTHING
) -> Frontier:
    """Load a part of the live frontier: the rows of the paths `changing` and `staying`. `changing`: paths at
    which files may be created or deleted; the data to detect clashes with directories is loaded too.
    `staying`: paths at which no file is created or deleted. `base`: what was looked up of the branch's base.
    Raises Lacking if more of the base must be looked up."""
    changing_paths = set(changing)
    names = sorted(changing_paths.union(*map(paths.parents, changing_paths)))
    rest = sorted(set(staying).difference(names))
    stored = await tx.all(rows.BY_PATH, branch_id=ref.id, paths=names + rest)
    counted = await tx.all(rows.DIRECTORIES, branch_id=ref.id, paths=names)
    by_path = {row.path: row for row in map(rows.to_row, stored)}
    directories = {str(path): int(files) for path, files in counted}
    if ref.base is None:
        return Frontier(ref.id, seq, by_path, directories)
    # A file of the base above a changed path no longer exists.
    absent = {
        path
        for path in names + rest
        if path not in by_path and (path in changing_paths or path not in directories)
    }
    suspects = changing_paths.intersection(directories)
    emptied = {path for path in suspects if directories[path] < 0}  # how many are left of how many?
    lacking = (absent | suspects) - base.seen
    uncounted = {path for path in emptied if path not in base.seen or path in base.directories}
    uncounted -= base.below.keys()
    if lacking or uncounted:
        raise Lacking(lacking, uncounted)
    fresh = {path: base.files[path] for path in absent if path in base.files}
    below = {path: base.below.get(path, 1) for path in changing_paths if path in base.directories}
    taken = await _find_edited_gens(tx, ref.id, [row.gen for row in fresh.values()])
    return Frontier(ref.id, seq, by_path | fresh, directories, below, frozenset(fresh), taken)


async def load_with_base(
    node: Node,
    tx: Tx,
    ref: RefRow,
    seq: int,
    changing: Collection[str],
    base: Base,
    staying: Collection[str] = (),
) -> Frontier:
    """Load a part of the live frontier, with the arguments of `load`. Missing parts of the branch's base are
    looked up and added to `base`."""
    while True:
        try:
            return await load(tx, ref, seq, changing, staying, base)
        except Lacking as lacking:
            await look_up(node, tx, ref, lacking, base)


async def _find_edited_gens(tx: Tx, branch_id: str, gens: list[int]) -> frozenset[int]:
    if not gens:
        return frozenset()
    return frozenset(row[0] for row in await tx.all(rows.EDITED_GENS, branch_id=branch_id, gens=gens))


async def find_sources(
    node: Node, tx: Tx, repo_id: str, branch_id: str, lanes: Iterable[LaneRow]
) -> dict[LaneKey, Source]:
    """Read the sources from which these lanes are built: their first texts and the operations since. `lanes`:
    rows of text files. Raises TooLarge if the texts exceed the memory for texts."""
    text_rows = list(lanes)
    if sum(row.size for row in text_rows) > limits.LOADED_TEXTS:
        raise TooLarge(f"these texts have more than {limits.LOADED_TEXTS} bytes together; name fewer at once")
    texts = await content.read(node, tx, repo_id, [row.genesis for row in text_rows])
    by_lane = {key_of(branch_id, row): Source(texts[row.genesis], []) for row in text_rows}
    edited = [row.path for row in text_rows if row.edited]
    for gen, epoch, operation in await tx.all(rows.LOGS, branch_id=branch_id, paths=edited):
        source = by_lane.get(LaneKey(branch_id, gen, epoch))  # None: its epoch began meanwhile
        if source is not None:
            source.operations.append(bytes(operation))
    return by_lane


async def open_desk(node: Node, tx: Tx, repo_id: str, branch_id: str, texts: Collection[LaneRow]) -> Desk:
    """Collect the lanes (live texts) of these rows, to work on them. Lanes in memory are borrowed. For each
    other lane, the data from which it is built is read. `texts`: rows of text files."""
    absent = [row for row in texts if node.lanes.peek(key_of(branch_id, row), row.stand) is None]
    loaded_desk = Desk({}, await find_sources(node, tx, repo_id, branch_id, absent))
    late: list[LaneRow] = []  # borrowed by another request meanwhile
    for row in texts:
        if (key := key_of(branch_id, row)) in loaded_desk.sources:
            continue
        lane = node.lanes.borrow(key, row.stand)
        if lane is None:
            late.append(row)
        else:
            loaded_desk.lanes[key] = lane
    if late:
        loaded_desk.sources |= await find_sources(node, tx, repo_id, branch_id, late)
    return loaded_desk


async def with_lanes(
    node: Node, tx: Tx, repo_id: str, branch_id: str, texts: Collection[LaneRow], work: Callable[[Desk], R]
) -> R:
    """Run `work` on the lanes (live texts) of these rows, in a thread, and return its result. `texts`: rows
    of text files. `work` must not change the lanes."""
    lent = await open_desk(node, tx, repo_id, branch_id, texts)
    result = await node.lanes.run(work, lent)
    for row in texts:
        lane = lent.lanes.get(key := key_of(branch_id, row))
        if lane is not None:
            node.lanes.give_back(key, row.stand, lane, row.size)
    return result


async def save(tx: Tx, before: Frontier, after: Frontier, account_id: str, device_key_id: str) -> None:
    """Write to the database the changes between `before` and its changed copy `after`. The number of
    statements does not depend on the number of changes."""
    if after.seq == before.seq:
        return
    branch_id = after.branch_id
    changed = [after.rows[path] for path in after.changed]
    stored = before.rows.keys() - before.unwritten
    await tx.many(rows.INSERT, [to_values(branch_id, row) for row in changed if row.path not in stored])
    await tx.many(rows.UPDATE, [to_values(branch_id, row) for row in changed if row.path in stored])
    await _save_directories(tx, branch_id, before.directories, after.directories)
    await tx.many(
        rows.APPEND,
        [
            {
                "branch_id": branch_id,
                "gen": key.gen,
                "epoch": key.epoch,
                "seq": operation.seq,
                "part": operation.part,
                "operation": operation.data,
                "account_id": account_id,
                "device_key_id": device_key_id,
            }
            for key, operations in after.log.items()
            for operation in operations
        ],
    )
    await tx.many(rows.COUNT, [{"ref_id": branch_id, "to": after.seq, "now": now_ms()}])


async def _save_directories(tx: Tx, branch_id: str, before: dict[str, int], after: dict[str, int]) -> None:
    moved = {path: files for path, files in after.items() if before.get(path) != files}
    await tx.many(
        rows.INSERT_DIRECTORY,
        [{"branch_id": branch_id, "path": p, "files": n} for p, n in moved.items() if p not in before],
    )
    await tx.many(
        rows.COUNT_DIRECTORY,
        [{"at_branch": branch_id, "at_path": p, "files": n} for p, n in moved.items() if p in before],
    )


def to_values(branch_id: str, row: LaneRow) -> dict[str, object]:
    """The parameters by name for the statements that insert or update this row."""
    columns = msgspec.structs.asdict(row)
    columns["branch_id"] = columns["at_branch"] = branch_id
    columns["at_path"] = row.path
    if row.genesis == row.digest:
        columns["genesis"] = None
    return columns


def key_of(branch_id: str, row: LaneRow) -> LaneKey:
    return LaneKey(branch_id, row.gen, row.epoch)


def entry_of(row: LaneRow | None) -> TreeEntry | None:
    """The file of a row, as a tree entry. None if there is no file."""
    if row is None or not row.living:
        return None
    return TreeEntry(row.kind, row.digest, row.size)  # type: ignore[arg-type]
