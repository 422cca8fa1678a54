"""Compares the seals of two versions of a proposal, like `git range-diff`.

Seals with the same change are paired, even if the changed lines have moved. Other seals are paired by the
smallest difference between their changes, if it is not too large. The content of a proposal is untrusted, so
the amount that is read and the number of line comparisons are limited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from localstore.core.diff import line_diff
from localstore.core.errors import UsageError
from localstore.core.model import history
from localstore.core.model.history import ChangedFile, CommitsQuery, CompareQuery
from localstore.core.model.limits import MIB, PAGE_MAX
from localstore.core.model.proposal import Version
from localstore.core.model.repo import Repo
from svc.flows.place.where import Where

SEALS = 200  # of one version that are compared
CHANGE_LINES, CHANGE_BYTES = 200_000, 16 * MIB  # of the changes of one version
WORK = 1_000_000  # lines that are gone through to find pairs, about 7 µs each
COUNTED = 8  # times as cheap: a line that is counted, not compared
UNLIKE = 60  # percent of both changes that may differ in a pair, as git has it
Mark = Literal["=", "!", "<", ">"]


class SealDiff(msgspec.Struct, frozen=True):
    """A seal and its change as lines. For each file there is one line, followed by the lines of its patch
    without line numbers. `whole` says whether the patch is complete."""

    seal: str
    message: str
    lines: tuple[str, ...]
    whole: bool = True

    def same(self, other: SealDiff) -> bool:
        return self.seal == other.seal or (self.whole and other.whole and self.lines == other.lines)


class Pair(msgspec.Struct, frozen=True):
    """Two matching seals, or one seal without a match. `mark` is `=` for the same change, `!` for a different
    change, `<` for a removed and `>` for a new seal. `old` and `new` are the positions of the seals in the
    two versions, from 1. `diff` shows how the changes differ if `mark` is `!`."""

    mark: Mark
    old: int | None
    new: int | None
    old_seal: str | None
    new_seal: str | None
    message: str
    diff: str = ""


class Work:
    """A limit on the work of a comparison: the number of lines that may still be compared. `short` is True if
    a comparison was refused because of the limit."""

    def __init__(self, lines: int = WORK) -> None:
        self._lines_left, self.short = lines, False

    def take(self, lines: int) -> bool:
        """Count `lines` lines of a comparison against the limit. Returns False, and counts nothing, if the
        limit does not allow that many more."""
        if lines > self._lines_left:
            self.short = True
            return False
        self._lines_left -= lines
        return True


def steps(where: Where, repo: Repo, version: Version) -> list[SealDiff]:
    """Return the seals that the version adds to its base, oldest first. Raises UsageError if there are too
    many seals or changes."""
    newest_first: list[SealDiff] = []
    room = _Room(version)
    query = CommitsQuery(sha=version.head, limit=PAGE_MAX, first_parent=True)
    walk = where.reader.items(history.COMMITS, query, id=repo.id)
    for seal in walk:
        if seal.id in (version.merge_base, version.base):
            break
        if len(newest_first) == SEALS:
            raise UsageError(f"version {version.n} has more than {SEALS} seals, and so many are not compared")
        changed = where.reader.history.list_changed(repo.id, CompareQuery(head=seal.id))
        lines, whole = change_of(room.count(changed))
        newest_first.append(SealDiff(seal.id, seal.message, tuple(lines), whole))
    return newest_first[::-1]


class _Room:
    """A limit on how many lines and bytes of a version's changes may be read."""

    def __init__(self, version: Version) -> None:
        self._n, self._lines, self._bytes = version.n, CHANGE_LINES, CHANGE_BYTES

    def count(self, files: Iterable[ChangedFile]) -> list[ChangedFile]:
        """Count the size of these files against the limit, and return the files. Raises UsageError if the
        limit is exceeded."""
        counted = []
        for file in files:
            self._lines -= 1 + (file.patch or "").count("\n")
            self._bytes -= len(file.patch or "")
            if self._lines < 0 or self._bytes < 0:
                most = f"{CHANGE_LINES:,} lines or {CHANGE_BYTES // MIB} MiB"
                raise UsageError(
                    f"version {self._n} changes more than {most}, and so much is not compared seal by seal"
                )
            counted.append(file)
        return counted


def change_of(files: Sequence[ChangedFile]) -> tuple[list[str], bool]:
    """Return the changes of these files line by line, without line numbers, and whether the server sent all
    of them."""
    lines: list[str] = []
    for file in sorted(files, key=lambda changed: changed.path):
        lines.append(f"{file.status} {file.old_path or file.path} {file.path}")
        body = (file.patch or "").splitlines()
        start = next((at for at, line in enumerate(body) if line.startswith("@@")), len(body))
        lines += ["@@" if line.startswith("@@") else line for line in body[start:]]
    return lines, all(file.patch is not None for file in files)


def pair_seals(old: Sequence[SealDiff], new: Sequence[SealDiff], work: Work | None = None) -> list[Pair]:
    """Pair the seals of two versions, each at most once. Returns the pairs in the order of the new version,
    with removed seals at their old position. `work` limits how many lines are compared; None means the
    default limit. After that many lines, the remaining seals are not paired."""
    partners: dict[int, int] = {}  # new → old
    unpaired = set(range(len(old)))
    places: dict[object, list[int]] = {}  # of the old ones by what makes them the same, the first one last
    for old_at in range(len(old) - 1, -1, -1):
        for key in _keys(old[old_at]):
            places.setdefault(key, []).append(old_at)
    for at, step in enumerate(new):
        firsts = (_pop_to_unpaired(places.get(key, []), unpaired) for key in _keys(step))
        same = [first for first in firsts if first is not None]
        if same:
            partners[at] = min(same)
            unpaired.discard(partners[at])
    open_ = [at for at in range(len(new)) if at not in partners]
    near = sorted(_likely_pairs(old, new, unpaired, open_, work or Work()))
    for _, _, old_at, at in near:
        if old_at in unpaired and at not in partners:
            partners[at] = old_at
            unpaired.discard(old_at)
    return _in_order(old, new, partners)


def _keys(step: SealDiff) -> list[object]:
    """Return keys by which seals with the same change are found. Two such seals have at least one key in
    common."""
    return [step.seal, *([step.lines] if step.whole else [])]


def _pop_to_unpaired(places: list[int], unpaired: set[int]) -> int | None:
    while places and places[-1] not in unpaired:
        places.pop()
    return places[-1] if places else None


def _likely_pairs(
    old: Sequence[SealDiff],
    new: Sequence[SealDiff],
    unpaired: Iterable[int],
    open_: Sequence[int],
    work: Work,
) -> Iterator[tuple[int, int, int, int]]:
    """Yields pairs of seals with similar changes, as (difference in lines, distance of the positions, old
    position, new position). `unpaired` are the positions of the old seals to compare, `open_` those of the
    new seals. Seals with the same message are compared first, then seals whose positions are near."""
    pairs = [
        (old[old_at].message != new[at].message, abs(old_at - at), old_at, at)
        for old_at in unpaired
        for at in open_
    ]
    counts: dict[str, Counter[str]] = {}
    for _, apart, old_at, at in sorted(pairs):
        a, b = old[old_at], new[at]
        both = len(a.lines) + len(b.lines)
        if abs(len(a.lines) - len(b.lines)) * 100 > UNLIKE * both:
            continue
        if not work.take(both // COUNTED):
            return
        shared = [counts.setdefault(step.seal, Counter(step.lines)) for step in (a, b)]
        if (both - 2 * (shared[0] & shared[1]).total()) * 100 > UNLIKE * both:
            continue
        if not work.take(both):
            return
        if (distance := _distance(a, b)) is not None:
            yield distance, apart, old_at, at


def _in_order(old: Sequence[SealDiff], new: Sequence[SealDiff], partners: dict[int, int]) -> list[Pair]:
    pairs: list[Pair] = []
    gone = sorted(set(range(len(old))) - set(partners.values()))
    for at, step in enumerate(new):
        old_at = partners.get(at)
        while gone and old_at is not None and gone[0] < old_at:
            pairs.append(_removed_pair(old, gone.pop(0)))
        if old_at is None:
            pairs.append(Pair(">", None, at + 1, None, step.seal, step.message))
        else:
            before = old[old_at]
            alike = before.same(step)
            diff = "" if alike else _difference(before, step)
            mark: Mark = "=" if alike else "!"
            pairs.append(Pair(mark, old_at + 1, at + 1, before.seal, step.seal, step.message, diff))
    return [*pairs, *(_removed_pair(old, old_at) for old_at in gone)]


def _removed_pair(old: Sequence[SealDiff], old_at: int) -> Pair:
    return Pair("<", old_at + 1, None, old[old_at].seal, None, old[old_at].message)


def _distance(first: SealDiff, other: SealDiff) -> int | None:
    """Return the number of lines that differ between two changes. None if they have too little in common."""
    a, b = _encode_lines(first), _encode_lines(other)
    changed = line_diff.opcodes(a, b, by_indent=False)
    differ = sum((hunk.old_end - hunk.old_start) + (hunk.new_end - hunk.new_start) for hunk in changed)
    return differ if differ * 100 <= UNLIKE * (len(a) + len(b)) else None


def _difference(first: SealDiff, other: SealDiff) -> str:
    a, b = b"".join(_encode_lines(first)), b"".join(_encode_lines(other))
    patch = line_diff.unified_diff(a, b, "change", "change").decode("utf-8", "replace")
    return "".join(patch.partition("@@")[1:])


def _encode_lines(step: SealDiff) -> list[bytes]:
    return [line.encode("utf-8", "surrogatepass") + b"\n" for line in step.lines]
