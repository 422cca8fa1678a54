"""The identity of a change: the same wherever its lines stand, another one for every edit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from localstore.core.diff.change_id import FileChange, change_id, file_id

LINES = [f"line {n}\n".encode() for n in range(30)]
WORDS = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d"]), max_size=8).map(b"".join)


def one(old: bytes | None, new: bytes | None, path: str = "f", whole: bool = False) -> bytes:
    return file_id(
        FileChange(path if old is not None else None, path if new is not None else None, old, new, whole)
    )


def text(*lines: bytes) -> bytes:
    return b"".join(lines)


def test_the_place_does_not_count() -> None:
    before, after = text(*LINES), text(*LINES[:15], b"new\n", *LINES[15:])
    moved, edited = (
        text(b"first\n", b"second\n", *LINES),
        text(b"first\n", b"second\n", *LINES[:15], b"new\n", *LINES[15:]),
    )
    assert one(before, after) == one(moved, edited)


@given(WORDS, WORDS, WORDS, WORDS)
def test_the_same_lines_in_front_change_nothing(old: bytes, new: bytes, front: bytes, other: bytes) -> None:
    here, there = (one.rstrip(b"\n") + b"\n" + b"|\n" * 3 for one in (front, other))
    assert one(here + old, here + new) == one(there + old, there + new)


@given(st.lists(st.sampled_from([b"a\n", b"b\n"]), max_size=3).map(b"".join), WORDS, WORDS)
def test_other_results_are_other_changes(old: bytes, new: bytes, third: bytes) -> None:
    assert (one(old, new) == one(old, third)) == (new == third)


@given(st.lists(st.binary(min_size=32, max_size=32), max_size=5))
def test_the_order_of_files_does_not_count(ids: list[bytes]) -> None:
    assert change_id(ids) == change_id(ids[::-1])
    assert len(change_id(ids)) == 64


def test_borders_count() -> None:
    assert one(None, b"ab\n", "f") != one(None, b"b\n", "fa")
    assert one(b"a\nb\n", b"") != one(b"a\n", b"b\n")
    assert one(None, b"") != one(b"", None)
    assert one(None, b"x\n", "a") != one(None, b"x\n", "b")
    assert change_id([]) != change_id([one(b"", None)])


def test_bytes_count_by_what_they_become() -> None:
    assert one(b"\0one", b"\0two") == one(b"\0other", b"\0two")
    assert one(b"\0one", b"\0two") != one(b"\0one", b"\0three")
    assert one(b"old digest", b"new digest", whole=True) == one(b"another", b"new digest", whole=True)


def test_the_lines_around_count() -> None:
    """An approved line cannot go elsewhere unseen."""
    here, there = ([*LINES[:at], b"return\n", *LINES[at:]] for at in (10, 20))
    assert one(text(*LINES), text(*here)) != one(text(*LINES), text(*there))
