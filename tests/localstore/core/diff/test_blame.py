"""Line blame, carried forward, against the real `git blame`."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from localstore.core.diff.blame import LineRange, advance, ranges
from tests.localstore.core.conftest import Git
from tests.localstore.core.corpus import edited, programs


def test_a_seal_owns_what_it_changed() -> None:
    old = [b"one\n", b"two\n", b"three\n"]
    owners = advance(["a"] * 3, old, [b"one\n", b"TWO\n", b"three\n", b"four"], "b")
    assert owners == ["a", "b", "a", "b"]
    assert ranges(owners) == [
        LineRange(0, 1, "a"),
        LineRange(1, 2, "b"),
        LineRange(2, 3, "a"),
        LineRange(3, 4, "b"),
    ]
    assert ranges([]) == []
    assert ranges(["a", "a"]) == [LineRange(0, 2, "a")]


def test_deleting_owns_nothing() -> None:
    assert advance([1, 2, 3], [b"a\n", b"b\n", b"c\n"], [b"a\n", b"c\n"], 4) == [1, 3]
    assert advance([1], [b"a\n"], [], 2) == []
    assert advance([], [], [b"a\n"], 2) == [2]


def test_a_lost_line_end_is_a_change() -> None:
    assert advance([1, 1], [b"a\n", b"b\n"], [b"a\n", b"b"], 2) == [1, 2]


def test_owners_must_fit_the_text() -> None:
    with pytest.raises(ValueError, match="2 owners for 1 lines"):
        advance([1, 2], [b"a\n"], [b"b\n"], 3)


@pytest.mark.parametrize(("repeating", "agreement"), [(False, 0.999), (True, 0.99)])
def test_agrees_with_git_on_a_linear_history(
    tmp_path: Path, git: Git, repeating: bool, agreement: float
) -> None:
    rng = random.Random(4)
    modules = programs()
    git("init", "-q")
    files = {f"{n}.py": rng.choice(modules) for n in range(4)}
    owners = {name: [0] * len(lines) for name, lines in files.items()}
    seals: dict[bytes, int] = {}
    for seal in range(30):
        for name, lines in files.items():
            if seal and rng.random() < 0.7:
                files[name] = edited(rng, lines, rng.choice(modules), rng.randrange(1, 6), repeating)
                owners[name] = advance(owners[name], lines, files[name], seal)
            (tmp_path / name).write_bytes(b"".join(files[name]))
        git("add", ".")
        git("commit", "-q", "--allow-empty", "-m", str(seal))
        seals[git("rev-parse", "HEAD").stdout.strip()] = seal
    same = total = 0
    for name, carried in owners.items():
        blamed = git("blame", "--porcelain", name).stdout
        expected = [seals[commit] for commit in re.findall(rb"(?m)^([0-9a-f]{40}) \d+ \d+", blamed)]
        assert len(expected) == len(carried)
        total += len(carried)
        same += sum(a == b for a, b in zip(expected, carried, strict=True))
    assert total > 1000
    assert same / total >= agreement
