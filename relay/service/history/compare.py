"""Comparison of seals: changes of the head since the merge base, or since the base itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from localstore.core.diff import line_diff
from localstore.core.limits import COMPARE_PATCH_BYTES, COMPARE_TEXT_BYTES, DIFF_BYTES
from localstore.core.model.history import ChangedFile, Compare
from localstore.core.tree import TreeEntry
from localstore.core.tree.read import Change
from relay.caller import View
from relay.db import seal as seals
from relay.db.engine.database import Tx
from relay.service.history import merge_base, renames, sealed
from relay.service.history.ancestry import Relation, relation


@dataclass(slots=True, frozen=True)
class _Pair:
    """One changed file before and after; a side is None where the file is absent."""

    old_path: str | None
    old: TreeEntry | None
    path: str | None
    new: TreeEntry | None
    similarity: int | None = None

    @property
    def binary(self) -> bool:
        return any(side is not None and side.kind != "text" for side in (self.old, self.new))

    @property
    def comparable(self) -> bool:
        return not self.binary and all(
            side is None or side.size <= DIFF_BYTES for side in (self.old, self.new)
        )

    @property
    def weight(self) -> int:
        return sum(side.size for side in (self.old, self.new) if side is not None)

    @property
    def status(self) -> str:
        if self.old is None:
            return "added"
        if self.new is None:
            return "removed"
        return "modified" if self.old_path == self.path else "renamed"


async def compare(view: View, base: str | None, head: str, direct: bool = False) -> Compare:
    """`base` and `head` are branches, tags or seal ids. A branch without a seal is not found. `direct`: from
    the base itself, not from the merge base. No base: what the head has other than its first parent."""
    if base is None:
        return await _brought(view, head)
    async with view.read(snapshot=True) as tx:
        base_id, base_root = await _end(view, tx, base)
        head_id, head_root = await _end(view, tx, head)
        found: Relation = await relation(tx, base_id, head_id)
        bases = await _bases(tx, found, base_id, head_id)
        start = base_root if direct or base_id in bases else None
        if bases and start is None:
            start = (await sealed.seal(view, bases[0], tx)).root
    pairs = await _pairs(view, await sealed.changes(view, start, head_root))
    return Compare(
        base=base_id,
        head=head_id,
        merge_base=bases[0] if bases else None,
        merge_bases=bases,
        ahead=found.ahead,
        behind=found.behind,
        files=await _files(view, pairs),
    )


async def _bases(tx: Tx, found: Relation, base: str, head: str) -> list[str]:
    """The nearest common ancestors. The walk of parents finds the only one, unless merge seals are
    involved."""
    if found.merge_base in (base, head):
        return [found.merge_base]
    return (await merge_base.merge_bases(tx, base, head)).bases


async def _brought(view: View, head: str) -> Compare:
    async with view.read(snapshot=True) as tx:
        head_id, head_root = await _end(view, tx, head)
        parents = (await seals.parents(tx, [head_id]))[head_id]
        above = await sealed.seal(view, parents[0], tx) if parents else None
    pairs = await _pairs(view, await sealed.changes(view, above.root if above else None, head_root))
    parent = above.id if above else None
    return Compare(
        base=parent, head=head_id, merge_base=parent, ahead=1, behind=0, files=await _files(view, pairs)
    )


async def _end(view: View, tx: Tx, name: str) -> tuple[str, bytes]:
    row = await sealed.seal(view, (await sealed.head(view, tx, name)) or "", tx)
    return row.id, row.root


async def _pairs(view: View, changes: Mapping[str, Change]) -> list[_Pair]:
    """The changed files, a moved file as one pair."""
    moves = {move.new: move for move in await renames.find(view, changes)}
    sources = {move.old for move in moves.values()}
    pairs: list[_Pair] = []
    for path, (old, new) in changes.items():
        if path in moves:
            source = moves[path].old
            pairs.append(_Pair(source, changes[source][0], path, new, moves[path].similarity))
        elif path not in sources:
            pairs.append(_Pair(path if old else None, old, path if new else None, new))
    return pairs


async def _files(view: View, pairs: list[_Pair]) -> list[ChangedFile]:
    """Patches in order, up to the limits of the answer. Files beyond them have no patch, nor do files whose
    texts exceed what is left to read."""
    left, unread = COMPARE_PATCH_BYTES, COMPARE_TEXT_BYTES
    shown: list[ChangedFile] = []
    for pair in pairs:
        compared = left > 0 and pair.comparable and pair.weight <= unread
        file = await _file(view, pair, left if compared else 0)
        left -= len(file.patch or "")
        unread -= pair.weight if compared else 0
        shown.append(file)
    return shown


async def _file(view: View, pair: _Pair, left: int) -> ChangedFile:
    patch: str | None = None
    added = removed = 0
    if left > 0:
        old, new = await _text(view, pair.old), await _text(view, pair.new)
        added, removed, whole = await asyncio.to_thread(_diff, pair, old, new)
        patch = whole if len(whole) <= left else None
    return ChangedFile(
        path=pair.path or pair.old_path or "",
        old_path=pair.old_path if pair.status == "renamed" else None,
        similarity=pair.similarity,
        status=pair.status,  # type: ignore[arg-type]  # one of the four above
        binary=pair.binary,
        additions=added,
        deletions=removed,
        patch=patch,
    )


async def _text(view: View, side: TreeEntry | None) -> bytes | None:
    return None if side is None else await sealed.content(view, side)


def _diff(pair: _Pair, old: bytes | None, new: bytes | None) -> tuple[int, int, str]:
    added, removed = line_diff.stat(old, new)
    patch = line_diff.unified(old, new, pair.old_path, pair.path, similarity=pair.similarity)
    return added, removed, patch.decode("utf-8", "replace")
