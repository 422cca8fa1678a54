"""Lines are paired as git pairs them, also where that is not the shortest difference; and never for long."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from localstore.core.diff.alignment import Hunk, intern_elements
from localstore.core.diff.git_alignment import OverBudget, as_git, git_hunks
from localstore.core.diff.sliding import slid
from localstore.core.diff.text_merge import MergedText, merge
from tests.localstore.core.conftest import Git
from tests.localstore.core.corpus import edited, programs

PLENTY = 20_000_000
HEAD = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def by_git(git: Git, folder: Path, old: list[bytes], new: list[bytes]) -> list[Hunk]:
    """With a line of context: without one, git cuts equal ends off first, which its merge does not do."""
    (folder / "old").write_bytes(b"".join(old))
    (folder / "new").write_bytes(b"".join(new))
    told = git("diff", "--no-index", "--no-indent-heuristic", "-a", "-U1", "old", "new").stdout.decode(
        "latin1"
    )
    found: list[Hunk] = []
    i = j = -1
    for line in told.split("\n"):
        if head := HEAD.match(line):
            i, j = int(head[1]) - (head[2] != "0"), int(head[3]) - (head[4] != "0")
        elif i >= 0 and line[:1] in ("-", "+"):
            hunk = Hunk(i, i + (line[0] == "-"), j, j + (line[0] == "+"))
            touching = found and (found[-1].old_end, found[-1].new_end) == (i, j)
            found = [*found[:-1], _joined(found[-1], hunk)] if touching else [*found, hunk]
            i, j = hunk.old_end, hunk.new_end
        elif i >= 0 and line[:1] == " ":
            i, j = i + 1, j + 1
    return found


def _joined(first: Hunk, second: Hunk) -> Hunk:
    return Hunk(first.old_start, second.old_end, first.new_start, second.new_end)


def ours(old: list[bytes], new: list[bytes]) -> list[Hunk]:
    a, b = intern_elements(old, new)
    return slid(a, b, git_hunks(a, b, PLENTY), None)


def test_edited_programs(git: Git, tmp_path: Path) -> None:
    rng = random.Random(1)
    modules = programs()
    for _ in range(60):
        old, pool = rng.choice(modules), rng.choice(modules)
        new = edited(rng, old, pool, rng.randrange(1, 60))
        assert ours(old, new) == by_git(git, tmp_path, old, new)


@pytest.mark.parametrize("words", [2, 5, 40, 400])
def test_lines_that_repeat(git: Git, tmp_path: Path, words: int) -> None:
    """Few words: most lines are frequent. Many: the ways are long, and git gives up on the shortest."""
    rng = random.Random(words)
    pool = [b"%d\n" % n for n in range(words)]
    for size in (1, 3, 30, 300, 1500):
        for _ in range(4):
            old, new = rng.choices(pool, k=size), rng.choices(pool, k=rng.randrange(size * 2))
            assert ours(old, new) == by_git(git, tmp_path, old, new)


def test_another_text_altogether_with_runs_of_equal_lines(git: Git, tmp_path: Path) -> None:
    rng = random.Random(7)
    block = [b"same %d\n" % n for n in range(60)]
    for _ in range(6):
        old, new = ([b"%s%d\n" % (name, n) for n in range(2000)] for name in (b"a", b"b"))
        for side in (old, new):
            for _ in range(3):
                at = rng.randrange(len(side))
                side[at:at] = block[rng.randrange(30) :]
            for _ in range(400):
                side[rng.randrange(len(side))] = b"%d\n" % rng.randrange(50)
        assert ours(old, new) == by_git(git, tmp_path, old, new)


def test_what_would_take_long_is_given_up_and_found_otherwise() -> None:
    rng = random.Random(9)
    old, new = (rng.choices([b"%d\n" % n for n in range(300)], k=20_000) for _ in range(2))
    a, b = intern_elements(old, new)
    with pytest.raises(OverBudget):
        git_hunks(a, b, 100_000)
    rest = old
    for hunk in reversed(as_git(old, new)):
        rest = [*rest[: hunk.old_start], *new[hunk.new_start : hunk.new_end], *rest[hunk.old_end :]]
    assert rest == new


def test_what_git_merges_cleanly_has_gits_bytes(git: Git, tmp_path: Path) -> None:
    rng = random.Random(11)
    modules = programs()
    pool = [b"%d\n" % n for n in range(30)]
    clean = 0
    for number in range(300):
        base, more = (
            (rng.choice(modules)[:200], rng.choice(modules))
            if number % 2
            else (rng.choices(pool, k=60), pool)
        )
        theirs, mine = (edited(rng, base, more, rng.randrange(1, 4)) for _ in range(2))
        for name, side in (("base", base), ("theirs", theirs), ("mine", mine)):
            (tmp_path / name).write_bytes(b"".join(side))
        told = git("merge-file", "-p", "theirs", "base", "mine")
        if told.returncode == 0:
            clean += 1
            assert merge(b"".join(base), b"".join(theirs), b"".join(mine)) == MergedText(told.stdout, [])
    assert clean >= 100
