"""Three-dot comparison: what the head brought since the merge base."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from localstore.core import diff
from localstore.core.limits import COMPARE_PATCH_BYTES, COMPARE_TEXT_BYTES, DIFF_BYTES
from localstore.core.model import ChangedFile
from localstore.core.model.history import Compare
from localstore.core.tree import Entry
from relay.caller import View
from relay.db.database import Tx
from relay.service import sealed
from relay.service.ancestry import Relation, relation


@dataclass(slots=True, frozen=True)
class _Pair:
    """One changed file: where it was and where it is; a side is None when it is not there."""

    old_path: str | None
    old: Entry | None
    path: str | None
    new: Entry | None

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


async def compare(view: View, base: str, head: str) -> Compare:
    """`base` and `head` are branches, tags or seal ids. A branch without a seal is not found."""
    async with view.read(snapshot=True) as tx:
        base_id, base_root = await _end(view, tx, base)
        head_id, head_root = await _end(view, tx, head)
        found: Relation = await relation(tx, base_id, head_id)
        start = base_root if found.merge_base == base_id else None
        if found.merge_base is not None and start is None:
            start = (await sealed.seal(view, found.merge_base, tx)).root
    pairs = _renamed(await sealed.changes(view, start, head_root))
    return Compare(
        base=base_id,
        head=head_id,
        merge_base=found.merge_base,
        ahead=found.ahead,
        behind=found.behind,
        files=await _files(view, pairs),
    )


async def _end(view: View, tx: Tx, name: str) -> tuple[str, bytes]:
    row = await sealed.seal(view, (await sealed.head(view, tx, name)) or "", tx)
    return row.id, row.root


def _renamed(changes: dict[str, tuple[Entry | None, Entry | None]]) -> list[_Pair]:
    """A file that went and one that came with the same bytes are one that moved."""
    gone: dict[Entry, deque[str]] = {}
    for path, (old, new) in changes.items():
        if old is not None and new is None and old.size:
            gone.setdefault(old, deque()).append(path)
    moved: set[str] = set()
    pairs: list[_Pair] = []
    for path, (old, new) in changes.items():
        if old is None and new is not None and gone.get(new):
            source = gone[new].popleft()
            moved.add(source)
            pairs.append(_Pair(source, new, path, new))
        else:
            pairs.append(_Pair(path if old else None, old, path if new else None, new))
    return [pair for pair in pairs if pair.new is not None or pair.old_path not in moved]


async def _files(view: View, pairs: list[_Pair]) -> list[ChangedFile]:
    """Patches in order, until they have taken their share of the answer; the files behind go without, and so
    do those whose texts are more than is left to read."""
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
        status=pair.status,  # type: ignore[arg-type]  # one of the four above
        binary=pair.binary,
        additions=added,
        deletions=removed,
        patch=patch,
    )


async def _text(view: View, side: Entry | None) -> bytes | None:
    return None if side is None else await sealed.content(view, side)


def _diff(pair: _Pair, old: bytes | None, new: bytes | None) -> tuple[int, int, str]:
    added, removed = diff.stat(old, new)
    return added, removed, diff.unified(old, new, pair.old_path, pair.path).decode("utf-8", "replace")
