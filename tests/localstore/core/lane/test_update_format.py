"""The strict reader: what a lane's updates may say, and every hostile input of docs/design/003."""

from __future__ import annotations

import contextlib
from itertools import chain
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.lane import update_format
from localstore.core.lane.lane import Lane
from localstore.core.lane.reader import numbers_of, varints
from localstore.core.lane.update_format import (
    GENESIS_BIT,
    UPDATE_CAPS,
    Deletion,
    Struct,
    Update,
    decode_state_vector,
    encode_state_vector,
    most_structs,
    parse,
    says,
    second_halves,
    validate,
    validate_state,
    work,
)
from localstore.core.model import limits
from localstore.core.model.live import UpdateInvalid
from tests.localstore.core.updates import encode, group, inserted, raw_struct, scattered, varint

ME, OTHER = 7, 9
EMPTY_DELETIONS = varint(0)
STRING, DELETED, TYPE, ANY, GC, SKIP, FORMAT, EMBED, DOC, JSON, BINARY = 4, 1, 7, 8, 0, 10, 6, 5, 9, 2, 3


def one(struct: bytes, client: int = ME) -> bytes:
    return varint(1) + group(client, 0, struct) + EMPTY_DELETIONS


def string(text: bytes) -> bytes:
    return varint(len(text)) + text


def nested_any(depth: int) -> bytes:
    """One list in another, `depth` deep (type byte 117, one element each)."""
    return varint(1) + bytes([117, 1]) * depth + bytes([126])


def nested_types(depth: int) -> bytes:
    first = raw_struct(TYPE, varint(0))
    head, tail = bytes([TYPE]) + varint(0) + varint(ME), varint(0)
    rest = [head + varint(clock) + tail for clock in range(depth - 1)]
    deletions = varint(1) + varint(ME) + varint(1) + varint(0) + varint(1)
    return varint(1) + group(ME, 0, first, *rest) + deletions


def origins_apart(structs: int) -> bytes:
    """Each item names its own right neighbour and no left one: it walks over all that came before it."""
    ladder = inserted(ME, 0, "r" * structs)
    return encode([ladder, *(inserted(ME, structs + i, "x", right_origin=(ME, i)) for i in range(structs))])


HOSTILE = {
    "nested Any, 52 KB": one(raw_struct(ANY, nested_any(26_000))),
    "300k nested types and a delete": nested_types(300_000),
    "the same client twice": varint(2) + group(ME, 0, raw_struct(STRING, string(b"a"))) * 2 + EMPTY_DELETIONS,
    "client count 2**28": varint(1 << 28),
    "struct count 2**28": varint(1) + varint(1 << 28) + varint(ME) + varint(0),
    "delete client count 2**28": varint(0) + varint(1 << 28),
    "delete range count 2**28": varint(0) + varint(1) + varint(ME) + varint(1 << 28),
    "string length 2**30": one(raw_struct(STRING, varint(1 << 30) + b"x")),
    "garbage-collected stretch": one(bytes([GC]) + varint(4)),
    "gap": one(bytes([SKIP]) + varint(4)),
    "formatting": one(raw_struct(FORMAT, string(b"bold") + string(b"true"))),
    "embed": one(raw_struct(EMBED, string(b"{}"))),
    "subdocument": one(raw_struct(DOC, string(b"guid") + bytes([127]))),
    "JSON": one(raw_struct(JSON, varint(1) + string(b"1"))),
    "binary": one(raw_struct(BINARY, string(b"\0"))),
    "map key": one(bytes([STRING | 0x20]) + varint(1) + string(b"t") + string(b"key") + string(b"a")),
    "another root": one(raw_struct(STRING, string(b"a"), root="u")),
    "parent by id": one(bytes([STRING]) + varint(0) + varint(ME) + varint(0) + string(b"a")),
    "empty string": one(raw_struct(STRING, string(b""))),
    "empty deleted stretch": one(raw_struct(DELETED, varint(0))),
    "string that is not UTF-8": one(raw_struct(STRING, string(b"\xff"))),
    "surrogate in a string": one(raw_struct(STRING, string(b"\xed\xa0\x80"))),
    "string over the cap": one(raw_struct(STRING, string(b"a" * (limits.UPDATE_STRING_BYTES + 1)))),
    "client without items": varint(1) + group(ME, 0) + b"\0\0" + EMPTY_DELETIONS,
    "client of 54 bits": one(raw_struct(STRING, string(b"a")), client=1 << 53),
    "genesis forged": one(raw_struct(STRING, string(b"a")), client=GENESIS_BIT | ME),
    "another replica": encode([inserted(OTHER, 0, "a")]),
    "clock gap": encode([inserted(ME, 1, "a")]),
    "clock over the end": varint(1) + group(ME, (1 << 31) - 1, raw_struct(STRING, string(b"a"))) + b"\0",
    "number not in its shortest form": b"\x80\0\0",
    "number of 9 bytes": b"\xff" * 9 + b"\1\0",
    "bytes after the end": b"\0\0\0",
    "nothing": b"",
    "unknown left origin": encode([inserted(ME, 0, "a", origin=(OTHER, 0))]),
    "unknown right origin": encode([inserted(ME, 0, "a", right_origin=(ME, 0))]),
    "origin in itself": encode([inserted(ME, 0, "ab", origin=(ME, 1))]),
    "delete of the unknown": encode([], [Deletion(OTHER, 0, 1)]),
    "delete of nothing": encode([], [Deletion(OTHER, 0, 0)]),
    "delete past the end": encode([inserted(ME, 0, "a")], [Deletion(ME, 0, 2)]),
    "deletes that overlap": encode([inserted(ME, 0, "abcd")], [Deletion(ME, 0, 2), Deletion(ME, 1, 2)]),
    "deletes that descend": encode([inserted(ME, 0, "abcd")], [Deletion(ME, 2, 1), Deletion(ME, 0, 1)]),
    "delete client twice": varint(0) + varint(2) + (varint(ME) + varint(1) + varint(0) + varint(1)) * 2,
    "too many structs": one(raw_struct(STRING, string(b"a"))).replace(
        varint(1) + varint(1), varint(1) + varint(limits.UPDATE_STRUCTS + 1), 1
    )
    + b"a" * 4 * limits.UPDATE_STRUCTS,
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_updates_never_reach_the_library(data: bytes) -> None:
    with pytest.raises(UpdateInvalid):
        validate(data, {}, ME)
    lane = Lane(ME)
    with pytest.raises(UpdateInvalid):
        lane.apply(data, ME)
    assert lane.edit(ME, b"still sound") is not None  # a lane that the library failed on refuses this


def test_an_update_over_the_byte_cap_is_refused_unread() -> None:
    with pytest.raises(UpdateInvalid, match="limit"):
        parse(b"\xff" * 101, msgspec.structs.replace(UPDATE_CAPS, total_bytes=100))


def test_origins_that_make_the_library_walk_over_the_lane_are_over_budget() -> None:
    lane = Lane.load(scattered(OTHER, "x" * 20_000))
    hostile = scattered(ME, "x" * 2_000)
    assert len(hostile) < 20_000
    before = lane.state()
    with pytest.raises(UpdateInvalid, match="too many parts"):
        lane.apply(hostile, ME)
    assert lane.state() == before


def test_origins_that_make_the_library_walk_over_the_update_are_over_budget() -> None:
    lane = Lane()
    with pytest.raises(UpdateInvalid, match="too many parts"):
        lane.apply(origins_apart(8_000), ME)
    lane.apply(origins_apart(400), ME)
    assert len(lane.text()) == 800


@pytest.mark.parametrize("items", [0, 1, 1000, 20_000, 10**6, 10**8])
def test_the_largest_affordable_update_is_the_largest(items: int) -> None:
    most = most_structs(items)
    struct = inserted(ME, 0, "x")
    assert work(Update([struct] * most, []), items) <= limits.UPDATE_WORK
    assert work(Update([struct] * (most + 1), []), items) > limits.UPDATE_WORK


def test_the_budget_counts_the_items_that_are_really_there() -> None:
    """Typing squashes into one item; the running upper bound must not shut a long-lived lane."""
    lane = Lane.genesis("b", 1, 0, b"")
    lane.edit(OTHER, b"x" * 10)
    lane._items = limits.UPDATE_WORK
    lane.apply(encode([inserted(ME, 0, "a"), inserted(ME, 1, "b", origin=(ME, 0))]), ME)
    assert lane._items < 20


def test_an_honest_update_reads_back() -> None:
    structs = [
        inserted(ME, 0, "aé😀", origin=(OTHER, 3)),
        Struct(ME, 4, 5, (ME, 0), (ME, 2), None),
        inserted(ME, 9, "z", right_origin=(OTHER, 0)),
    ]
    deletions = [Deletion(OTHER, 0, 2), Deletion(OTHER, 2, 1), Deletion(ME, 1, 1)]
    update = validate(encode(structs, deletions), {OTHER: 4}, ME)
    assert update.structs == structs
    assert update.deletions == deletions


def test_an_update_may_touch_only_what_is_known() -> None:
    update = encode([inserted(ME, 5, "a", origin=(OTHER, 3))])
    validate(update, {ME: 5, OTHER: 4}, ME)
    for known in ({ME: 5, OTHER: 3}, {ME: 4, OTHER: 4}, {ME: 6, OTHER: 4}):
        with pytest.raises(UpdateInvalid, match="state vector"):
            validate(update, known, ME)


@pytest.mark.parametrize(
    "state",
    [
        encode([inserted(ME, 1, "a")]),
        encode([inserted(ME, 0, "a", origin=(OTHER, 0))]),
        encode([inserted(ME, 0, "a")], [Deletion(ME, 0, 2)]),
        encode([inserted(GENESIS_BIT | 1, 0, "a"), inserted(GENESIS_BIT | 2, 0, "b")]),
    ],
    ids=["clock gap", "foreign origin", "foreign delete", "two geneses"],
)
def test_a_state_must_stand_alone(state: bytes) -> None:
    with pytest.raises(UpdateInvalid):
        validate_state(state)
    with pytest.raises(UpdateInvalid):
        Lane.load(state)


def test_a_state_whose_parts_wait_for_each_other_is_refused() -> None:
    circle = [inserted(ME, 0, "a", origin=(OTHER, 0)), inserted(OTHER, 0, "b", origin=(ME, 0))]
    validate_state(encode(circle))
    with pytest.raises(UpdateInvalid, match=r"waiting|failed"):
        Lane.load(encode(circle))


@given(st.dictionaries(st.integers(0, 2**53 - 1), st.integers(1, 2**31 - 1), max_size=8))
def test_state_vectors_have_one_encoding(known: dict[int, int]) -> None:
    encoded = encode_state_vector(known)
    assert decode_state_vector(encoded) == known
    assert encode_state_vector(dict(reversed(known.items()))) == encoded


def test_state_vector_vectors() -> None:
    assert encode_state_vector({}) == b"\0"
    assert encode_state_vector({300: 5, 2: 1, 4: 0}) == bytes.fromhex("02 02 01 ac 02 05")
    for bad in (
        b"",
        b"\1",
        b"\2\1\1\1\1",
        b"\1\1\1\0",
        b"\x81\0\1\1",
        b"\1\1" + varint(1 << 31),
        varint(1 << 40),
    ):
        with pytest.raises(UpdateInvalid):
            decode_state_vector(bad)


@given(st.lists(st.integers(0, 2**56 - 1), max_size=9), st.binary(max_size=30))
def test_numbers_have_one_spelling(numbers: list[int], noise: bytes) -> None:
    assert numbers_of(varints(numbers)) == numbers
    with contextlib.suppress(UpdateInvalid):
        assert varints(numbers_of(noise)) == noise


@pytest.mark.parametrize(
    ("spelled", "why"),
    [
        (b"\x80\x00", "shortest"),
        (b"\xff", "too early"),
        (b"\xff" * 7, "too early"),
        (b"\xff" * 9, "too large"),
    ],
)
def test_what_is_wrong_with_a_number_is_said(spelled: bytes, why: str) -> None:
    for data in (spelled, b"\x01\x85\x01" + spelled):
        with pytest.raises(UpdateInvalid, match=why):
            numbers_of(data)


@given(st.binary(max_size=200))
@settings(max_examples=500)
def test_noise_is_refused_or_read_exactly(noise: bytes) -> None:
    try:
        update = parse(noise)
    except UpdateInvalid:
        return
    assert encode(update.structs, update.deletions) == noise


SOUND = Lane.genesis("branch", 1, 0, "line one\nzwei 😀 👩‍👩‍👧\r\n三\n".encode())


def _honest_updates() -> list[bytes]:
    lane, updates = SOUND.copy(), []
    for text in (b"line 1\nzwei\r\n", "line 1\nzwei 😀😀\r\nvier\n".encode(), b"", "é😀" * 20 + "\n"):
        update = lane.edit(ME, text if isinstance(text, bytes) else text.encode())
        assert update
        updates.append(update)
    return updates


HONEST = _honest_updates()
PLAIN = [
    SOUND.copy().edit(ME, SOUND.text().replace(b"one", b"one and two")) or b"",
    encode([inserted(ME, 300, "x" * 200, (OTHER, 1 << 20), (GENESIS_BIT | 7, 5))], [Deletion(OTHER, 3, 1)]),
]


@given(
    st.integers(0, len(HONEST) - 1),
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 255), st.sampled_from("sid")), max_size=6),
)
@settings(max_examples=600, deadline=None)
def test_mutated_updates_are_refused_or_do_no_damage(which: int, changes: list[tuple[int, int, str]]) -> None:
    lane = SOUND.copy()
    for update in HONEST[:which]:
        lane.apply(update, ME)
    mutated = bytearray(HONEST[which])
    for place, byte, how in changes:
        at = place % (len(mutated) or 1)
        mutated[at : at + (how != "i")] = b"" if how == "d" else bytes([byte])
    before = lane.text()
    try:
        lane.apply(bytes(mutated), ME)
    except UpdateInvalid:
        assert lane.text() == before
    lane.text().decode()
    assert lane.edit(OTHER, b"the next edit works") is not None
    assert lane.text() == b"the next edit works"


def read(data: bytes) -> Update | str:
    """The update, or why it is none."""
    try:
        return parse(data)
    except UpdateInvalid as refusal:
        return refusal.detail


@given(
    st.sampled_from([*HONEST, *PLAIN]),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255), st.sampled_from("sid")), max_size=3),
)
@settings(max_examples=600, deadline=None)
def test_a_plain_insertion_is_read_in_one_step_as_in_many(
    honest: bytes, changes: list[tuple[int, int, str]]
) -> None:
    mutated = bytearray(honest)
    for place, byte, how in changes:
        at = place % (len(mutated) or 1)
        mutated[at : at + (how != "i")] = b"" if how == "d" else bytes([byte])
    at_once = read(bytes(mutated))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(update_format, "_insertion", lambda reader, caps: None)
        assert read(bytes(mutated)) == at_once


@pytest.mark.parametrize("update", PLAIN)
def test_an_insertion_between_two_characters_is_plain(update: bytes) -> None:
    assert update_format._insertion(update_format.Reader(update), UPDATE_CAPS)


@st.composite
def well_formed(draw: st.DrawFn) -> bytes:
    """Updates that obey every rule of the reader and lie about where their text belongs."""
    ends = SOUND.count_units()
    structs = []
    for _ in range(draw(st.integers(1, 8))):
        points = st.none() | st.sampled_from(sorted(ends)).flatmap(
            lambda client: st.tuples(st.just(client), st.integers(0, ends[client] - 1))
        )
        clock = ends.get(ME, 0)
        if draw(st.booleans()):
            struct = inserted(ME, clock, draw(st.sampled_from(["a", "😀", "é\n", "xyz😀"])))
        else:
            struct = Struct(ME, clock, draw(st.integers(1, 5)), None, None, None)
        structs.append(struct._replace(origin=draw(points), right_origin=draw(points)))
        ends[ME] = clock + struct.length
    deletions = []
    for client in sorted(ends):
        if draw(st.booleans()):
            clock = draw(st.integers(0, ends[client] - 1))
            deletions.append(Deletion(client, clock, draw(st.integers(1, ends[client] - clock))))
    return encode(structs, deletions)


@given(well_formed())
@settings(max_examples=600, deadline=None)
def test_dishonest_origins_do_no_damage(update: bytes) -> None:
    lane = SOUND.copy()
    try:
        validate(update, lane.count_units(), ME, halves=second_halves(validate_state(SOUND.state())))
    except UpdateInvalid as refusal:
        assert "in two" in str(refusal)
        return
    lane.apply(update, ME)
    lane.text().decode()
    lane.edit(OTHER, b"the next edit works")
    assert lane.text() == b"the next edit works"
    Lane.load(lane.state()).text().decode()


@given(
    st.dictionaries(st.integers(0, (1 << 53) - 1), st.integers(1, (1 << 31) - 1), max_size=4), st.randoms()
)
def test_a_state_vector_is_known_in_any_order_and_by_all_it_says(
    known: dict[int, int], chance: Random
) -> None:
    entries = list(known.items())
    chance.shuffle(entries)
    assert says(varints([len(entries), *chain.from_iterable(entries)]), known)
    assert says(encode_state_vector(known), known)
    for client in [*known, 7]:
        other = {**known, client: known.get(client, 0) % ((1 << 31) - 1) + 1}
        assert not says(encode_state_vector(other), known) or other == known
    if known:
        assert not says(encode_state_vector({}), known)
        assert not says(encode_state_vector(known), {})
