"""Compares two seals. Shows what has changed in the head since its merge base with the other seal, or all
differences between the two."""

from __future__ import annotations

from collections.abc import Mapping

from localstore.core.errors import Invalid
from localstore.core.model.history import ChangedFile, Compare, CompareQuery
from localstore.core.model.limits import (
    COMPARE_FILES,
    COMPARE_PATCH_BYTES,
    COMPARE_TEXT_BYTES,
    DIFF_BYTES,
    MIB,
    PATCH_BYTES,
)
from localstore.core.tree.read import Change
from relay.caller import View
from relay.db import seal as seals
from relay.db.engine.database import Tx
from relay.db.paging import Cursor
from relay.domain.history import merge_base, renames, sealed
from relay.domain.history.ancestry import Relation, find_relation
from relay.domain.history.history import WRONG_CURSOR
from relay.http.buffers import BEGUN_PATIENCE
from relay.memory import texts as heavy
from relay.memory.compared import ChangedFilesPage, Pair
from relay.memory.texts import FileSides, Patch

TURN_BYTES = 1 * MIB  # texts that are compared before others have their turn, if they are of several files
NOT_COMPARED = Patch(0, 0, "")


async def compare(view: View, query: CompareQuery) -> Compare:
    """Changes of head since the merge base

    Names are branches, tags or seal ids. A branch without a seal is answered with 404.
    """
    base, head = query.base, query.head
    at = 0
    if query.cursor is not None:
        base, head, at = _read_cursor(query)
    if base is None:
        return await _compare_with_parent(view, head, query.limit, at)
    async with view.read(snapshot=True) as tx:
        base_id, base_root = await _read_end(view, tx, base)
        head_id, head_root = await _read_end(view, tx, head)
        related: Relation = await find_relation(tx, base_id, head_id)
        bases = await _find_bases(tx, related, base_id, head_id)
        start = base_root if query.direct or base_id in bases else None
        if bases and start is None:
            start = (await sealed.seal(view, bases[0], tx)).root
    page = await _read_page(view, start, head_root, query.limit, at)
    return Compare(
        base=base_id,
        head=head_id,
        merge_base=bases[0] if bases else None,
        merge_bases=bases,
        ahead=related.ahead,
        behind=related.behind,
        files=page.files,
        next_cursor=_next_cursor(base_id, head_id, page),
    )


def _read_cursor(query: CompareQuery) -> tuple[str | None, str, int]:
    """Read (base, head, index) from the cursor of a comparison. Raises Invalid if the cursor comes from
    another query."""
    base, head, index = Cursor.read(query.cursor, "", "", 0)
    at = int(index)
    if at < 0 or bool(base) != (query.base is not None):
        raise Invalid(WRONG_CURSOR, pointer="/cursor")
    return base or None, head, at


def _next_cursor(base: str | None, head: str, page: ChangedFilesPage) -> str | None:
    return None if page.after is None else Cursor.write(base or "", head, page.after)


async def _find_bases(tx: Tx, related: Relation, base: str, head: str) -> list[str]:
    """Find the nearest common ancestors of the two seals and return their ids. `related`: the relation of the
    seals along parents. If it says that one seal is an ancestor of the other, only that seal is returned.
    Otherwise the search also follows seals that were merged in."""
    if related.merge_base in (base, head):
        return [related.merge_base]
    return (await merge_base.merge_bases(tx, base, head)).bases


async def _compare_with_parent(view: View, head: str, limit: int, at: int) -> Compare:
    async with view.read(snapshot=True) as tx:
        head_id, head_root = await _read_end(view, tx, head)
        parents = (await seals.find_parents(tx, [head_id]))[head_id]
        above = await sealed.seal(view, parents[0], tx) if parents else None
    page = await _read_page(view, above.root if above else None, head_root, limit, at)
    parent = above.id if above else None
    return Compare(
        base=parent,
        head=head_id,
        merge_base=parent,
        ahead=1,
        behind=0,
        files=page.files,
        next_cursor=_next_cursor(None, head_id, page),
    )


async def _read_end(view: View, tx: Tx, name: str) -> tuple[str, bytes]:
    row = await sealed.seal(view, (await sealed.find_head(view, tx, name)) or "", tx)
    return row.id, row.root


async def _read_page(view: View, start: bytes | None, head: bytes, limit: int, at: int) -> ChangedFilesPage:
    """Read a page of the changed files between the trees `start` and `head`, from index `at` on. It has at
    most `limit` files, and not more than fit into one answer. Raises Invalid if `at` is past the last
    file."""
    sealed.require_plaintext(view)
    if limit == 0:
        return ChangedFilesPage([], None)
    view.node.streams.require(view.payer)
    number = view.policy.number if view.policy is not None else None
    key = (view.repo.id, number, start, head)
    comparisons = view.node.comparisons
    # Before the lock, in which others wait for this comparison: they do not wait for somebody else's budget.
    await view.node.workers.afford(view.payer)
    async with comparisons.turn(key):
        page = comparisons.pages.get((key, at))
        if page is None or limit < len(page.files):
            pairs = comparisons.pairs.get(key)
            if pairs is None:
                pairs = await _pair_moves(view, await sealed.changes_in_turn(view, start, head, paid=True))
                comparisons.pairs.put(key, pairs)
            if at and at >= len(pairs):
                raise Invalid(WRONG_CURSOR, pointer="/cursor")
            page = await _patch_files(view, pairs, at, limit)
            if limit == COMPARE_FILES:
                comparisons.pages.put((key, at), page)
    async with view.node.streams.turn(view.payer, view.lease) as step:
        step.count(len(page.files), page.weigh())  # also one that was kept: it is encoded for each reader
    return page


async def _pair_moves(view: View, changes: Mapping[str, Change]) -> list[Pair]:
    """The changed files as pairs of (before, after). A moved file is one pair."""
    moves = {move.new: move for move in await renames.find(view, changes, paid=True)}
    sources = {move.old for move in moves.values()}
    pairs: list[Pair] = []
    for path, (old, new) in changes.items():
        if path in moves:
            source = moves[path].old
            pairs.append(Pair(source, changes[source][0], path, new, moves[path].similarity))
        elif path not in sources:
            pairs.append(Pair(path if old else None, old, path if new else None, new))
    return pairs


async def _patch_files(view: View, pairs: list[Pair], at: int, limit: int) -> ChangedFilesPage:
    """A page of the changed files with their patches, from index `at` on. It has at most `limit` files, and
    fewer if their texts or patches would exceed the size of an answer. It has at least one file."""
    characters, unread = COMPARE_PATCH_BYTES, COMPARE_TEXT_BYTES
    files: list[ChangedFile] = []
    end = min(len(pairs), at + limit)
    while at < end and (characters > 0 or not files):
        part = _take_batch(pairs[at:end], unread)
        if not part and files:
            break
        part = part or pairs[at : at + 1]
        patches = await _make_patches(view, part, characters)
        for pair, patch in zip(part, patches, strict=False):
            if files and len(patch.patch) > characters:
                characters = 0
                break
            characters -= len(patch.patch)
            unread -= _weigh(pair)
            files.append(_to_changed_file(pair, patch))
            at += 1
    return ChangedFilesPage(files, at if at < len(pairs) else None)


def _take_batch(pairs: list[Pair], unread: int) -> list[Pair]:
    """Take as many of the first pairs of files as may be compared in one turn. `unread`: how many bytes of
    texts the page may still read."""
    room = min(unread, TURN_BYTES)
    for count, pair in enumerate(pairs):
        room -= _weigh(pair)
        if room < 0 and (count or unread < COMPARE_TEXT_BYTES):
            return pairs[:count]
    return pairs


def _is_comparable(pair: Pair) -> bool:
    sides = (pair.old, pair.new)
    return not pair.binary and all(side is None or side.size <= DIFF_BYTES for side in sides)


def _weigh(pair: Pair) -> int:
    return pair.weight if _is_comparable(pair) else 0


async def _make_patches(view: View, pairs: list[Pair], characters: int) -> list[Patch]:
    """Make patches for pairs of files, in order, until they have `characters` characters together. So there
    may be fewer patches than pairs. The patch is "" for files whose texts are not compared."""
    texts = [pair for pair in pairs if _is_comparable(pair)]
    if not texts:
        return [NOT_COMPARED] * len(pairs)
    size = sum(pair.weight for pair in texts)
    held = await view.lease.wait(size, BEGUN_PATIENCE)
    try:
        digests = sorted({side.digest for pair in texts for side in (pair.old, pair.new) if side is not None})
        read = await view.node.objects.read_many(digests, view.repo.id)
        sides = [_to_sides(pair, read) for pair in texts]
        compared = iter(
            await view.node.workers.go_on(view.payer, size, heavy.make_patches, sides, characters)
        )
    finally:
        view.lease.give_back(held)
    patches: list[Patch] = []
    for pair in pairs:
        patch = next(compared, None) if _is_comparable(pair) else NOT_COMPARED
        if patch is None:
            break
        patches.append(patch)
    return patches


def _to_sides(pair: Pair, read: Mapping[bytes, bytes]) -> FileSides:
    old = None if pair.old is None else read[pair.old.digest]
    new = None if pair.new is None else read[pair.new.digest]
    return FileSides(pair.old_path, old, pair.path, new, pair.similarity)


def _to_changed_file(pair: Pair, patch: Patch) -> ChangedFile:
    whole = _is_comparable(pair) and len(patch.patch) <= PATCH_BYTES
    return ChangedFile(
        path=pair.path or pair.old_path or "",
        old_path=pair.old_path if pair.status == "renamed" else None,
        similarity=pair.similarity,
        status=pair.status,  # type: ignore[arg-type]  # one of the four above
        binary=pair.binary,
        additions=patch.added,
        deletions=patch.removed,
        patch=patch.patch if whole else None,
    )
