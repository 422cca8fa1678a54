"""Finds moved files among the changes, as `git diff -M` does.

A removed and an added file with equal bytes are certainly a move. Among the other files, those whose name is
unique on each side are compared first and count as moved at 75 % similarity. Then all pairs are compared and
need 50 %. The similarity of two texts is the part of the larger one, in bytes, that consists of lines of the
smaller one; long lines count in pieces of 64.

The limit is on the number of steps, not on time, so that everybody gets the same result: if there are too
many pairs, only files that share rare lines are compared, those with the most such lines first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate, groupby
from typing import NamedTuple

from localstore.core.diff.line_diff import is_binary, lines
from localstore.core.model.limits import DIFF_BYTES, RENAME_BYTES, RENAME_LINES, RENAME_PAIRS, RENAME_WORK

PIECE = 64
FEW = 8  # files on one side that have a line which tells them from others
ALIKE, SAME_NAME_ALIKE = 50, 75  # percent


class File(NamedTuple):
    """One side of a change. `text`: whether it may be compared by lines; `size`: bytes."""

    digest: bytes
    size: int
    text: bool


class Rename(NamedTuple):
    """A moved file. `similarity`: percent; 100 for equal bytes."""

    old: str
    new: str
    similarity: int


def exact(removed: Mapping[str, File], added: Mapping[str, File]) -> list[Rename]:
    """Renames of files with equal bytes; empty files are ignored. If several match, files of the same name
    are paired first, then the others in the order of their paths."""
    by_bytes: dict[bytes, list[str]] = {}
    for path, file in removed.items():
        if file.size:
            by_bytes.setdefault(file.digest, []).append(path)
    old_by_new: dict[str, str] = {}
    for same_name in (True, False):
        for path, file in added.items():
            if path in old_by_new:
                continue
            sources = by_bytes.get(file.digest, [])
            source = next(
                (candidate for candidate in sources if not same_name or _name(candidate) == _name(path)), None
            )
            if source is not None:
                sources.remove(source)
                old_by_new[path] = source
    return [Rename(old, new, 100) for new, old in old_by_new.items()]


class Candidates(NamedTuple):
    """Changed files that may have moved: few and small enough to compare."""

    removed: dict[str, File]
    added: dict[str, File]

    def __bool__(self) -> bool:
        return bool(self.removed and self.added)


def candidates(removed: Mapping[str, File], added: Mapping[str, File], moved: Iterable[Rename]) -> Candidates:
    """The files among which `similar` looks for renames: removed and added files that are not in `moved` and
    are small enough. Empty if comparing them would be too much work."""
    exact_ones = list(moved)
    old_paths, new_paths = {rename.old for rename in exact_ones}, {rename.new for rename in exact_ones}
    old = {path: file for path, file in removed.items() if path not in old_paths and _is_comparable(file)}
    new = {path: file for path, file in added.items() if path not in new_paths and _is_comparable(file)}
    if len(old) * len(new) > RENAME_PAIRS:
        return Candidates({}, {})
    weight = sum(file.size for side in (old, new) for file in side.values())
    return Candidates(old, new) if weight <= RENAME_BYTES else Candidates({}, {})


def similar(
    unmatched: Candidates, old_text: Callable[[str], bytes], new_text: Callable[[str], bytes]
) -> list[Rename]:
    """The renames among the candidates, found by similar texts, most similar first; each file at most once.
    `old_text`, `new_text`: read a removed or an added file."""
    if not unmatched:
        return []
    texts = (
        {path: old_text(path) for path in unmatched.removed},
        {path: new_text(path) for path in unmatched.added},
    )
    if sum(text.count(b"\n") for side in texts for text in side.values()) > RENAME_LINES:
        return []
    old, new = ({path: pieces(text) for path, text in side.items()} for side in texts)
    renames = _same_names(unmatched, old, new)
    used_old, used_new = {rename.old for rename in renames}, {rename.new for rename in renames}
    pairs = [
        (a, b)
        for b in unmatched.added
        if b not in used_new
        for a in unmatched.removed
        if a not in used_old and _may_be(unmatched.removed[a], unmatched.added[b])
    ]
    scored = [
        Rename(a, b, _alike(old[a], new[b], unmatched.removed[a].size, unmatched.added[b].size))
        for a, b in _within_bounds(pairs, old, new)
    ]
    scored = [rename for rename in scored if rename.similarity >= ALIKE]
    scored.sort(
        key=lambda rename: (
            -rename.similarity,
            _name(rename.old) != _name(rename.new),
            rename.new,
            rename.old,
        )
    )
    for rename in scored:
        if rename.old not in used_old and rename.new not in used_new:
            used_old.add(rename.old)
            used_new.add(rename.new)
            renames.append(rename)
    return renames


def _within_bounds(
    pairs: list[tuple[str, str]], old: Mapping[str, Counter[bytes]], new: Mapping[str, Counter[bytes]]
) -> Iterable[tuple[str, str]]:
    """Those of the `pairs` (removed path, added path) whose files are compared. If comparing all is too much
    work, only the most likely pairs are returned. `old`, `new`: for each removed and added path, how often
    each line occurs in the file."""

    def cost(pair: tuple[str, str]) -> int:
        return min(len(old[pair[0]]), len(new[pair[1]]))

    if sum(map(cost, pairs)) <= RENAME_WORK:
        return pairs
    shared = _count_shared_lines(old, new)
    likely = sorted((pair for pair in pairs if shared[pair]), key=lambda pair: (-shared[pair], pair))
    spent = accumulate(map(cost, likely))
    return [pair for pair, so_far in zip(likely, spent, strict=True) if so_far <= RENAME_WORK]


def _count_shared_lines(
    old: Mapping[str, Counter[bytes]], new: Mapping[str, Counter[bytes]]
) -> Counter[tuple[str, str]]:
    """For each pair (removed path, added path), the number of lines that both files have and few other files
    have. `old`, `new`: for each removed and added path, how often each line occurs in the file."""
    having: dict[bytes, list[str]] = {}
    for path, counts in new.items():
        for piece in counts:
            having.setdefault(piece, []).append(path)
    return Counter(
        (path, other)
        for path, counts in old.items()
        for piece in counts
        if len(others := having.get(piece, ())) <= FEW
        for other in others
    )


def _same_names(
    unmatched: Candidates, old: Mapping[str, Counter[bytes]], new: Mapping[str, Counter[bytes]]
) -> list[Rename]:
    """Renames of files whose name (without folder) is unique among the removed and among the added
    candidates."""
    sources, targets = _by_name(unmatched.removed), _by_name(unmatched.added)
    renames = []
    for name, source in sources.items():
        target = targets.get(name)
        if source is None or target is None:
            continue
        score = _alike(old[source], new[target], unmatched.removed[source].size, unmatched.added[target].size)
        if score >= SAME_NAME_ALIKE:
            renames.append(Rename(source, target, score))
    return renames


def _by_name(paths: Iterable[str]) -> dict[str, str | None]:
    """Maps each file name (without folder) to its path, or to None if several paths have that name."""
    grouped = groupby(sorted(paths, key=_name), _name)
    listed = {name: list(group) for name, group in grouped}
    return {name: group[0] if len(group) == 1 else None for name, group in listed.items()}


def pieces(text: bytes) -> Counter[bytes]:
    """Counts how often each line occurs; long lines are cut into pieces. CRLF counts as LF."""
    plain = text if is_binary(text) else text.replace(b"\r\n", b"\n")
    all_ = lines(plain)
    if max(map(len, all_), default=0) <= PIECE:
        return Counter(all_)
    counts: Counter[bytes] = Counter()
    for line in all_:
        if len(line) <= PIECE:
            counts[line] += 1
        else:
            counts.update(line[at : at + PIECE] for at in range(0, len(line), PIECE))
    return counts


def _alike(old: Counter[bytes], new: Counter[bytes], old_size: int, new_size: int) -> int:
    """How similar two texts are: the size of their common lines, in percent of the size of the larger text.
    `old`, `new`: how often each line occurs in each text; `old_size`, `new_size`: bytes."""
    few, many = (old, new) if len(old) <= len(new) else (new, old)
    common = sum(len(piece) * min(count, many[piece]) for piece, count in few.items() if piece in many)
    return common * 100 // max(old_size, new_size, 1)


def _is_comparable(file: File) -> bool:
    return file.text and 0 < file.size <= DIFF_BYTES


def _may_be(old: File, new: File) -> bool:
    """Whether two files can be similar enough for a rename, judged by their sizes alone."""
    return min(old.size, new.size) * 100 >= max(old.size, new.size) * ALIKE


def _name(path: str) -> str:
    return path.rpartition("/")[2]
