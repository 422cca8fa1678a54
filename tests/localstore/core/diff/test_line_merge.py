"""Three-way merge: laws, and the word of `git merge-file`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.diff.line_merge import Merge, merge
from tests.localstore.core.conftest import Git
from tests.localstore.core.corpus import edited, programs

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"{\n", b"\n", b"d e f\n"]), max_size=12)
TEXTS = st.builds(lambda some, tail: b"".join(some) + tail, LINES, st.sampled_from([b"", b"a", b"end"]))


@given(TEXTS, TEXTS)
def test_one_side_alone_is_taken(base: bytes, changed: bytes) -> None:
    assert merge(base, changed, base) == Merge(changed, 0)
    assert merge(base, base, changed) == Merge(changed, 0)
    assert merge(base, changed, changed) == Merge(changed, 0)


@given(TEXTS, TEXTS, TEXTS)
@settings(max_examples=400)
def test_the_sides_are_alike(base: bytes, ours: bytes, theirs: bytes) -> None:
    here, there = merge(base, ours, theirs), merge(base, theirs, ours)
    assert bool(here.conflicts) == bool(there.conflicts)
    if not here.conflicts:
        assert here.text == there.text


@given(TEXTS, TEXTS, TEXTS)
@settings(max_examples=400)
def test_marked_conflicts_are_counted_and_keep_every_line(base: bytes, ours: bytes, theirs: bytes) -> None:
    merged = merge(base, ours, theirs)
    assert merged.text.count(b"<<<<<<< ours\n") == merged.conflicts
    assert merged.text.count(b"=======\n") == merged.conflicts
    assert merged.text.count(b">>>>>>> theirs\n") == merged.conflicts
    kept = set(merged.text.splitlines())
    fresh = {line for side in (ours, theirs) for line in side.splitlines()} - set(base.splitlines())
    assert fresh <= kept


@given(LINES, LINES, st.lists(st.sampled_from([b"x\n", b"y\n"]), max_size=3))
def test_changes_far_apart_never_conflict(
    first: list[bytes], second: list[bytes], middle: list[bytes]
) -> None:
    fence = [b"fence %d\n" % n for n in range(6)]
    base = b"".join([b"top\n", *fence, *middle, b"bottom\n"])
    ours = b"".join([b"top\n", *first, *fence, *middle, b"bottom\n"])
    theirs = b"".join([b"top\n", *fence, *middle, b"bottom\n", *second])
    both = b"".join([b"top\n", *first, *fence, *middle, b"bottom\n", *second])
    assert merge(base, ours, theirs) == Merge(both, 0)


def test_a_conflict_is_marked_with_the_labels() -> None:
    merged = merge(b"a\nb\nc\n", b"a\nB\nc\n", b"a\nbb\nc\n", "main", "feature/x")
    assert merged == Merge(b"a\n<<<<<<< main\nB\n=======\nbb\n>>>>>>> feature/x\nc\n", 1)


def test_markers_follow_the_line_endings() -> None:
    merged = merge(b"a\r\nb\r\n", b"a\r\nB\r\n", b"a\r\nbb\r\n")
    assert merged.text == b"a\r\n<<<<<<< ours\r\nB\r\n=======\r\nbb\r\n>>>>>>> theirs\r\n"


def test_line_endings_are_those_of_the_sides_not_of_the_base() -> None:
    merged = merge(b"a", b"a\r\nb", b"a\r\nc")
    assert merged.text == b"a\r\n<<<<<<< ours\r\nb\r\n=======\r\nc\r\n>>>>>>> theirs\r\n"


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        (b"", b"a\n", b"b\n"),
        (b"", b"a\n", b"a\nb\n"),
        (b"a", b"b", b"c"),
        (b"a\n", b"", b"b\n"),
        (b"a\nb\nc\n", b"a\nc\n", b"a\nB\nc\n"),
        (b"a\nb\n", b"x\na\nb\n", b"a\nb\ny\n"),
        (b"a\nb\nc\n", b"A\nb\nc\n", b"a\nB\nc\n"),
        (b"a\nb\nc\nd\n", b"A\nb\nC\nd\n", b"a\nB\nc\nD\n"),
        (b"a\r\nb\r\n", b"A\r\nb\r\n", b"AA\r\nb\r\n"),
        (b"a\r\n", b"b\r\n", b"c\n"),
    ],
)
def test_corner_cases_end_as_in_git(
    tmp_path: Path, git: Git, base: bytes, ours: bytes, theirs: bytes
) -> None:
    assert merge(base, ours, theirs) == _merge_file(git, tmp_path, base, ours, theirs)


def _merge_file(git: Git, tmp_path: Path, base: bytes, ours: bytes, theirs: bytes) -> Merge:
    for name, text in (("base", base), ("ours", ours), ("theirs", theirs)):
        (tmp_path / name).write_bytes(text)
    labels = [part for label in ("ours", "base", "theirs") for part in ("-L", label)]
    answer = git("merge-file", "-p", *labels, "ours", "base", "theirs")
    return Merge(answer.stdout, answer.returncode)


def test_programs_merge_as_in_git(tmp_path: Path, git: Git) -> None:
    rng = random.Random(1)
    modules = programs()
    same = conflicting = 0
    for _ in range(80):
        base, pool = rng.choice(modules)[:150], rng.choice(modules)
        ours, theirs = (b"".join(edited(rng, base, pool, rng.randrange(1, 5))) for _ in range(2))
        expected = _merge_file(git, tmp_path, b"".join(base), ours, theirs)
        merged = merge(b"".join(base), ours, theirs)
        assert merged.conflicts == expected.conflicts
        conflicting += merged.conflicts > 0
        same += merged == expected
    assert same >= 78
    assert conflicting >= 8


def test_short_files_merge_as_in_git(tmp_path: Path, git: Git) -> None:
    rng = random.Random(2)
    pool = [b"%d\n" % n for n in range(40)]
    same = conflicting = 0
    for _ in range(150):
        base = rng.choices(pool, k=rng.randrange(4, 14))
        ours, theirs = (b"".join(edited(rng, base, pool, rng.randrange(1, 3))) for _ in range(2))
        merged = merge(b"".join(base), ours, theirs)
        same += merged == _merge_file(git, tmp_path, b"".join(base), ours, theirs)
        conflicting += merged.conflicts > 0
    assert same >= 146
    assert conflicting >= 30
