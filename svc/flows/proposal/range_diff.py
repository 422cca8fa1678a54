"""Compares the seals of two versions of a proposal, as `git range-diff`.

Seals with the same change are pairs, wherever the lines are by now; the others are paired by the smallest
difference, unless that is too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from localstore.core.diff import line_diff
from localstore.core.errors import UsageError
from localstore.core.limits import PAGE_MAX
from localstore.core.model import history
from localstore.core.model.collaboration.proposal import Version
from localstore.core.model.history import ChangedFile, CommitsQuery
from localstore.core.model.repo import Repo
from svc.flows.history.compare import changes_of_seal
from svc.flows.place.where import Where

SEALS = 200  # of one version that are compared
UNLIKE = 60  # percent of both changes that may differ in a pair, as git has it
Mark = Literal["=", "!", "<", ">"]


class Step(msgspec.Struct, frozen=True):
    """A seal and its change: a line for each file, and the lines of its patch without positions. `whole`:
    everything could be compared."""

    seal: str
    message: str
    lines: tuple[str, ...]
    whole: bool = True

    def same(self, other: Step) -> bool:
        return self.seal == other.seal or (self.whole and other.whole and self.lines == other.lines)


class Pair(msgspec.Struct, frozen=True):
    """`mark`: `=` same change, `!` different change, `<` removed, `>` new. `old`, `new`: positions from 1.
    `diff`: the difference of the changes, for `!`."""

    mark: Mark
    old: int | None
    new: int | None
    old_seal: str | None
    new_seal: str | None
    message: str
    diff: str = ""


def steps(where: Where, repo: Repo, version: Version) -> list[Step]:
    """The seals of a version that its base lacks, oldest first. Raises UsageError for too many."""
    found: list[Step] = []
    query = CommitsQuery(sha=version.head, limit=PAGE_MAX, first_parent=True)
    walk = where.reader.items(history.COMMITS, query, id=repo.id)
    for seal in walk:
        if seal.id in (version.merge_base, version.base):
            break
        if len(found) == SEALS:
            raise UsageError(f"version {version.n} has more than {SEALS} seals, and so many are not compared")
        lines, whole = change_of(changes_of_seal(where, repo, seal.id))
        found.append(Step(seal.id, seal.message, tuple(lines), whole))
    return found[::-1]


def change_of(files: Sequence[ChangedFile]) -> tuple[list[str], bool]:
    """The changes of these files, line by line, without positions; and whether they are complete."""
    lines: list[str] = []
    for file in sorted(files, key=lambda one: one.path):
        lines.append(f"{file.status} {file.old_path or file.path} {file.path}")
        body = (file.patch or "").splitlines()
        start = next((at for at, line in enumerate(body) if line.startswith("@@")), len(body))
        lines += ["@@" if line.startswith("@@") else line for line in body[start:]]
    return lines, all(file.patch is not None for file in files)


def paired(old: Sequence[Step], new: Sequence[Step]) -> list[Pair]:
    """Each seal once, in the order of the new version; removed ones at their old place."""
    found: dict[int, int] = {}  # new → old
    left = set(range(len(old)))
    for at, step in enumerate(new):
        same = next((one for one in sorted(left) if old[one].same(step)), None)
        if same is not None:
            found[at] = same
            left.discard(same)
    open_ = [at for at in range(len(new)) if at not in found]
    near = sorted(
        (distance, abs(one - at), one, at)
        for one in left
        for at in open_
        if (distance := _distance(old[one], new[at])) is not None
    )
    for _, _, one, at in near:
        if one in left and at not in found:
            found[at] = one
            left.discard(one)
    return _in_order(old, new, found)


def _in_order(old: Sequence[Step], new: Sequence[Step], found: dict[int, int]) -> list[Pair]:
    pairs: list[Pair] = []
    gone = [one for one in range(len(old)) if one not in found.values()]
    for at, step in enumerate(new):
        one = found.get(at)
        while gone and one is not None and gone[0] < one:
            pairs.append(_gone(old, gone.pop(0)))
        if one is None:
            pairs.append(Pair(">", None, at + 1, None, step.seal, step.message))
        else:
            before = old[one]
            alike = before.same(step)
            diff = "" if alike else _difference(before, step)
            mark: Mark = "=" if alike else "!"
            pairs.append(Pair(mark, one + 1, at + 1, before.seal, step.seal, step.message, diff))
    return [*pairs, *(_gone(old, one) for one in gone)]


def _gone(old: Sequence[Step], one: int) -> Pair:
    return Pair("<", one + 1, None, old[one].seal, None, old[one].message)


def _distance(one: Step, other: Step) -> int | None:
    """Number of differing lines; None if the two have too little in common."""
    a, b = _encoded(one), _encoded(other)
    changed = line_diff.opcodes(a, b, by_indent=False)
    differ = sum((hunk.old_end - hunk.old_start) + (hunk.new_end - hunk.new_start) for hunk in changed)
    return differ if differ * 100 <= UNLIKE * (len(a) + len(b)) else None


def _difference(one: Step, other: Step) -> str:
    a, b = b"".join(_encoded(one)), b"".join(_encoded(other))
    patch = line_diff.unified(a, b, "change", "change").decode("utf-8", "replace")
    return "".join(patch.partition("@@")[1:])


def _encoded(step: Step) -> list[bytes]:
    return [line.encode("utf-8", "surrogatepass") + b"\n" for line in step.lines]
