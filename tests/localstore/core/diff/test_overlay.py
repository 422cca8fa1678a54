"""Two changes of one text by words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localstore.core.diff.overlay import overlay

WORDS = st.lists(st.sampled_from(["one", "two", "three", "\n", "four"]), max_size=8)


@pytest.mark.parametrize(
    ("base", "theirs", "mine", "both"),
    [
        ("a\n", "a b1\n", "a a1\n", "a b1 a1\n"),  # at one place: theirs, then mine
        ("a\n", "a\nb1\n", "a\na1\n", "a\nb1\na1\n"),
        ("a b\n", "a b\n", "a x b\n", "a x b\n"),
        ("a b c\n", "b c\n", "a b c d\n", "b c d\n"),
        ("a\n", "a x\n", "a x\n", "a x\n"),  # the same change, once
        ("wait 30\n", "wait 45\n", "wait 60\n", None),  # replaced by both
        ("a b c\n", "a c\n", "a b x c\n", "a x c\n"),
        ("a b c d\n", "a d\n", "a b x c d\n", None),  # written inside of what the other deleted
        ("", "30", "60", None),  # no 3060, which nobody wrote
        ("port=\n", "port=80\n", "port=90\n", None),
    ],
)
def test_both_stand(base: str, theirs: str, mine: str, both: str | None) -> None:
    found = overlay(base.encode(), theirs.encode(), mine.encode())
    assert found == (None if both is None else both.encode())


@given(WORDS, WORDS, WORDS, st.integers(0, 8), st.integers(0, 8))
def test_nothing_written_is_lost(base: list[str], theirs: list[str], mine: list[str], i: int, j: int) -> None:
    """Words that two people insert are all there, each once, in their order."""
    start = " ".join(base).encode()
    there = [f"t{number}" for number in range(len(theirs))]
    here = [f"m{number}" for number in range(len(mine))]
    one = " ".join([*base[:i], *there, *base[i:]]).encode()
    other = " ".join([*base[:j], *here, *base[j:]]).encode()
    both = overlay(start, one, other)
    if both is not None:
        words = both.decode().split()
        assert [word for word in words if word in there] == there
        assert [word for word in words if word in here] == here


def test_no_text_and_long_texts_stay_conflicts() -> None:
    assert overlay(b"\xff", b"a", b"b") is None
    assert overlay(b"a" * (2 << 20), b"a", b"b") is None
