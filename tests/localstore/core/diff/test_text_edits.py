"""Edit scripts: exact, small, at character boundaries, in bounded time."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.diff.text_edits import UNITS, Edit, apply, coarser, edits, inside_character
from localstore.core.errors import NotText

WORDS = st.sampled_from(
    [
        "a",
        "é",
        "😀",
        "👩‍👩‍👧",
        "e\u0301",
        "漢字",
        "\r\n",
        "\n",
        " ",
        "\0",
        "def f(x):\n",
        "    return x\n",
        "ñ" * 9,
    ]
)
TEXTS = st.lists(WORDS, max_size=40).map("".join).map(str.encode)


def require_sound(old: bytes, new: bytes, changes: list[Edit]) -> None:
    assert apply(old, changes) == new
    end = -1
    for offset, deleted, inserted in changes:
        assert offset > end or (offset == end == 0)
        assert deleted or inserted
        for cut in (offset, offset + deleted):
            assert cut == len(old) or not inside_character(old[cut])
        inserted.decode()
        end = offset + deleted


@given(TEXTS, TEXTS)
@settings(max_examples=400, deadline=None)
def test_edits_give_the_new_text(old: bytes, new: bytes) -> None:
    require_sound(old, new, edits(old, new))


@given(TEXTS, TEXTS, st.integers(1, 5))
@settings(max_examples=200, deadline=None)
def test_coarser_edits_give_the_same_text(old: bytes, new: bytes, most: int) -> None:
    changes = coarser(old, edits(old, new), most)
    assert len(changes) <= most
    require_sound(old, new, changes)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (b"", b"", []),
        (b"same", b"same", []),
        (b"", b"new", [Edit(0, 0, b"new")]),
        (b"old", b"", [Edit(0, 3, b"")]),
        ("aé".encode(), "aè".encode(), [Edit(1, 2, "è".encode())]),
        ("😀".encode(), "😁".encode(), [Edit(0, 4, "😁".encode())]),
        ("e\u0301x".encode(), "e\u0300x".encode(), [Edit(1, 2, "\u0300".encode())]),
        ("👩‍👧".encode(), "👩‍👩‍👧".encode(), [Edit(7, 0, "👩‍".encode())]),
        (b"a\nb\n", b"a\r\nb\r\n", [Edit(1, 2, b"\r\nb\r")]),
        (b"aaa", b"aa", [Edit(2, 1, b"")]),
        (b"abcd = 1; wxyz = 2\n", b"abcd = 10; wxyz = 20\n", [Edit(8, 0, b"0"), Edit(18, 0, b"0")]),
        (b"totally", b"different", [Edit(0, 7, b"different")]),
    ],
)
def test_small_cases(old: bytes, new: bytes, expected: list[Edit]) -> None:
    changes = edits(old, new)
    require_sound(old, new, changes)
    assert _cost(changes) <= _cost(expected)


def _cost(changes: list[Edit]) -> int:
    return sum(change.deleted + len(change.inserted) for change in changes)


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80"])
def test_bytes_that_are_not_utf8_are_refused(bad: bytes) -> None:
    with pytest.raises(NotText):
        edits(bad, b"")
    with pytest.raises(NotText):
        edits(b"", bad)


def _program(rng: random.Random, size: int) -> list[bytes]:
    return [b"    value_%d = compute(%d)\n" % (rng.randrange(size), rng.randrange(9)) for _ in range(size)]


def test_scattered_changes_in_a_large_text_stay_small() -> None:
    rng = random.Random(1)
    old = _program(rng, 30_000)
    new = list(old)
    for place in rng.sample(range(len(new)), 300):
        new[place] = new[place].replace(b"compute", b"computed")
    changes = edits(b"".join(old), b"".join(new))
    require_sound(b"".join(old), b"".join(new), changes)
    assert _cost(changes) < 300 * 20


def test_large_repetitive_texts_end_in_time() -> None:
    rng = random.Random(2)
    old, new = (b"".join(rng.choices([b"}\n", b"\n", b"    pass\n"], k=40_000)) for _ in range(2))
    require_sound(old, new, edits(old, new))


def test_one_enormous_line_is_compared_by_tokens() -> None:
    rng = random.Random(3)
    words = [f"é{rng.randrange(10**6)}".encode() for _ in range(50_000)]
    old = b",".join(words)
    words[25_000:25_001] = [b"changed"]
    words[40_000:40_000] = [("ü" * 1000 + "x").encode()]
    new = b",".join(words)
    changes = edits(old, new)
    require_sound(old, new, changes)
    assert sum(c.deleted for c in changes) < 100


def test_too_many_lines_are_replaced_whole() -> None:
    old, new = b"a\n" * (UNITS + 1), b"b\n" * (UNITS + 1)
    assert edits(old, new) == [Edit(0, len(old) - 1, new[:-1])]
