"""Reading sealed history: the walk (the seals of a history, newest first), and one seal."""

from __future__ import annotations

from typing import cast

import msgspec

from localstore.core import seal as kernel
from localstore.core.encoding import is_hex_digest
from localstore.core.errors import Invalid, NotFound, SvcError
from localstore.core.identity import keys
from localstore.core.model.base import Page
from localstore.core.model.history import (
    CommitsQuery,
    LogQuery,
    Seal,
    SealLine,
    SealSummary,
)
from localstore.core.tree import check_path
from relay.caller import View
from relay.db import history as walks
from relay.db import seal as rows
from relay.db.engine.database import LIST_CHUNK, Tx
from relay.db.paging import Cursor, page_size
from relay.db.seal import SealRow
from relay.domain.history import sealed
from relay.domain.history.merge_base import only_in_head
from relay.domain.history.wire import to_wire

PAGE_SKIP_MAX = 2**53
WRONG_CURSOR = "this cursor does not belong to this list; start again without it"
BEGINNINGS = 1024  # root seals and merges whose trees one page of a path's log may read
SEARCHED = (1024, 16_384, walks.ALL_STEPS)  # first parents that a search for a path goes back by
LOOKED_AT = 64  # candidates whose merges are read together


async def list_seals(
    view: View,
    ref: str | None,
    sha: str | None,
    path: str | None,
    cursor: str | None,
    limit: int | None,
    *,
    first_parent: bool = False,
) -> Page[SealSummary]:
    """List the seals in the history of a ref or seal, each before all its ancestors. With `path`, only seals
    that changed the path or something below it. `first_parent`: without seals that were merged."""
    if ref is not None and sha is not None:
        raise Invalid("ask for ref or for sha, not for both", pointer="/sha")
    if sha is not None and not is_hex_digest(sha):
        raise NotFound
    page_rows, next_cursor = await _load_page(
        view, sha if sha is not None else ref, path, cursor, limit, first_parent=first_parent
    )
    return Page(items=[to_summary(to_wire(row)) for row in page_rows], next_cursor=next_cursor)


async def only_in(view: View, query: CommitsQuery) -> Page[SealSummary]:
    """The seals in the history of the query's ref or seal that are not in the history of `query.without`,
    newest first. The cursor keeps the seals at which both histories begin, so all pages show the same
    histories even if branches move."""
    if query.ref is not None and query.sha is not None:
        raise Invalid("ask for ref or for sha, not for both", pointer="/sha")
    size = page_size(query.limit)
    head_then, base_then, skip = cast("tuple[str, str, int]", Cursor.read(query.cursor, "", "", 0))
    if not 0 <= skip < PAGE_SKIP_MAX or any(at and not is_hex_digest(at) for at in (head_then, base_then)):
        raise Invalid(WRONG_CURSOR, pointer="/cursor")
    start = query.sha if query.sha is not None else query.ref
    async with view.read(snapshot=True) as tx:
        head = head_then or await sealed.find_head(
            view, tx, view.repo.default_branch if start is None else start
        )
        base = base_then or await sealed.find_head(view, tx, query.without or "")
        if head is None:
            return Page(items=[], next_cursor=None)
        for end in (head, base):
            if end is not None:
                await _require_seal(tx, view, end)
        if base is None:
            ids = await walk(tx, view, head, skip, size + 1, first_parent=query.first_parent)
        else:
            alone = await only_in_head(tx, view.repo.id, base, head, first_parent=query.first_parent)
            ids = alone[skip : skip + size + 1]
        page_rows = await load_seals(tx, view, ids[:size])
    more = Cursor.write(head, base or "", skip + size) if len(ids) > size else None
    return Page(items=[to_summary(to_wire(row)) for row in page_rows], next_cursor=more)


async def by_prefix(view: View, prefix: str, limit: int | None) -> Page[SealSummary]:
    """Seals whose ids begin with `prefix`, at most one page. Only seals in the history of a branch or tag are
    found, so that nobody can find seals of deleted branches by guessing."""
    span = {"repo_id": view.repo.id, "low": prefix, "high": f"{prefix}g"}
    async with view.read(snapshot=True) as tx:
        oldest: int | None = await tx.value(walks.OLDEST, **span)
        if oldest is None:
            return Page(items=[], next_cursor=None)
        reached = walks.REACHED[view.node.db.dialect]
        reached_rows = await tx.all(reached, **span, since=oldest, limit=page_size(limit))
        listed = await load_seals(tx, view, [row[0] for row in reached_rows])
    return Page(items=[to_summary(to_wire(row)) for row in listed], next_cursor=None)


async def list_verified(view: View, query: LogQuery) -> Page[Seal]:
    """List the seals in the history of a ref, newest first, each with the result of verifying its
    signature."""
    page_rows, next_cursor = await _load_page(
        view, query.ref, None, query.cursor, query.limit, first_parent=query.first_parent
    )
    return Page(items=[_verify_seal(view, row) for row in page_rows], next_cursor=next_cursor)


async def list_lines(view: View, query: LogQuery) -> Page[SealLine]:
    """List the seals in the history of a ref, newest first, with ids and messages only."""
    page_rows, next_cursor = await _load_page(
        view, query.ref, None, query.cursor, query.limit, first_parent=query.first_parent
    )
    return Page(
        items=[SealLine(id=row.id, message=row.message) for row in page_rows], next_cursor=next_cursor
    )


async def seal(view: View, seal_id: str) -> Seal:
    """One seal with its provenance, signature and key"""
    return _verify_seal(view, await sealed.seal(view, seal_id))


async def _load_page(
    view: View,
    start: str | None,
    path: str | None,
    cursor: str | None,
    limit: int | None,
    *,
    first_parent: bool,
) -> tuple[list[SealRow], str | None]:
    """Load a page of a history, newest seals first. Returns (seals, cursor of the next page); the cursor is
    None at the end. The cursor names the seal where the history begins, so that the pages belong together
    even if branches move. `path`: only seals that changed this path."""
    size = page_size(limit)
    if path:
        check_path(path)
    at, skip = _read_position(cursor)
    async with view.read(snapshot=True) as tx:
        head = at or await sealed.find_head(view, tx, view.repo.default_branch if start is None else start)
        if head is None:
            return [], None
        if not path:
            ids = await walk(tx, view, head, skip, size + 1, first_parent=first_parent)
            page_rows = await load_seals(tx, view, ids[:size])
            return page_rows, Cursor.write(head, skip + size) if len(ids) > size else None
    ids, behind = await find_touching(view, head, path, skip, size, first_parent=first_parent)
    async with view.read() as tx:
        page_rows = await load_seals(tx, view, ids)
    return page_rows, Cursor.write(head, behind) if behind is not None else None


def _read_position(cursor: str | None) -> tuple[str, int]:
    at, skip = cast("tuple[str, int]", Cursor.read(cursor, "", 0))
    if not 0 <= skip < PAGE_SKIP_MAX or (at and not is_hex_digest(at)):
        raise Invalid(WRONG_CURSOR, pointer="/cursor")
    return at, skip


async def walk(
    tx: Tx, view: View, head: str, skip: int, limit: int, *, first_parent: bool = False
) -> list[str]:
    """The ids of the seals at the positions `skip` to `skip + limit` in the walk from `head` (its history,
    newest first). Raises NotFound unless `head` is a seal of the repository."""
    await _require_seal(tx, view, head)
    start = {"head": head, "repo_id": view.repo.id}
    steps = min(skip + limit, walks.ALL_STEPS)
    if first_parent:
        return [row[0] for row in await tx.all(walks.LINE, **start, skip=skip, steps=steps - 1)]
    # As many first parents are as many seals: nothing older than the last of them is on the page.
    down, last = (await tx.all(walks.LINE_END, **start, steps=steps))[0]
    since = last if down == steps else 0
    statement = walks.WALK[view.node.db.dialect]
    return [row[0] for row in await tx.all(statement, **start, limit=limit, skip=skip, since=since)]


async def _require_seal(tx: Tx, view: View, head: str) -> None:
    """Raise NotFound unless the repository has this seal."""
    if await tx.value(walks.HELD, head=head, repo_id=view.repo.id) is None:
        raise NotFound


async def find_touching(
    view: View, head: str, path: str, skip: int, size: int, *, first_parent: bool = False
) -> tuple[list[str], int | None]:
    """Find seals in the history of `head`, newest first, that changed the path. `skip`: how many candidates
    (seals that may have changed it) to skip. Returns (ids, next). `ids`: at most `size` ids. `next`: the
    value of `skip` for the next page, or None at the end.

    In a partial fork, an empty page would reveal that hidden paths were changed. So there the search
    continues until it finds a seal, and each further search counts against the caller's budget.
    """
    while True:
        ids, behind = await _walk_touching(view, head, path, skip, size, first_parent=first_parent)
        if ids or behind is None or not view.repo.partial:
            return ids, behind
        async with view.node.streams.turn(view.payer, view.lease) as step:
            step.count(behind - skip, 0)
        skip = behind


async def _walk_touching(
    view: View, head: str, path: str, skip: int, size: int, *, first_parent: bool
) -> tuple[list[str], int | None]:
    """Find seals in the history of `head`, newest first, that changed the path. Arguments and result are
    those of `find_touching`.

    The first seal of a history counts as changing everything in its tree. A merge counts as changing only
    what differs from every tree that it merged. If very many candidates turn out not to have changed the
    path, there are fewer than `size` ids although more follow.
    """
    span = {"path": path, "below": f"{path}/", "behind": f"{path}0"}  # "0" is the character behind "/"
    limit = size + BEGINNINGS
    start = {"head": head, "repo_id": view.repo.id}
    async with view.read() as tx:
        await _require_seal(tx, view, head)
    if view.policy is not None and not view.policy.may_see_below(path):
        return [], None  # as of a path that never was
    seal_ids: list[str] = []
    looked_at = 0
    for steps in SEARCHED:
        async with view.read() as tx:
            down, last = (await tx.all(walks.LINE_END, **start, steps=steps))[0]
            since = last if down == steps else 0
            values = {**start, **span, "limit": limit, "skip": skip}
            if first_parent:
                candidates = await tx.all(walks.LINE_PATH, **values, steps=steps)
            else:
                candidates = await tx.all(walks.WALK_PATH[view.node.db.dialect], **values, since=since)
        for first in range(looked_at, len(candidates), LOOKED_AT):
            part = candidates[first : first + LOOKED_AT]
            sides = {} if first_parent else await _find_merged_roots(view, path, [row[0] for row in part])
            for at, (seal_id, generation, root) in enumerate(part, skip + first):
                if not await _has_touched(view, seal_id, generation, bytes(root), span):
                    continue
                if await _is_taken_over(view, bytes(root), sides.get(seal_id, []), path):
                    continue
                if len(seal_ids) == size:
                    return seal_ids, at
                seal_ids.append(seal_id)
        looked_at = len(candidates)
        if not since or looked_at == limit:
            break
    return seal_ids, skip + limit if len(candidates) == limit else None


async def _find_merged_roots(view: View, path: str, ids: list[str]) -> dict[str, list[bytes]]:
    """Find which trees each of these seals has merged. Returns, by seal id, the roots of the trees that were
    merged into the tree of its first parent. Returns {} if part of the path is hidden, because merged seals
    must not be revealed."""
    if view.repo.partial or (view.policy is not None and not view.policy.sees_all_below(path)):
        return {}
    async with view.read() as tx:
        above = await rows.find_parents(tx, ids)
        sources = await rows.held_sources(tx, view.repo.id, ids)
        joined = {seal_id: [*above[seal_id][1:], *sources[seal_id]] for seal_id in ids}
        named = sorted({side for roots_joined in joined.values() for side in roots_joined})
        roots: dict[str, bytes] = {}
        for first in range(0, len(named), LIST_CHUNK):
            part = named[first : first + LIST_CHUNK]
            roots |= {
                row[0]: bytes(row[2]) for row in await tx.all(rows.HEADS, repo_id=view.repo.id, ids=part)
            }
    return {
        seal_id: [roots[side] for side in sides if side in roots]
        for seal_id, sides in joined.items()
        if sides
    }


async def _is_taken_over(view: View, root: bytes, sides: list[bytes], path: str) -> bool:
    """Whether a merge took the content at the path unchanged from another seal. `root`: the tree of the
    merge. `sides`: the trees that were merged into it."""
    if not sides:
        return False
    has = await sealed.find_at(view, root, path)
    for side in sides:
        if await sealed.find_at(view, side, path) == has:
            return True
    return False


async def _has_touched(view: View, seal_id: str, generation: int, root: bytes, span: dict[str, str]) -> bool:
    """Whether the seal changed anything that the caller sees, at a path or below it. `root`: its tree.
    `span`: the path, as parameters of SQL statements that select it and everything below it."""
    if generation == walks.FIRST:
        return await sealed.has_path(view, root, span["path"])
    whole = view.policy is None or view.policy.sees_all_below(span["path"])
    if whole and not view.repo.partial:
        return True
    async with view.read() as tx:
        changed = [row[0] for row in await tx.all(walks.CHANGED, seal_id=seal_id, **span)]
    seen = [path for path in changed if view.sees(path)]
    return bool(seen) and (not view.repo.partial or await _has_any(view, seal_id, root, seen))


async def _has_any(view: View, seal_id: str, root: bytes, paths: list[str]) -> bool:
    """Whether this repository has a file at one of these paths, in the tree of the seal or of its first
    parent. All repositories that have a seal share the list of its changes, so a fork may lack some of the
    files in the list."""
    if await sealed.find_entries(view, root, paths):
        return True
    async with view.read() as tx:
        above = (await rows.find_parents(tx, [seal_id]))[seal_id]
        before = await rows.root_of(tx, view.repo.id, above[0])
    return before is not None and bool(await sealed.find_entries(view, before, paths))


async def load_seals(tx: Tx, view: View, ids: list[str]) -> list[SealRow]:
    """The rows of these seals, in the order of `ids`; seals that the repository lacks are left out."""
    by_id = {row[0]: rows.to_row(row) for row in await tx.all(rows.MANY, repo_id=view.repo.id, ids=ids)}
    return [by_id[seal_id] for seal_id in ids if seal_id in by_id]


def to_summary(full: Seal) -> SealSummary:
    return SealSummary(**{name: getattr(full, name) for name in SealSummary.__struct_fields__})


def _verify_seal(view: View, row: SealRow) -> Seal:
    return msgspec.structs.replace(to_wire(row, view.repo.id), verified=verify(row))


def verify(row: SealRow) -> bool:
    """Whether the seal is genuine: its id is the digest of the payload, the payload agrees with the row, and
    its key signed it before the key was revoked."""
    try:
        payload = kernel.decode(row.payload)
        kernel.verify(row.payload, row.signature, row.key_ed25519)
    except SvcError:
        return False
    return (
        kernel.seal_id(row.payload) == row.id
        and payload.content_digest == row.signed_root.hex()
        and payload.provenance.account_id == row.account_id
        and payload.provenance.device_key_id == row.device_key_id == keys.key_id(row.key_ed25519)
        and (row.key_revoked_at is None or row.created_at <= row.key_revoked_at)
    )
