"""Merges two sealed trees over their common base.

A path that one side changed is taken from it. A path that both changed differently is merged by lines if it
is text on both sides. Everything else is a conflict: bytes, a file that one side deleted and the other
changed, a file where the other side has a directory. A moved file counts as a deleted and a new one.

Two histories may have several nearest common ancestors, after each was merged into the other. The trees are
then merged over each of them, and a path whose results differ is a conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from localstore.core.diff.line_merge import merge_lines
from localstore.core.encoding import digest
from localstore.core.errors import TooLarge
from localstore.core.limits import TEXT_FILE
from localstore.core.paths import parents
from localstore.core.tree.directory import TreeEntry
from localstore.core.tree.read import Change

BASES_MAX = 8  # nearest common ancestors that a merge is computed over


class Texts(msgspec.Struct, frozen=True):
    """A path that is text on both sides and changed by both. `base` None: both created it."""

    base: TreeEntry | None
    ours: TreeEntry
    theirs: TreeEntry


class Plan(msgspec.Struct):
    """The outcome of merging `theirs` into `ours`, by path. `taken`: from theirs, None: deleted; `texts`: to
    merge by lines; `conflicts`; `both`: all paths that both sides changed."""

    taken: dict[str, TreeEntry | None] = msgspec.field(default_factory=dict)
    texts: dict[str, Texts] = msgspec.field(default_factory=dict)
    conflicts: list[str] = msgspec.field(default_factory=list)
    both: list[str] = msgspec.field(default_factory=list)

    def digests(self) -> dict[bytes, int]:
        """Digest → bytes of the contents that `finish` reads."""
        sides = [side for one in self.texts.values() for side in (one.base, one.ours, one.theirs)]
        return {side.digest: side.size for side in sides if side is not None}


class Merged(msgspec.Struct):
    """The changes that turn ours into the merged tree. `texts`: bytes by digest of the files at the paths
    `merged`. With `conflicts` (sorted paths) there is no merged tree."""

    changes: dict[str, TreeEntry | None]
    texts: dict[bytes, bytes]
    merged: list[str]
    conflicts: list[str]


def plan(ours: Mapping[str, Change], theirs: Mapping[str, Change]) -> Plan:
    """The plan for every path, from the changes of each side against the base."""
    found = Plan()
    for path, (base, new) in theirs.items():
        if path not in ours:
            found.taken[path] = new
            continue
        found.both.append(path)
        mine = ours[path][1]
        if mine == new:
            continue
        if mine is None or new is None or not _texts(base, mine, new):
            found.conflicts.append(path)
        else:
            found.texts[path] = Texts(base, mine, new)
    _stand_in_the_way(found, ours, theirs)
    return found


def merged_texts(planned: Plan, contents: Mapping[bytes, bytes]) -> Iterator[tuple[str, bytes | None]]:
    """The merged bytes of each text of the plan, None for a conflict. `contents`: bytes by digest of
    `Plan.digests`."""
    for path, one in planned.texts.items():
        base = contents[one.base.digest] if one.base is not None else b""
        text = merge_lines(base, contents[one.ours.digest], contents[one.theirs.digest])
        yield path, None if text is None or len(text) > TEXT_FILE else text


def finish(planned: Plan, found: Mapping[str, bytes | None]) -> Merged:
    """The merge, from its plan and the result of `merged_texts`."""
    changes, conflicts = dict(planned.taken), list(planned.conflicts)
    texts: dict[bytes, bytes] = {}
    merged: list[str] = []
    for path, one in planned.texts.items():
        text = found[path]
        if text is None:
            conflicts.append(path)
            continue
        entry = TreeEntry("text", digest(text), len(text))
        merged.append(path)
        texts[entry.digest] = text
        if entry != one.ours:
            changes[path] = entry
    return Merged(changes, texts, sorted(merged), sorted(set(conflicts)))


def agreed(found: Sequence[Merged]) -> Merged:
    """The merge over several bases: paths whose results differ become conflicts."""
    first, *others = found
    if not others:
        return first
    conflicts = {path for one in found for path in one.conflicts}
    for one in others:
        for path in first.changes.keys() | one.changes.keys():
            if (
                path not in first.changes
                or path not in one.changes
                or first.changes[path] != one.changes[path]
            ):
                conflicts.add(path)
    texts = {name: text for one in found for name, text in one.texts.items()}
    merged = sorted({path for one in found for path in one.merged})
    return Merged(first.changes, texts, merged, sorted(conflicts))


def require_bases(bases: Sequence[object]) -> None:
    """Raise TooLarge for more nearest common ancestors than a merge can handle."""
    if len(bases) > BASES_MAX:
        raise TooLarge(
            f"these histories have {len(bases)} nearest common seals, and a merge takes {BASES_MAX}; "
            "merge an earlier seal of the other side first"
        )


def _texts(base: TreeEntry | None, *sides: TreeEntry) -> bool:
    return all(side.kind == "text" for side in sides) and (base is None or base.kind == "text")


def _stand_in_the_way(found: Plan, ours: Mapping[str, Change], theirs: Mapping[str, Change]) -> None:
    """Add to the conflicts every file in the place of a directory of the other side."""
    present = {path for path in ours.keys() | theirs.keys() if _present(path, found, ours)}
    clashing = {above for path in present for above in parents(path) if above in present}
    for path in sorted(clashing - set(found.conflicts)):
        found.taken.pop(path, None)
        found.texts.pop(path, None)
        found.conflicts.append(path)


def _present(path: str, found: Plan, ours: Mapping[str, Change]) -> bool:
    """Whether the merge may leave a file at the path."""
    if path in found.taken:
        return found.taken[path] is not None
    if path in found.conflicts:
        return True
    return ours[path][1] is not None
