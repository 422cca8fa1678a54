"""A lane made of its genesis and its log is the lane that wrote them, and knows its own size."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.lane.update_format import (
    STATE_CAPS,
    Struct,
    Update,
    decode_state_vector,
    parse,
    second_halves,
)
from tests.localstore.core.lane.test_lane import TEXTS, A, B, lane_of


@pytest.mark.parametrize(
    "text", [b"", b"a", b"a" * 40_000, "é😀".encode() * 9_000, "é".encode() * 20_000], ids=len
)
def test_a_genesis_knows_its_items(text: bytes) -> None:
    """Too few would let an update in that the budget of work refuses."""
    lane = lane_of(text)
    counted = parse(lane.state(), STATE_CAPS)
    assert (lane._items, lane._halves) == (len(counted.structs), second_halves(counted))
    assert lane.count_units() == decode_state_vector(lane._document.seen())


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.lists(TEXTS, max_size=6))
def test_a_log_replays_to_the_lane_that_wrote_it(first: bytes, later: list[bytes]) -> None:
    here, there = lane_of(first), lane_of(first)
    log = [update for number, text in enumerate(later) if (update := here.edit((A, B)[number % 2], text))]
    there.replay(log)
    assert (there.text(), there.state_vector()) == (here.text(), here.state_vector())
    assert there.count_units() == decode_state_vector(there._document.seen())


@given(st.text("aé中\uffff\U00010000\U0001f600\U0010ffff", max_size=12), st.integers(0, 5))
def test_second_halves_are_the_low_surrogates_of_the_text(text: str, clock: int) -> None:
    raw = text.encode("utf-16-le", "surrogatepass")
    units = [int.from_bytes(raw[at : at + 2], "little") for at in range(0, len(raw), 2)]
    update = Update([Struct(A, clock, len(units), None, None, text.encode())], [])
    assert second_halves(update) == {
        (A, clock + at) for at, unit in enumerate(units) if 0xDC00 <= unit <= 0xDFFF
    }
