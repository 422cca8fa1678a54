"""Line differences and patches, held against the real git."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.diff.line_diff import lines, opcodes, stat, unified_diff
from tests.localstore.core.conftest import Git
from tests.localstore.core.corpus import edited, programs

TEXTS = st.lists(st.sampled_from([b"a\n", b"b\n", b"\n", b"  c\n", b"x\r\n", b"}\n"]), max_size=25).map(
    b"".join
)


@given(TEXTS, TEXTS, st.booleans())
@settings(max_examples=400)
def test_lines_outside_the_opcodes_are_equal(old: bytes, new: bytes, by_indent: bool) -> None:
    a, b = lines(old), lines(new)
    at = to = 0
    for i1, i2, j1, j2 in [*opcodes(a, b, by_indent), (len(a), len(a), len(b), len(b))]:
        assert a[at:i1] == b[to:j1]
        at, to = i2, j2


@given(st.binary(max_size=50))
def test_lines_join_to_the_data(data: bytes) -> None:
    cut = lines(data)
    assert b"".join(cut) == data
    assert all(line.count(b"\n") <= 1 and line for line in cut)


def _hunks(patch: bytes) -> bytes:
    """A patch without its header, and without the function names behind @@."""
    return re.sub(rb"(?m)^(@@ .*? @@).*$", rb"\1", patch[patch.find(b"\n@@") :])


def test_patches_read_like_those_of_git(tmp_path: Path, git: Git) -> None:
    rng = random.Random(1)
    modules = programs()
    same = 0
    for _ in range(60):
        module = rng.choice(modules)
        old, new = b"".join(module), b"".join(edited(rng, module, rng.choice(modules), rng.randrange(1, 12)))
        (tmp_path / "a").write_bytes(old)
        (tmp_path / "b").write_bytes(new)
        theirs, ours = git("diff", "--no-index", "a", "b").stdout, unified_diff(old, new, "f", "f")
        same += _hunks(theirs) == _hunks(ours)
        assert abs(len(lines(theirs)) - len(lines(ours))) <= 6
    assert same >= 52


def _apply(git: Git, tmp_path: Path, old: bytes | None, new: bytes | None, path: str, new_path: str) -> None:
    before, after = tmp_path / path, tmp_path / new_path
    if old is not None:
        before.parent.mkdir(parents=True, exist_ok=True)
        before.write_bytes(old)
    patch = unified_diff(old, new, path, new_path)
    answer = git("apply", "--whitespace=nowarn", stdin=patch)
    assert answer.returncode == 0, (answer.stderr, patch)
    if new is None:
        assert not after.exists()
    else:
        assert after.read_bytes() == new
        after.unlink()


@pytest.mark.parametrize(
    "path", ["f", "with space.py", 'quo"te', "tab\there", "漢字/é.txt", "back\\slash", "nl\nname"]
)
def test_git_applies_patches_under_any_name(tmp_path: Path, git: Git, path: str) -> None:
    _apply(git, tmp_path, b"a\nb\n", b"a\nc\n", path, path)
    _apply(git, tmp_path, None, b"new\n", path, path)
    _apply(git, tmp_path, b"gone\n", None, path, path)
    _apply(git, tmp_path, b"a\nb\n", b"a\nc\n", "before", path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"a", b"b"),
        (b"a\n", b"a"),
        (b"a", b"a\n"),
        (b"", b"a\n"),
        (b"a\n", b""),
        (None, b""),
        (b"", None),
        (None, b"a"),
        (b"a", None),
        (b"a\r\nb\r\n", b"a\nb\n"),
        (b"one\n" * 10, b"one\n" * 11),
        (b"\xff\xfe\n", b"\xff\n"),
        (b"- a\n+ b\n@@ c\n", b"-- a\n+++ b\n"),
    ],
)
def test_git_applies_patches_of_any_text(
    tmp_path: Path, git: Git, old: bytes | None, new: bytes | None
) -> None:
    _apply(git, tmp_path, old, new, "f", "f")


def test_git_applies_patches_of_programs(tmp_path: Path, git: Git) -> None:
    rng = random.Random(2)
    modules = programs()
    for _ in range(25):
        module = rng.choice(modules)
        new = edited(rng, module, rng.choice(modules), rng.randrange(1, 30))
        new[-1] = new[-1].rstrip(b"\n") if rng.random() < 0.5 else new[-1]
        _apply(git, tmp_path, b"".join(module), b"".join(new), "f", "f")


def test_the_form_of_a_patch() -> None:
    old = b"".join(b"%d\n" % n for n in range(1, 21))
    new = old.replace(b"\n2\n", b"\n2\nnew\n").replace(b"20\n", b"20")
    assert unified_diff(old, new, "f.txt", "f.txt") == (
        b"diff --git a/f.txt b/f.txt\n--- a/f.txt\n+++ b/f.txt\n"
        b"@@ -1,5 +1,6 @@\n 1\n 2\n+new\n 3\n 4\n 5\n"
        b"@@ -17,4 +18,4 @@\n 17\n 18\n 19\n-20\n+20\n\\ No newline at end of file\n"
    )


def test_nothing_is_written_where_nothing_differs() -> None:
    assert unified_diff(b"a\n", b"a\n", "f", "f") == b""
    assert unified_diff(b"a\n", b"a\n", "f", "g") == b"diff --git a/f b/g\nrename from f\nrename to g\n"


def test_binary_files_only_differ() -> None:
    patch = unified_diff(b"\0\1", b"\0\2", "i.png", "i.png")
    assert patch == b"diff --git a/i.png b/i.png\nBinary files a/i.png and b/i.png differ\n"
    assert unified_diff(None, b"\0", None, "i.png").endswith(b"Binary files /dev/null and b/i.png differ\n")
    assert stat(b"\0\1", b"\0\2") == (0, 0)


def test_context_is_a_choice() -> None:
    old = b"".join(b"%d\n" % n for n in range(9))
    patch = unified_diff(old, old.replace(b"4\n", b"four\n"), "f", "f", context=0)
    assert patch.endswith(b"@@ -5 +5 @@\n-4\n+four\n")


def test_stat_counts_lines() -> None:
    assert stat(None, b"a\nb") == (2, 0)
    assert stat(b"a\nb\n", None) == (0, 2)
    assert stat(b"a\nb\nc\n", b"a\nB\nc\nd\n") == (2, 1)


def test_huge_and_repetitive_texts_end_in_time() -> None:
    rng = random.Random(3)
    old, new = (b"".join(rng.choices([b"}\n", b"\n", b"  pass\n"], k=30_000)) for _ in range(2))
    assert all(stat(old, new))
    assert stat(b"\n" * 500_000, b"\n" * 500_001) == (1, 0)


def test_groups_begin_where_blocks_begin() -> None:
    old = b"def a():\n    pass\n\ndef c():\n    pass\n"
    new = b"def a():\n    pass\n\ndef b():\n    pass\n\ndef c():\n    pass\n"
    assert opcodes(lines(old), lines(new)) == [(3, 3, 3, 6)]


def test_white_space_is_ignored_as_git_does(tmp_path: Path, git: Git) -> None:
    rng = random.Random(3)
    modules = programs()
    same = 0
    for _ in range(30):
        module = rng.choice(modules)
        changed = edited(rng, module, rng.choice(modules), rng.randrange(0, 5))
        spaced = [b"  " + line.replace(b" ", b"\t") if rng.random() < 0.2 else line for line in changed]
        old, new = b"".join(module), b"".join(spaced)
        (tmp_path / "a").write_bytes(old)
        (tmp_path / "b").write_bytes(new)
        theirs = git("diff", "-w", "--no-index", "a", "b").stdout
        ours = unified_diff(old, new, "f", "f", space=False)
        same += _hunks(ours) == _hunks(theirs)
        assert bool(ours) == bool(_hunks(theirs))
    assert same >= 27


def test_what_differs_in_white_space_alone_is_no_change() -> None:
    assert unified_diff(b"a b\n", b"  a\tb", "f", "f", space=False) == b""
    assert stat(b"a b\n", b"  a\tb", space=False) == (0, 0)
    assert b"rename to g" in unified_diff(b"a\n", b" a\n", "f", "g", similarity=90, space=False)
    assert stat(b"a\n", b" a\nb\n", space=False) == (1, 0)
