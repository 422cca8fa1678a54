"""Merges two sealed trees, ours and theirs, over their common base.

A path that only one side changed is taken from that side. A path that both sides changed differently is
merged by lines if it is text on both sides. Everything else is a conflict: a binary file, a file that one
side deleted and the other changed, or a file where the other side has a directory. If one side moved a file
(`moves`), the other side's changes of the file are made at its new path.

Two histories may have several nearest common ancestors, after each was merged into the other. Then the trees
are merged over each of these ancestors, and a path whose results differ is a conflict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from localstore.core.diff.line_merge import merge_lines
from localstore.core.encoding import digest
from localstore.core.errors import TooLarge
from localstore.core.merge.moves import NONE, Moves
from localstore.core.model.limits import TEXT_FILE
from localstore.core.paths import parents
from localstore.core.tree.directory import TreeEntry
from localstore.core.tree.read import Change

BASES_MAX = 8  # nearest common ancestors that a merge is computed over


class Texts(msgspec.Struct, frozen=True):
    """A path that is text on both sides and was changed by both. `base`: the file before the changes, None if
    both sides created it. `here`: the file that our side has at the path now. `paths`: (path in the base,
    path in ours, path in theirs), which differ if the file was moved."""

    base: TreeEntry | None
    ours: TreeEntry
    theirs: TreeEntry
    here: TreeEntry | None
    paths: tuple[str, str, str]


class Plan(msgspec.Struct):
    """How `theirs` is merged into `ours`, by path. `taken`: the files to take from theirs, None for a file
    that theirs deleted. `texts`: the texts to merge by lines. `conflicts`: the paths in conflict. `both`:
    all paths that both sides changed."""

    taken: dict[str, TreeEntry | None] = msgspec.field(default_factory=dict)
    texts: dict[str, Texts] = msgspec.field(default_factory=dict)
    conflicts: list[str] = msgspec.field(default_factory=list)
    both: list[str] = msgspec.field(default_factory=list)

    def digests(self) -> dict[bytes, int]:
        """The digests of the contents that `merged_texts` reads, each with its size in bytes."""
        sides = [side for texts in self.texts.values() for side in (texts.base, texts.ours, texts.theirs)]
        return {side.digest: side.size for side in sides if side is not None}


class MergedTree(msgspec.Struct):
    """A finished merge. `changes`: the changes (path → file, None to remove it) that turn our tree into the
    merged tree. `merged`: the paths that were merged by lines. `texts`: the bytes of these files, by
    digest. `conflicts`: the paths in conflict, sorted; if there are any, there is no merged tree."""

    changes: dict[str, TreeEntry | None]
    texts: dict[bytes, bytes]
    merged: list[str]
    conflicts: list[str]


def plan(ours: Mapping[str, Change], theirs: Mapping[str, Change], moves: Moves = NONE) -> Plan:
    """The plan for every changed path. `ours`, `theirs`: the changes of each side against the base, by path;
    `moves`: the files that each side moved."""
    table = {
        path: _Path.of(path, ours.get(path), theirs.get(path)) for path in sorted(ours.keys() | theirs.keys())
    }
    _follow(table, moves)
    planned = Plan()
    for path, versions in table.items():
        if (path in ours and path in theirs) or versions.paths != (path, path, path):
            planned.both.append(path)
        if versions.conflict:
            planned.conflicts.append(path)
        elif versions.gone or versions.ours == versions.theirs or versions.theirs == versions.base:
            versions.record(planned, path, None if versions.gone else versions.ours)
        elif versions.ours == versions.base:
            versions.record(planned, path, versions.theirs)
        elif (
            versions.ours is None
            or versions.theirs is None
            or not _texts(versions.base, versions.ours, versions.theirs)
        ):
            planned.conflicts.append(path)
        else:
            planned.texts[path] = Texts(
                versions.base, versions.ours, versions.theirs, versions.here, versions.paths
            )
    _stand_in_the_way(planned, table)
    return planned


class _Path(msgspec.Struct):
    """What a merge knows about one path. `base`, `ours`, `theirs`: the versions to merge. `here`: the file
    that our side has at this path, even if `ours` comes from another path. `paths`: (path in the base, path
    in ours, path in theirs). `gone`: the file was moved away from this path. `conflict`: the path is in
    conflict, whatever the versions contain."""

    base: TreeEntry | None
    ours: TreeEntry | None
    theirs: TreeEntry | None
    here: TreeEntry | None
    paths: tuple[str, str, str]
    gone: bool = False
    conflict: bool = False

    @staticmethod
    def of(path: str, ours: Change | None, theirs: Change | None) -> _Path:
        base = ours[0] if ours is not None else theirs[0] if theirs is not None else None
        mine = ours[1] if ours is not None else base
        return _Path(base, mine, theirs[1] if theirs is not None else base, mine, (path, path, path))

    def record(self, planned: Plan, path: str, entry: TreeEntry | None) -> None:
        if entry != self.here:
            planned.taken[path] = entry


def _follow(table: dict[str, _Path], moves: Moves) -> None:
    """Merge moved files at their new paths. As in git, it is a conflict if the sides moved a file to
    different paths, if one moved and the other deleted it, or if the other side has another file at the new
    path."""
    for old in sorted(moves.ours.keys() | moves.theirs.keys()):
        mine, other = moves.ours.get(old), moves.theirs.get(old)
        was = table[old]
        if mine is not None and other is not None:
            for path in {old, mine, other} if mine != other else ():
                table[path].conflict = True
            if mine == other:
                table[mine].base, table[mine].paths = was.base, (old, mine, mine)
                was.gone = True
            continue
        new = table[mine or other or ""]
        was.gone = True
        if mine is not None:
            if was.theirs is None or (new.theirs is not None and was.theirs != was.base):
                new.conflict = True
            elif new.theirs is None:
                new.base, new.theirs, new.paths = was.base, was.theirs, (old, mine, old)
        elif was.ours is None or (new.ours is not None and was.ours != was.base):
            new.conflict = True
        elif new.ours is None:
            new.base, new.ours, new.paths = was.base, was.ours, (old, old, other or "")


def merged_texts(planned: Plan, contents: Mapping[bytes, bytes]) -> Iterator[tuple[str, bytes | None]]:
    """Yields (path, merged bytes) for each text of the plan. The bytes are None for a conflict. `contents`:
    the bytes for each digest that `Plan.digests` returned."""
    for path, versions in planned.texts.items():
        base = contents[versions.base.digest] if versions.base is not None else b""
        text = merge_lines(base, contents[versions.ours.digest], contents[versions.theirs.digest])
        yield path, None if text is None or len(text) > TEXT_FILE else text


def finish(planned: Plan, results: Mapping[str, bytes | None]) -> MergedTree:
    """The finished merge. `planned`: its plan; `results`: what `merged_texts` yielded, as a mapping."""
    changes, conflicts = dict(planned.taken), list(planned.conflicts)
    texts: dict[bytes, bytes] = {}
    merged: list[str] = []
    for path, versions in planned.texts.items():
        text = results[path]
        if text is None:
            conflicts.append(path)
            continue
        entry = TreeEntry("text", digest(text), len(text))
        merged.append(path)
        texts[entry.digest] = text
        if entry != versions.here:
            changes[path] = entry
    return MergedTree(changes, texts, sorted(merged), sorted(set(conflicts)))


def agreed(merges: Sequence[MergedTree]) -> MergedTree:
    """Combines merges over several common ancestors into one. A path whose results differ becomes a
    conflict."""
    first, *others = merges
    if not others:
        return first
    conflicts = {path for merge in merges for path in merge.conflicts}
    for other in others:
        for path in first.changes.keys() | other.changes.keys():
            if (
                path not in first.changes
                or path not in other.changes
                or first.changes[path] != other.changes[path]
            ):
                conflicts.add(path)
    texts = {name: text for merge in merges for name, text in merge.texts.items()}
    merged = sorted({path for merge in merges for path in merge.merged})
    return MergedTree(first.changes, texts, merged, sorted(conflicts))


def require_bases(bases: Sequence[object]) -> None:
    """Raise TooLarge if there are more nearest common ancestors (`bases`) than a merge can handle."""
    if len(bases) > BASES_MAX:
        raise TooLarge(
            f"these histories have {len(bases)} nearest common seals, and a merge takes {BASES_MAX}; "
            "merge an earlier seal of the other side first"
        )


def _texts(base: TreeEntry | None, *sides: TreeEntry) -> bool:
    return all(side.kind == "text" for side in sides) and (base is None or base.kind == "text")


def _stand_in_the_way(planned: Plan, table: Mapping[str, _Path]) -> None:
    """Find files of one side at whose path the other side has a directory, and make them conflicts of the
    plan. `table`: what the merge knows about each path."""
    conflicts = set(planned.conflicts)
    present = set()
    for path, versions in table.items():
        if path in conflicts or path in planned.texts:
            there = versions.ours or versions.theirs
        else:
            there = planned.taken.get(path, versions.here)
        if there is not None:
            present.add(path)
    clashing = {above for path in present for above in parents(path) if above in present}
    for path in sorted(clashing - set(planned.conflicts)):
        planned.taken.pop(path, None)
        planned.texts.pop(path, None)
        planned.conflicts.append(path)
