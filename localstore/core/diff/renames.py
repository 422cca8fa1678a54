"""Which files of a change are files that moved, found as `git diff -M` finds them.

Equal bytes are certain. Of the files that are left, those with a name that only one file on each side has are
compared first and taken at 75 % alike; then all with all, at 50 %. How much two texts are alike is the share
of the larger one that the smaller one's lines make up, counted in bytes; long lines count in pieces of 64.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from localstore.core.diff.line_diff import is_binary, lines
from localstore.core.limits import DIFF_BYTES, RENAME_BYTES, RENAME_PAIRS

PIECE = 64
ALIKE, SAME_NAME_ALIKE = 50, 75  # percent


class File(NamedTuple):
    """One side of a change. `text`: whether it may be compared by lines; `size` in bytes."""

    digest: bytes
    size: int
    text: bool


class Rename(NamedTuple):
    """`similarity` in percent; 100 are equal bytes."""

    old: str
    new: str
    similarity: int


def exact(removed: Mapping[str, File], added: Mapping[str, File]) -> list[Rename]:
    """Files of which only the path changed. An empty file is none. Of several with the same bytes those with
    the same name belong together, the others in the order of their paths."""
    by_bytes: dict[bytes, list[str]] = {}
    for path, file in removed.items():
        if file.size:
            by_bytes.setdefault(file.digest, []).append(path)
    found: dict[str, str] = {}
    for same_name in (True, False):
        for path, file in added.items():
            if path in found:
                continue
            sources = by_bytes.get(file.digest, [])
            source = next((one for one in sources if not same_name or _name(one) == _name(path)), None)
            if source is not None:
                sources.remove(source)
                found[path] = source
    return [Rename(old, new, 100) for new, old in found.items()]


class Candidates(NamedTuple):
    """Files that may have moved and changed at once: few and small enough to be compared."""

    removed: dict[str, File]
    added: dict[str, File]

    def __bool__(self) -> bool:
        return bool(self.removed and self.added)


def candidates(removed: Mapping[str, File], added: Mapping[str, File], moved: Iterable[Rename]) -> Candidates:
    """What is left to be compared beside the exact ones. Nothing where that would be too much work."""
    exact_ones = list(moved)
    old_paths, new_paths = {one.old for one in exact_ones}, {one.new for one in exact_ones}
    old = {path: file for path, file in removed.items() if path not in old_paths and _comparable(file)}
    new = {path: file for path, file in added.items() if path not in new_paths and _comparable(file)}
    if len(old) * len(new) > RENAME_PAIRS:
        return Candidates({}, {})
    weight = sum(file.size for side in (old, new) for file in side.values())
    return Candidates(old, new) if weight <= RENAME_BYTES else Candidates({}, {})


def similar(
    left: Candidates, old_text: Callable[[str], bytes], new_text: Callable[[str], bytes]
) -> list[Rename]:
    """Pairs of candidates that are alike, each file in one pair at most, the most alike first."""
    if not left:
        return []
    old = {path: pieces(old_text(path)) for path in left.removed}
    new = {path: pieces(new_text(path)) for path in left.added}
    found = _same_names(left, old, new)
    used_old, used_new = {one.old for one in found}, {one.new for one in found}
    scored = [
        Rename(a, b, _alike(old[a], new[b], left.removed[a].size, left.added[b].size))
        for b in left.added
        if b not in used_new
        for a in left.removed
        if a not in used_old and _may_be(left.removed[a], left.added[b])
    ]
    scored = [one for one in scored if one.similarity >= ALIKE]
    scored.sort(key=lambda one: (-one.similarity, _name(one.old) != _name(one.new), one.new, one.old))
    for one in scored:
        if one.old not in used_old and one.new not in used_new:
            used_old.add(one.old)
            used_new.add(one.new)
            found.append(one)
    return found


def _same_names(
    left: Candidates, old: Mapping[str, Counter[bytes]], new: Mapping[str, Counter[bytes]]
) -> list[Rename]:
    """Pairs with a name that no other candidate of their side has."""
    sources, targets = _by_name(left.removed), _by_name(left.added)
    found = []
    for name, source in sources.items():
        target = targets.get(name)
        if source is None or target is None:
            continue
        score = _alike(old[source], new[target], left.removed[source].size, left.added[target].size)
        if score >= SAME_NAME_ALIKE:
            found.append(Rename(source, target, score))
    return found


def _by_name(paths: Iterable[str]) -> dict[str, str | None]:
    """Name → its path, None where several have it."""
    grouped = groupby(sorted(paths, key=_name), _name)
    listed = {name: list(group) for name, group in grouped}
    return {name: group[0] if len(group) == 1 else None for name, group in listed.items()}


def pieces(text: bytes) -> Counter[bytes]:
    """The lines of a text, long ones cut, with how often each occurs. CRLF counts as LF."""
    found: Counter[bytes] = Counter()
    plain = text if is_binary(text) else text.replace(b"\r\n", b"\n")
    for line in lines(plain):
        if len(line) <= PIECE:
            found[line] += 1
        else:
            found.update(line[at : at + PIECE] for at in range(0, len(line), PIECE))
    return found


def _alike(old: Counter[bytes], new: Counter[bytes], old_size: int, new_size: int) -> int:
    """Percent of the larger text that both have."""
    few, many = (old, new) if len(old) <= len(new) else (new, old)
    common = sum(len(piece) * min(count, many[piece]) for piece, count in few.items() if piece in many)
    return common * 100 // max(old_size, new_size, 1)


def _comparable(file: File) -> bool:
    return file.text and 0 < file.size <= DIFF_BYTES


def _may_be(old: File, new: File) -> bool:
    """Whether the sizes alone do not rule it out."""
    return min(old.size, new.size) * 100 >= max(old.size, new.size) * ALIKE


def _name(path: str) -> str:
    return path.rpartition("/")[2]
