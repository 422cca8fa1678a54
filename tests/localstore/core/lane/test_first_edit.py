"""The first edit of an untouched lane is what the library makes of it, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from localstore.core.encoding import hex_digest
from localstore.core.errors import NotText
from localstore.core.lane.first_edit import MOST_EDITS, first_edit
from localstore.core.lane.lane import Lane
from localstore.core.lane.update_format import validate_state

LINE = "def area(w, h):\n    return w * h\n"
WORDS = ["alpha ", "x = 1\n", "\n", "zwölf ", "漢字\r\n", LINE, "-" * 700 + "\n"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=60).map("".join)
PLACES = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 40), st.sampled_from(["", "y", "neu ü\n"])))
REPLICA, READER = 77, 5


def made(text: str, places: list[tuple[int, int, str]]) -> str:
    for at, deleted, inserted in places:
        at %= len(text) + 1
        text = text[:at] + inserted + text[at + deleted :]
    return text


def is_what_the_library_makes(text: bytes, new: bytes) -> bool:
    """Whether it was written without it."""
    lane = Lane.genesis("b", 3, 2, text)
    update = lane.edit(REPLICA, new)
    found = first_edit("b", 3, 2, text, REPLICA, new)
    if found is None:
        return False
    assert found.update == update
    validate_state(found.state())
    loaded = Lane.load(found.state(), REPLICA)
    assert loaded.text() == new
    assert loaded.count_units() == lane.count_units()
    more = loaded.edit(REPLICA, new + b"more\n")
    assert more is not None
    lane.apply(more, REPLICA)
    assert lane.text() == new + b"more\n"
    return True


@given(TEXTS, st.sampled_from([1, 1, 40]), PLACES)
def test_any_edit(text: str, times: int, places: list[tuple[int, int, str]]) -> None:
    is_what_the_library_makes((text * times).encode(), made(text * times, places).encode())


@given(st.integers(0, 50_000), st.integers(0, 40_000), st.sampled_from(["", "neu", "ü\n"]))
def test_an_edit_over_several_pieces(at: int, deleted: int, inserted: str) -> None:
    text = "".join(f"line {number} of many\n" for number in range(2600))
    assume(deleted or inserted)
    assert is_what_the_library_makes(text.encode(), made(text, [(at, deleted, inserted)]).encode())


@pytest.mark.parametrize("new", ["", "a", "abc\n", "xabc", "abcx", "axc"])
def test_ends(new: str) -> None:
    assert is_what_the_library_makes(b"abc", new.encode())


def test_what_is_left_to_the_library() -> None:
    lines = [hex_digest(b"%d" % number) + "\n" for number in range(MOST_EDITS + 1)]
    many = "".join(f"{line}new\n" for line in lines)
    for text, new in (
        ("", "new\n"),
        ("smile 😀\n", "smiles 😀\n"),
        ("smile\n", "smile 😀\n"),
        ("short\n", "x" * 20_000),
        ("".join(lines), many),
    ):
        assert first_edit("b", 1, 0, text.encode(), REPLICA, new.encode()) is None


def test_only_text_is_edited() -> None:
    with pytest.raises(NotText):
        first_edit("b", 1, 0, b"text", REPLICA, b"\xff")
