"""Merging texts: cases that went wrong by characters, laws, and the bytes of a clean merge by lines."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.diff.text_merge import MergedText, TextConflict, has_markers, mark_conflicts, merge
from localstore.core.diff.word_merge import tokens
from tests.localstore.core.conftest import Git
from tests.localstore.core.corpus import edited, programs

WORDS = [
    "a",
    "b",
    "foo",
    "30",
    "60",
    "1.2",
    "é",
    "日本",
    "(",
    ")",
    ",",
    " ",
    "  ",
    '"',
    "=",
    "\n",
    "\n  ",
    "\r\n",
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=30).map(lambda some: "".join(some).encode())
LINES = st.lists(st.sampled_from(["a\n", "b\n", "- a\n", "- b\n", "  c d e f\n", "\n", "x\r\n"]), max_size=10)
PAGES = st.builds(
    lambda some, tail: ("".join(some) + tail).encode(), LINES, st.sampled_from(["", "a", "end"])
)


def joined(base: bytes, theirs: bytes, mine: bytes) -> bytes | None:
    """The merged text, None for a conflict."""
    found = merge(base, theirs, mine)
    return None if found.conflicts else found.text


# --- cases


def test_the_same_change_on_both_sides_is_made_once() -> None:
    base, changed = b"import a\ntimeout = 30\nretry = 1\n", b"import a\ntimeout = 60\nretry = 1\n"
    assert merge(base, changed, changed) == MergedText(changed, [])
    assert joined(base, changed, changed + b"more = 2\n") == changed + b"more = 2\n"


def test_lines_that_both_inserted_are_inserted_once() -> None:
    assert joined(b"a\nz\n", b"a\nnew\nz\n", b"a\nnew\nz\nend\n") == b"a\nnew\nz\nend\n"


def test_both_indent_a_file_anew() -> None:
    base = b"".join(b"def f%d(a):\n  if a:\n    return %d\n" % (n, n) for n in range(50))
    wider = base.replace(b"    return", b"        return").replace(b"  if", b"    if")
    mine = wider.replace(b"return 7\n", b"return 700\n")
    assert joined(base, wider, wider) == wider
    assert joined(base, wider, mine) == mine


def test_two_values_for_one_setting_are_a_conflict_and_theirs_stays_whole() -> None:
    theirs = b"HOST = 'x'\nPORT = 9000\n"
    merged = merge(b"HOST = ''\nPORT = 8080\n", theirs, b"HOST = ''\nPORT = 3000\n")
    assert merged == MergedText(theirs, [TextConflict((0, 2), (0, 2), (0, 2))])


def test_new_settings_of_one_name_are_a_conflict() -> None:
    assert joined(b"a = 1\n", b"a = 1\nPORT = 3000\n", b"a = 1\nPORT = 9000\n") is None


def test_a_renamed_parameter_and_a_new_default_both_land() -> None:
    base = b"def area(w, h):\n    return w * h\n"
    renamed = b"def area(width, h):\n    return width * h\n"
    extended = b"def area(w, h=1):\n    return w * h  # square units\n"
    assert joined(base, renamed, extended) == b"def area(width, h=1):\n    return width * h  # square units\n"


@pytest.mark.parametrize(
    ("base", "theirs", "mine"),
    [
        (b"v = '1.0.1'\n", b"v = '1.1.1'\n", b"v = '1.0.2'\n"),
        (b"tag v1.0.1 now\n", b"tag v2.0.1 now\n", b"tag v1.0.2 now\n"),
        (b"on 2024-01-05\n", b"on 2025-01-05\n", b"on 2024-01-06\n"),
        (b"pay 1,000,000\n", b"pay 2,000,000\n", b"pay 1,000,500\n"),
        (b"id 0b1e-41d4-a716\n", b"id 0b2e-41d4-a716\n", b"id 0b1e-41d4-a717\n"),
        ("नमस्ते\n".encode(), "नमस्तु\n".encode(), "तमस्ते\n".encode()),
        ("👨‍👩‍👧‍👦\n".encode(), "👩‍👩‍👧‍👦\n".encode(), "👨‍👩‍👧‍👧\n".encode()),
        ("cafe\u0301s\n".encode(), "cafe\u0300s\n".encode(), "cafe\u0301t\n".encode()),
    ],
)
def test_two_changes_inside_one_word_or_number_are_a_conflict(
    base: bytes, theirs: bytes, mine: bytes
) -> None:
    assert joined(base, theirs, mine) is None


def test_changes_with_one_mark_between_are_a_conflict_with_two_they_land() -> None:
    assert joined(b"a=b\n", b"x=b\n", b"a=y\n") is None
    assert joined(b"a[0]=b\n", b"x[0]=b\n", b"a[0]=y\n") == b"x[0]=y\n"


def test_both_change_brackets_or_quotes() -> None:
    assert joined(b"f(a) + b + c + g(d)\n", b"f((a)) + b + c + g(d)\n", b"f(a) + b + c + g((d))\n") is None
    assert joined(b"f(a) + b + c + d\n", b"f(x(a)) + b + c + d\n", b"f(a) + b + c + e\n") is not None


def test_both_insert_the_same_word_at_different_places() -> None:
    assert joined(b"f a, b, c, d, e\n", b"f new, a, b, c, d, e\n", b"f a, b, c, d, e, new\n") is None


def test_imports_that_both_added_stand_theirs_first() -> None:
    merged = joined(b"import a\n", b"import a\nimport b\nimport c\n", b"import a\nimport d\nimport b\n")
    assert merged is None  # both wrote `import b`
    merged = joined(b"import a\n", b"import a\nimport b\nimport c\n", b"import a\nimport d\n")
    assert merged == b"import a\nimport b\nimport c\nimport d\n"


def test_the_side_that_added_more_of_the_same_is_taken() -> None:
    assert joined(b"a\n", b"a\nx\n", b"a\nw\nx\ny\n") == b"a\nw\nx\ny\n"


def test_statements_that_both_added_are_a_conflict() -> None:
    base = b"def f():\n    go()\n"
    assert joined(base, base + b"    stop()\n    wait()\n", base + b"    turn()\n") is None


def test_a_deleted_line_that_the_other_side_changed_is_a_conflict() -> None:
    assert joined(b"a\nb b b b\nc\n", b"a\nc\n", b"a\nb b b x\nc\n") is None


# --- line endings, ends of files


def test_line_endings_merge_apart_from_the_text() -> None:
    base, flipped = b"a\nb\nc\nd\n", b"a\r\nb\r\nc\r\nd\r\n"
    assert joined(base, flipped, b"a\nx\nc\nd\n") == b"a\r\nx\r\nc\r\nd\r\n"
    assert joined(flipped, base, b"a\r\nx\r\nc\r\nd\r\n") == b"a\nx\nc\nd\n"
    assert joined(base, flipped, b"") == b""


def test_a_text_of_one_line_does_not_say_how_lines_end() -> None:
    assert joined(b"a\r\nb\r\nc\r\nd", b"c\r\nd", b"a\r\nb\r\nc\r\nd\r\ne") == b"c\r\nd\r\ne"
    assert joined(b"a\r\nb\r\nc\r\n", b"c", b"a\r\nb\r\nc\r\n") == b"c"


def test_mixed_line_endings_stay_as_they_are() -> None:
    assert joined(b"a\r\nb\nc\nd\n", b"a\r\nb\nc\nD\n", b"A\r\nb\nc\nd\n") == b"A\r\nb\nc\nD\n"


def test_a_line_break_at_the_end_of_the_text_merges_apart_from_it() -> None:
    assert joined(b"a\nb", b"a\nb\n", b"a\nb\nc") == b"a\nb\nc\n"
    assert joined(b"a\nb\n", b"a\nb", b"a\nx\n") == b"a\nx"
    assert joined(b"a\nb", b"a\nb\n", b"x\nb") == b"x\nb\n"
    assert joined(b"a\nb\nc", b"a\nb\nc\n", b"X\nb\nc") == b"X\nb\nc\n"
    assert joined(b"a", b"a\nb", b"a\nc") is None


def test_a_byte_order_mark_belongs_to_the_first_word() -> None:
    mark = "\ufeff".encode()
    assert (
        joined(b"one\ntwo\nthree\n", mark + b"one\ntwo\nthree\n", b"one\ntwo\n3\n") == mark + b"one\ntwo\n3\n"
    )
    assert joined(b"one\n", mark + b"one\n", b"uno\n") is None


# --- markers


def test_markers_stand_around_real_conflicts_only() -> None:
    base = b"import a\n\nPORT = 80\n\nend\n"
    theirs = b"import a\nimport b\n\nPORT = 90\n\nend\n"
    mine = b"import a\n\nPORT = 30\n\nthe end\n"
    assert mark_conflicts(base, theirs, mine, "@bob's", "yours") == (
        b"import a\nimport b\n\n"
        b"<<<<<<< svc conflict: @bob's\nPORT = 90\n=======\nPORT = 30\n>>>>>>> svc conflict: yours\n"
        b"\nthe end\n"
    )


def test_markers_follow_the_line_endings_and_end_an_unended_line() -> None:
    text = mark_conflicts(b"a", b"a\r\nb", b"a\r\nc", "t", "m")
    opening, closing = b"<<<<<<< svc conflict: t\r\n", b">>>>>>> svc conflict: m\r\n"
    assert text == b"a\r\n" + opening + b"b\r\n=======\r\nc\r\n" + closing


def test_only_our_markers_count_and_only_at_the_start_of_a_line() -> None:
    assert has_markers(b"x\n<<<<<<< svc conflict: @bob\ny\n")
    assert has_markers(b">>>>>>> svc conflict: you\n")
    assert not has_markers(b"x\n<<<<<<< HEAD\ny\n=======\nz\n>>>>>>> main\n")
    assert not has_markers(b"    <<<<<<< svc conflict: @bob\n> >>>>>>> svc conflict: you\n")


def test_a_label_cannot_begin_a_line() -> None:
    text = mark_conflicts(b"a\n", b"b\n", b"c\n", "x\n<<<<<<< svc conflict: y", "z")
    assert text.count(b"<<<<<<<") == 1


def test_lines_that_both_have_stand_around_the_markers() -> None:
    theirs, mine = b"new\nA\nlast\n", b"new\nB\nmore\nlast\n"
    assert merge(b"old\n", theirs, mine).conflicts == [TextConflict((0, 1), (1, 2), (1, 3))]
    text = mark_conflicts(b"old\n", theirs, mine, "t", "m")
    assert text.startswith(b"new\n<<<<<<< ")
    assert text.endswith(b" m\nlast\n")


# --- laws


@given(TEXTS, TEXTS)
def test_one_side_alone_is_taken(base: bytes, changed: bytes) -> None:
    assert merge(base, changed, base) == merge(base, base, changed) == merge(base, changed, changed)
    assert merge(base, changed, base) == MergedText(changed, [])


@given(st.one_of(st.tuples(TEXTS, TEXTS, TEXTS), st.tuples(PAGES, PAGES, PAGES)))
@settings(max_examples=600)
def test_the_sides_are_alike(texts: tuple[bytes, bytes, bytes]) -> None:
    base, theirs, mine = texts
    here, there = merge(base, theirs, mine), merge(base, mine, theirs)
    assert here.conflicts == [TextConflict(one.base, one.mine, one.theirs) for one in there.conflicts]
    assert here.text == theirs if here.conflicts else sorted(here.text) == sorted(there.text)


@given(st.one_of(st.tuples(TEXTS, TEXTS, TEXTS), st.tuples(PAGES, PAGES, PAGES)))
@settings(max_examples=600)
def test_conflicts_name_lines_that_are_there_and_differ(texts: tuple[bytes, bytes, bytes]) -> None:
    base, theirs, mine = (text.replace(b"\r", b"") for text in texts)
    sides = [text.splitlines(keepends=True) for text in (base, theirs, mine)]
    last = (0, 0, 0)
    for conflict in merge(base, theirs, mine).conflicts:
        assert sides[1][slice(*conflict.theirs)] != sides[2][slice(*conflict.mine)]
        for (start, end), before, side in zip(conflict, last, sides, strict=True):
            assert before <= start <= end <= len(side)
        last = (conflict.base[1], conflict.theirs[1], conflict.mine[1])


@given(st.one_of(st.tuples(TEXTS, TEXTS, TEXTS), st.tuples(PAGES, PAGES, PAGES)))
@settings(max_examples=600)
def test_a_merged_file_has_only_words_that_a_side_wrote(texts: tuple[bytes, bytes, bytes]) -> None:
    text = joined(*texts)
    if text is not None:
        text, theirs, mine = (one.replace(b"\r\n", b"\n") for one in (text, *texts[1:]))  # merged apart
        written = {token for side in (theirs, mine) for token in tokens(side.decode())}
        assert set(tokens(text.decode())) <= written | set(tokens("\n" + theirs.decode()))


SHARED = [f"both{n}" for n in range(4)]


@given(st.randoms(use_true_random=False))
@settings(max_examples=800)
def test_no_word_stands_twice_that_both_wrote_once(rng: random.Random) -> None:
    base = [f"w{n}x" for n in range(rng.randrange(1, 25))]
    sides = [_written(rng, base, name) for name in ("t", "m")]
    texts = [_laid_out(words) for words in (base, *sides)]
    text = joined(*texts)
    if text is None:
        return
    counts = [Counter(tokens(one.decode())) for one in (*texts[1:], text)]
    for word, count in counts[2].items():
        if word.strip() and word not in ",-":
            assert count <= max(counts[0][word], counts[1][word]), word


def _written(rng: random.Random, words: list[str], name: str) -> list[str]:
    """The words after some changes by one side; some of what it writes, the other side may write too."""
    found = list(words)
    for number in range(rng.randrange(1, 4)):
        at = rng.randrange(len(found) + 1)
        new = rng.choice([*SHARED, f"{name}{number}"])
        if new not in found:
            found[at : at + rng.randrange(2)] = [new] if rng.randrange(4) else []
    return found


def _laid_out(words: list[str]) -> bytes:
    return (", ".join(words) + "\n").encode()


@given(st.one_of(st.tuples(TEXTS, TEXTS, TEXTS), st.tuples(PAGES, PAGES, PAGES)))
@settings(max_examples=400)
def test_marked_text_has_one_pair_of_markers_for_each_conflict(texts: tuple[bytes, bytes, bytes]) -> None:
    text, found = mark_conflicts(*texts, "t", "m"), merge(*texts)
    assert (
        text.count(b"<<<<<<< svc conflict: t")
        == text.count(b">>>>>>> svc conflict: m")
        == len(found.conflicts)
    )
    assert has_markers(text) == bool(found.conflicts)
    if not found.conflicts:
        assert text == found.text


def test_programs_merge_as_in_git_where_that_is_clean(tmp_path: Path, git: Git) -> None:
    rng = random.Random(3)
    modules = programs()
    clean = 0
    for _ in range(120):
        base, pool = rng.choice(modules)[:150], rng.choice(modules)
        theirs, mine = (b"".join(edited(rng, base, pool, rng.randrange(1, 4))) for _ in range(2))
        for name, text in (("base", b"".join(base)), ("theirs", theirs), ("mine", mine)):
            (tmp_path / name).write_bytes(text)
        expected = git("merge-file", "-p", "theirs", "base", "mine")
        if expected.returncode == 0:
            clean += 1
            assert merge(b"".join(base), theirs, mine) == MergedText(expected.stdout, [])
    assert clean >= 40
