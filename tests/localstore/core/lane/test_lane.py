"""Lanes: merging by characters, carrying, and what breaks a lane."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.encoding import digest
from localstore.core.errors import Invalid, NotText, SvcError, TooLarge
from localstore.core.lane.carry import carry
from localstore.core.lane.lane import Lane
from localstore.core.lane.update_format import GENESIS_BIT, decode_state_vector, parse
from localstore.core.model import limits
from localstore.core.model.live import UpdateInvalid
from tests.localstore.core.conftest import Git
from tests.localstore.core.updates import scattered

A, B, C = 11, 12, 13
UNICODE = "naïve\r\n漢字 😀 👩‍👩‍👧 e\u0301\r\nzwölf\n"
WORDS = st.sampled_from(["a", "bb ", "é", "😀", "👩‍👩‍👧", "e\u0301", "漢字", "\r\n", "\n", "  x = 1\n"])
TEXTS = st.lists(WORDS, max_size=25).map("".join).map(str.encode)


def lane_of(text: bytes) -> Lane:
    return Lane.genesis("branch", 1, 0, text)


def test_a_rename_and_a_change_beside_it_merge_where_lines_conflict(tmp_path: Path, git: Git) -> None:
    base = b"def area(w, h):\n    return w * h\n"
    renamed = b"def area(width, h):\n    return width * h\n"
    extended = b"def area(w, h=1):\n    return w * h  # in cells\n"
    here, there = lane_of(base), lane_of(base)
    mine, theirs = here.edit(A, renamed), there.edit(B, extended)
    assert mine
    assert theirs
    here.apply(theirs, B)
    there.apply(mine, A)
    assert here.text() == there.text() == b"def area(width, h=1):\n    return width * h  # in cells\n"
    assert here.state_vector() == there.state_vector()
    for name, text in (("base", base), ("theirs", renamed), ("mine", extended)):
        (tmp_path / name).write_bytes(text)
    assert git("merge-file", "-p", "theirs", "base", "mine").returncode == 1, "one conflict"


# --- edits


@given(TEXTS, st.lists(TEXTS, max_size=4))
@settings(max_examples=150, deadline=None)
def test_edits_travel_as_updates(first: bytes, later: list[bytes]) -> None:
    here, there = lane_of(first), lane_of(first)
    for text in later:
        update = here.edit(A, text)
        assert (update is None) == (there.text() == text)
        if update:
            there.apply(update, A)
        assert here.text() == there.text() == text
        assert here.digest() == digest(text)
    assert Lane.load(there.state()).text() == here.text()


def test_a_small_edit_is_a_small_update() -> None:
    lane = lane_of(b"line\n" * 5000)
    update = lane.edit(A, b"line\n" * 2500 + b"x" + b"line\n" * 2500)
    assert update
    assert len(update) < 40


def test_a_large_insertion_is_cut_into_pieces_that_the_reader_takes() -> None:
    here, there = lane_of(b"ab"), lane_of(b"ab")
    for size in (300_000, 500_000):
        update = here.edit(A, b"a" + "漢".encode() * size + b"b")
        assert update
        there.apply(update, A)
        assert max(len(s.text or b"") for s in parse(update).structs) <= limits.GENESIS_PIECE
    assert there.text() == here.text()


def test_several_replicas_may_write_through_one_lane() -> None:
    lane, twin = lane_of(b""), lane_of(b"")
    for replica, text in ((A, b"one\n"), (B, b"one\ntwo\n"), (A, b"one\n2\n")):
        update = lane.edit(replica, text)
        assert update
        twin.apply(update, replica)
    assert twin.text() == b"one\n2\n"
    assert set(decode_state_vector(twin.state_vector())) == {A, B}


@pytest.mark.parametrize("replica", [0, -1, GENESIS_BIT, GENESIS_BIT | 5, 1 << 60])
def test_only_replica_ids_may_write(replica: int) -> None:
    lane = lane_of(b"x")
    with pytest.raises(Invalid):
        lane.edit(replica, b"y")
    assert lane.text() == b"x"


def test_a_refused_edit_changes_nothing() -> None:
    lane = lane_of(b"x")
    with pytest.raises(NotText):
        lane.edit(A, b"\xff")
    assert lane.text() == b"x"


def test_an_edit_of_many_parts_is_joined_until_the_reader_takes_it() -> None:
    rng = random.Random(1)
    here = Lane.load(scattered(B, "".join(rng.choices("abc\n", k=15_000))))
    there = here.copy()
    new = here.text().replace(b"a\n", b"long word\n").replace(b"b\n", b"")
    update = here.edit(A, new)
    assert update
    there.apply(update, A)
    assert there.text() == here.text() == new


def test_an_edit_that_no_joining_makes_small_enough_is_refused_before_it_is_made() -> None:
    lane = Lane.load(scattered(B, "x" * 100_000))
    before = lane.state()
    with pytest.raises(TooLarge, match="new version"):
        lane.edit(A, b"y" * limits.GENESIS_PIECE * 250)
    assert lane.state() == before


# --- several devices


@given(st.integers(0, 2**32), TEXTS)
@settings(max_examples=120, deadline=None)
def test_concurrent_sessions_converge(seed: int, text: bytes) -> None:
    """Devices edit, send now and then, and read the relay's log in its order."""
    rng = random.Random(seed)
    relay = lane_of(text)
    log: list[tuple[bytes, int]] = []
    devices = {replica: (lane_of(text), [0], list[bytes]()) for replica in (A, B, C)}
    for _ in range(30):
        replica = rng.choice(list(devices))
        lane, seen, unsent = devices[replica]
        if rng.random() < 0.5:
            update = lane.edit(replica, _touched(rng, lane.text()))
            unsent += [update] if update else []
        elif rng.random() < 0.5:
            _receive(lane, replica, seen, log)
        else:
            _send(relay, replica, unsent, log)
    for replica, (_, _, unsent) in devices.items():
        _send(relay, replica, unsent, log)
    for replica, (lane, seen, _) in devices.items():
        _receive(lane, replica, seen, log)
        assert lane.text() == relay.text()
        assert lane.state_vector() == relay.state_vector()
    assert Lane.load(relay.state()).digest() == relay.digest()


def _touched(rng: random.Random, text: bytes) -> bytes:
    chars = list(text.decode())
    at = rng.randrange(len(chars) + 1)
    chars[at : at + rng.randrange(4)] = rng.choice(["", "x", "é😀", "\r\n", "longer words\n"])
    return "".join(chars).encode()


def _send(relay: Lane, replica: int, unsent: list[bytes], log: list[tuple[bytes, int]]) -> None:
    for update in unsent:
        relay.apply(update, replica)
        log.append((update, replica))
    unsent.clear()


def _receive(lane: Lane, replica: int, seen: list[int], log: list[tuple[bytes, int]]) -> None:
    for update, writer in log[seen[0] :]:
        if writer != replica:
            lane.apply(update, writer)
    seen[0] = len(log)


def test_an_update_comes_once_and_in_order() -> None:
    here, there = lane_of(b""), lane_of(b"")
    first, second = here.edit(A, b"a"), here.edit(A, b"ab")
    assert first
    assert second
    with pytest.raises(UpdateInvalid, match="state vector"):
        there.apply(second, A)
    there.apply(first, A)
    with pytest.raises(UpdateInvalid, match="state vector"):
        there.apply(first, A)
    there.apply(second, A)
    assert there.text() == b"ab"
    with pytest.raises(UpdateInvalid, match="replica"):
        lane_of(b"").apply(first, B)


# --- whole states


def test_states_of_one_lane_merge() -> None:
    here, there = lane_of(UNICODE.encode()), lane_of(UNICODE.encode())
    here.edit(A, UNICODE.replace("漢字", "汉字").encode())
    there.edit(B, UNICODE.replace("zwölf", "twelve").encode())
    here.merge(there.state())
    there.merge(here.state())
    there.merge(here.state())
    assert here.text() == there.text() == UNICODE.replace("漢字", "汉字").replace("zwölf", "twelve").encode()


def test_states_of_two_lanes_do_not_merge() -> None:
    lane = lane_of(b"text")
    for other in (Lane.genesis("branch", 2, 0, b"text"), Lane.genesis("branch", 1, 1, b"text")):
        with pytest.raises(UpdateInvalid, match="another lane"):
            lane.merge(other.state())
    assert lane.text() == b"text"


def test_copies_are_independent() -> None:
    lane = lane_of(b"text")
    copy = lane.copy(B)
    copy.edit(B, b"other text")
    assert lane.text() == b"text"
    assert lane.copy().text() == b"text"


# --- carrying a change to another lane


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
@settings(max_examples=150, deadline=None)
def test_a_change_is_carried_to_the_next_epoch(text: bytes, later: list[bytes]) -> None:
    source = lane_of(text)
    writer = source.copy()
    extra = [update for new in later if (update := writer.edit(A, new))]
    target = Lane.genesis("branch", 1, 1, text)
    receiver = target.copy()
    update = carry(source, extra, A, target)
    assert source.text() == text
    assert target.text() == writer.text()
    if update:
        receiver.apply(update, A)
    assert receiver.text() == writer.text()


def test_carrying_does_not_write_unchanged_text_again() -> None:
    """Two devices carry their changes of one word; a comparison of texts would write the rest twice."""
    text, mine, theirs = b"abcdefgh\n", b"aXcdXfgh\n", b"abcdefgYY\n"
    first, second = (Lane.genesis("branch", 1, 1, text) for _ in range(2))
    ours, others = lane_of(text).edit(A, mine), lane_of(text).edit(B, theirs)
    assert ours
    assert others
    a, b = carry(lane_of(text), [ours], A, first), carry(lane_of(text), [others], B, second)
    assert a
    assert b
    first.apply(b, B)
    second.apply(a, A)
    assert first.text() == second.text() == b"aXcdXfgYY\n"


def test_nothing_is_carried_where_nothing_changed() -> None:
    assert carry(lane_of(b"x"), [], A, lane_of(b"x")) is None


def test_a_change_is_carried_between_equal_texts_only() -> None:
    with pytest.raises(Invalid, match="equal text"):
        carry(lane_of(b"x"), [], A, lane_of(b"y"))


# --- broken lanes


def broken_by_a_panic() -> Lane:
    lane = lane_of("héllo 😀".encode())
    with pytest.raises(UpdateInvalid, match="PanicException"):
        lane._write(A, lambda: lane._delete(0, 1_000))
    return lane


def broken_by_noise() -> Lane:
    lane = lane_of("héllo 😀".encode())
    with pytest.raises(UpdateInvalid, match="failed"):
        lane._absorb([b"\xff" * 20], lane.count_units())
    return lane


@pytest.mark.parametrize("breaks", [broken_by_a_panic, broken_by_noise])
def test_a_lane_that_the_library_failed_on_says_so_and_loads_again(breaks: object) -> None:
    log = lane_of("héllo 😀".encode()).state()
    assert callable(breaks)
    lane = breaks()
    calls = [
        lane.text,
        lane.digest,
        lane.state,
        lane.state_vector,
        lane.copy,
        lambda: lane.edit(A, b"x"),
        lambda: lane.apply(b"\0\0", A),
        lambda: lane.merge(log),
    ]
    for call in calls:
        with pytest.raises(UpdateInvalid, match="broken"):
            call()
    assert Lane.load(log).text() == "héllo 😀".encode()


@given(st.binary(max_size=120))
@settings(max_examples=300, deadline=None)
def test_noise_is_never_a_state(noise: bytes) -> None:
    try:
        lane = Lane.load(noise)
    except SvcError:
        return
    assert Lane.load(lane.state()).text() == lane.text()
