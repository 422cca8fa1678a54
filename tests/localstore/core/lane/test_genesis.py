"""The fixed bytes of a genesis."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localstore.core.encoding import digest
from localstore.core.errors import NotText, TooLarge
from localstore.core.lane.crdt import TextDocument
from localstore.core.lane.genesis import genesis, genesis_id, pieces
from localstore.core.lane.lane import Lane
from localstore.core.lane.update_format import GENESIS_BIT, decode_state_vector, validate_state
from localstore.core.model import limits

GOLDEN_ID = 7254830201128106
GOLDEN_STATE = "0101aa89adc8acc7f10c00040101741368656c6c6f2c2077c3b6726c6420f09f98800a00"
GOLDEN_VECTOR = "01aa89adc8acc7f10c10"
GOLDEN_LONG_DIGEST = "e1df3946caebfad568c7ff1e5dc3972dcc0bdf1dafb420086d7f3e007d01dca7"


def lane_of(text: bytes) -> Lane:
    return Lane.genesis("branch", 1, 0, text)


def test_the_bytes_of_a_genesis_never_change() -> None:
    """Golden vectors: every device and relay must make these very bytes, for ever."""
    lane = Lane.genesis("b_01", 7, 2, "hello, wörld 😀\n".encode())
    assert genesis_id("b_01", 7, 2, digest("hello, wörld 😀\n".encode())) == GOLDEN_ID
    assert lane.state().hex() == GOLDEN_STATE
    assert lane.state_vector().hex() == GOLDEN_VECTOR
    assert Lane.genesis("b_01", 7, 2, b"").state() == b"\0\0"


def test_a_long_genesis_never_changes_either() -> None:
    text = ("0123456789 äöü 😀\n" * 4000).encode()
    state = Lane.genesis("b_01", 1, 0, text).state()
    assert digest(state).hex() == GOLDEN_LONG_DIGEST


@given(st.lists(st.sampled_from(["0123456789\n" * 300, "ä", "😀", "x", "日本" * 900]), max_size=40))
def test_a_genesis_is_what_the_library_writes_that_inserts_its_pieces(parts: list[str]) -> None:
    text = "".join(parts).encode()
    document = TextDocument(genesis_id("b", 1, 2, digest(text)))
    with document.transaction():
        for piece in reversed(pieces(text)):
            document.insert(0, piece)
    lane = Lane.genesis("b", 1, 2, text)
    assert lane.state() == document.state() == genesis("b", 1, 2, text).state()
    assert lane.count_units() == decode_state_vector(document.seen())


def test_a_genesis_is_in_pieces_that_stay_apart() -> None:
    text = ("é" * 50_000).encode()
    loaded = Lane.load(lane_of(text).state())
    structs = validate_state(loaded.state()).structs
    assert len(structs) == len(pieces(text)) == 7
    assert all(len(struct.text or b"") <= limits.GENESIS_PIECE for struct in structs)
    assert loaded.text() == text


def test_a_genesis_depends_on_everything_it_is_named_by() -> None:
    ids = {
        genesis_id(*name)
        for name in [
            ("b", 1, 0, b"x"),
            ("c", 1, 0, b"x"),
            ("b", 2, 0, b"x"),
            ("b", 1, 1, b"x"),
            ("b", 1, 0, b"y"),
        ]
    }
    assert len(ids) == 5
    assert all(GENESIS_BIT <= name < 1 << limits.REPLICA_BITS for name in ids)


def test_a_genesis_is_text() -> None:
    with pytest.raises(NotText):
        lane_of(b"\xff")
    with pytest.raises(TooLarge):
        lane_of(b"a" * (limits.TEXT_FILE + 1))
