"""The base of a branch: the tree that it started with (docs/design/004). Its files are on the live frontier
without a row until they are changed. So a new branch stores only its changes.

Each file of the base has a lane. Its lane number is computed from branch and path, so it need not be stored.
It is above the numbers that the branch counts up, and below the numbers that devices assign.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from localstore.core import tree
from localstore.core.encoding import digest, length_prefixed
from localstore.core.model.live import Row
from localstore.core.tree import Child, TreeEntry
from relay.db.engine.database import Tx
from relay.db.live import lane as rows
from relay.db.live.lane import LaneRow
from relay.db.ref import RefRow
from relay.memory import trees
from relay.node import Node

START = 1  # first number of a branch with a base; all files of the base have this number
NUMBERS = 1 << 51  # lane numbers from here on belong to a base


@dataclass(slots=True)
class Base:
    """The part of a branch's base (the tree that the branch started with) that was looked up so far. The base
    never changes.

    `seen`: the paths that were looked up. `files`: the files among them. `directories`: the digests of the
    directories among them. `below`: the number of files below a directory, for some directories.
    """

    seen: set[str] = field(default_factory=set)
    files: dict[str, LaneRow] = field(default_factory=dict)
    directories: dict[str, bytes] = field(default_factory=dict)
    below: dict[str, int] = field(default_factory=dict)


class Lacking(Exception):
    """Raised if a transaction needs a part of the base that was not looked up yet. The transaction has
    changed nothing. `paths`: the paths to look up. `counted`: directories whose files are to be counted."""

    def __init__(self, paths: Collection[str], counted: Collection[str]) -> None:
        super().__init__()
        self.paths, self.counted = paths, counted


def _first_number(branch_id: str, directory: str) -> int:
    """The lane number of the first child of this directory of the base. The second child has the next number,
    and so on. After the highest possible number comes the lowest."""
    return int.from_bytes(
        digest(length_prefixed(b"svc-base-lane-v1", branch_id.encode(), directory.encode()))[:8]
    )


def _number_of(first: int, place: int) -> int:
    return NUMBERS | (first + place) % NUMBERS


async def look_up(node: Node, tx: Tx, ref: RefRow, lacking: Lacking, base: Base) -> None:
    """Look up the paths and the numbers of files that `lacking` lists, and add them to `base`. Call it
    outside of a write transaction if possible."""
    load = trees.loader_of(node.objects, tx)
    children = await trees.drive(tree.find(ref.base, lacking.paths), load, len(lacking.paths))
    base.seen.update(lacking.paths)
    for path, (place, child) in children.items():
        if child.kind == "dir":
            base.directories[path] = child.digest
        else:
            first = _first_number(ref.id, path.rpartition("/")[0])
            base.files[path] = _to_row(path, _number_of(first, place), child.entry)
    digests = {path: base.directories[path] for path in lacking.counted if path in base.directories}
    counts = await node.files.count(load, digests.values())
    base.below.update({path: counts[directory] for path, directory in digests.items()})


async def to_wire(node: Node, tx: Tx, ref: RefRow, replica: int) -> list[Row]:
    """Every file of the branch's live frontier, in the form in which `replica` receives it."""
    changed = [rows.to_row(row) for row in await tx.all(rows.ALL, branch_id=ref.id)]
    there = await trees.drive(tree.directories(ref.base), trees.loader_of(node.objects, tx))
    frontier_rows, many = await asyncio.to_thread(_list_rows, ref.id, changed, there, replica)
    if ref.base is not None:
        node.files.learn(ref.base, many)
    return frontier_rows


def row_to_wire(row: LaneRow, replica: int) -> Row:
    return Row(
        path=row.path,
        kind=row.kind,  # type: ignore[arg-type]
        gen=row.gen,
        epoch=row.epoch,
        ver=row.ver,
        other=row.other(replica),
        digest=row.digest.hex(),
        size=row.size,
        live=row.edited,
    )


async def list_below(node: Node, tx: Tx, ref: RefRow, path: str) -> list[str]:
    """List the paths of the files of the branch's live frontier that are below a directory."""
    rows_below = await tx.all(rows.BELOW, branch_id=ref.id, first=path + "/", last=path + "0")
    changed = {str(row[0]): row[1] for row in rows_below}
    living = [file_path for file_path, kind in changed.items() if kind != "gone"]
    if ref.base is None:
        return living
    steps = tree.walk(ref.base, path)
    there = await trees.drive(steps, trees.loader_of(node.objects, tx))
    return living + [file_path for file_path in there if file_path not in changed and file_path != path]


def _list_rows(
    branch_id: str, changed: list[LaneRow], base: Mapping[str, list[Child]], replica: int
) -> tuple[list[Row], int]:
    """Make the rows of every file of the branch's live frontier. `changed`: the stored rows. `base`: the
    children of each directory of the branch's base. Returns (rows, number of files in the base)."""
    changed_paths = {row.path for row in changed}
    frontier_rows = [row_to_wire(row, replica) for row in changed if row.living]
    many = 0
    for directory, children in base.items():
        first, above = _first_number(branch_id, directory), directory and f"{directory}/"
        for place, child in enumerate(children):
            if (kind := child.kind) == "dir":
                continue
            many += 1
            if (path := above + child.name) not in changed_paths:
                number = _number_of(first, place)
                frontier_rows.append(Row(path, kind, number, 0, START, START, child.digest.hex(), child.size))
    return frontier_rows, many


def _to_row(path: str, number: int, file: TreeEntry) -> LaneRow:
    return LaneRow(path, file.kind, number, 0, START, file.digest, file.size, file.digest, False, 0, START, 0)
