"""The history of one file under all the names that it had, as `git log --follow`."""

from __future__ import annotations

from typing import NamedTuple, cast

from localstore.core.encoding import is_hex_digest
from localstore.core.errors import Invalid, NotFound
from localstore.core.model.base import Page
from localstore.core.model.history import CommitsQuery, SealSummary
from localstore.core.tree import check_path
from relay.caller import View
from relay.db import seal as seals
from relay.db.paging import Cursor, page_size
from relay.domain.history import history, renames, sealed
from relay.domain.history.wire import to_wire

NAMES_MAX = 100  # of one file that a page goes through


class _Position(NamedTuple):
    """A position in the walk through a file's history: the walk continues at the seal `at` and follows the
    file at `path`. Of the seals that may have changed the file, it skips the first `skip`."""

    at: str
    skip: int
    path: str


async def list_seals_of_file(view: View, query: CommitsQuery) -> Page[SealSummary]:
    """List the seals in the history of a ref or seal that changed the file of the query, newest first. If a
    seal moved the file, older seals are searched for its old path."""
    if not query.path:
        raise Invalid("following needs the path of one file", pointer="/path")
    check_path(query.path)
    if query.ref is not None and query.sha is not None:
        raise Invalid("ask for ref or for sha, not for both", pointer="/sha")
    size = page_size(query.limit)
    position = await _find_start(view, query.sha or query.ref, query.path, query.cursor)
    seal_ids: list[str] = []
    for _ in range(NAMES_MAX):
        if position is None or len(seal_ids) >= size:
            break
        position = await _add_seals(view, position, size, seal_ids, first_parent=query.first_parent)
    async with view.read() as tx:
        listed = await history.load_seals(tx, view, seal_ids)
    return Page(
        items=[history.to_summary(to_wire(row)) for row in listed],
        next_cursor=Cursor.write(*position) if position else None,
    )


async def _find_start(view: View, name: str | None, path: str, cursor: str | None) -> _Position | None:
    """Find the position at which the walk through the file's history starts. Returns None for a branch
    without a seal."""
    if cursor is not None:
        at, skip, then = cast("tuple[str, int, str]", Cursor.read(cursor, "", 0, ""))
        if not is_hex_digest(at) or not 0 <= skip < history.PAGE_SKIP_MAX:
            raise Invalid(
                "this cursor does not belong to this list; start again without it", pointer="/cursor"
            )
        check_path(then)
        return _Position(at, skip, then)
    async with view.read() as tx:
        head = await sealed.find_head(view, tx, name or view.repo.default_branch)
    return _Position(head, 0, path) if head is not None else None


async def _add_seals(
    view: View, position: _Position, size: int, seal_ids: list[str], *, first_parent: bool
) -> _Position | None:
    """Append to `seal_ids` the seals that changed the file at the position's path, until the list has `size`
    ids. Stops at a seal that moved the file here from another path. Returns the position at which to
    continue, or None at the end."""
    ids, behind = await history.find_touching(
        view, position.at, position.path, position.skip, size - len(seal_ids), first_parent=first_parent
    )
    for seal_id in ids:
        seal_ids.append(seal_id)
        before = await _find_source(view, seal_id, position.path, first_parent=first_parent)
        if before is not None:
            return before
    return position._replace(skip=behind) if behind is not None else None


async def _find_source(view: View, seal_id: str, path: str, *, first_parent: bool) -> _Position | None:
    """If the seal moved the file here from another path, return the position at which to continue: the old
    path in the seal's parent. Returns None for other seals. A merge does not count as a move if a seal that
    it merged has a file at `path`; then an older seal made the move, and the walk reaches that one too."""
    async with view.read() as tx:
        parents = (await seals.find_parents(tx, [seal_id]))[seal_id]
        sources = await seals.held_sources(tx, view.repo.id, [seal_id])
        sides = [] if first_parent else [*parents[1:], *sources[seal_id]]
        rows = {row.id: row for row in await history.load_seals(tx, view, [seal_id, *parents[:1], *sides])}
    for side in sides:
        if side in rows and path in await sealed.find_entries(view, rows[side].root, [path]):
            return None
    if not parents or parents[0] not in rows:
        return None
    parent = rows[parents[0]]
    try:
        there = await sealed.find_entries(view, parent.root, [path])
    except NotFound:
        return None
    if path in there:
        return None
    source = await renames.find_source(view, rows[seal_id], parent, path)
    return _Position(parent.id, 0, source[0]) if source is not None else None
