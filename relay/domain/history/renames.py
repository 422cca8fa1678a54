"""Detects moved files among changes. The work is limited; moves beyond the limit count as deletions and
additions.
"""

from __future__ import annotations

from collections.abc import Mapping

from localstore.core.diff import renames as kernel
from localstore.core.diff.renames import File, Rename
from localstore.core.tree import TreeEntry
from localstore.core.tree.read import Change
from relay.caller import View
from relay.db.seal import SealRow
from relay.domain.history import sealed
from relay.memory import texts as heavy

Changes = Mapping[str, Change]


async def find(view: View, changes: Changes, *, paid: bool = False) -> list[Rename]:
    """The moved files among `changes`, which has (file before, file after) by path, with None where there is
    no file. `paid`: the caller has already waited for its budget of comparing texts."""
    removed = {path: _to_file(old) for path, (old, new) in changes.items() if old is not None and new is None}
    added = {path: _to_file(new) for path, (old, new) in changes.items() if old is None and new is not None}
    if not removed or not added:
        return []
    moved = kernel.exact(removed, added)
    undecided = kernel.candidates(removed, added, moved)
    if not undecided:
        return moved
    digests = {file.digest for side in undecided for file in side.values()}
    texts = await view.node.objects.read_many(sorted(digests), view.repo.id)
    size = sum(file.size for side in undecided for file in side.values())
    workers = view.node.workers
    work = workers.go_on if paid else workers.run
    return moved + await work(view.payer, size, heavy.find_moves, undecided, texts)


async def find_source(view: View, row: SealRow, parent: SealRow, path: str) -> tuple[str, TreeEntry] | None:
    """Find which file the seal `row` moved to `path`. Returns (path, file) in the first parent, or None."""
    changes = await sealed.changes_in_turn(view, parent.root, row.root)
    before, after = changes.get(path, (None, None))
    if before is not None or after is None:
        return None
    for rename in await find(view, changes):
        was = changes[rename.old][0]
        if rename.new == path and was is not None:
            return rename.old, was
    return None


def _to_file(side: TreeEntry) -> File:
    return File(side.digest, side.size, side.kind == "text")
