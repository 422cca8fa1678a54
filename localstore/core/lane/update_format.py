"""The strict parser of lane updates: the CRDT library sees only bytes that were parsed here.

A lane is a Yjs document (update format v1) with one text at the root `ROOT`. It may contain only strings and
deleted runs. Formats, embeds, nested types, maps, subdocuments, garbage-collected runs and gaps are refused.
Each number has one spelling, each client appears once, deletions ascend, and nothing follows the end.

An *item* is a run of UTF-16 units `(client, clock … clock + length)`. A *state vector* maps each client to
the number of its units that are known. Grammar (a number is a LEB128 varint in its shortest form):

    update  = count { structs }  count { deletes }
    structs = count client clock { info [origin] [right origin] [parent] content }
    deletes = client count { clock length }
    origin  = client clock          parent = 1 length name
    content = a string (length, UTF-8) or a deleted run (length)

The strictness is needed, because small crafted inputs make the library crash, loop for ever or take half a
GiB (docs/design/003)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import chain
from math import isqrt
from typing import NamedTuple

import msgspec

from localstore.core.lane.reader import CLOCK_END, VARINT, Reader, numbers_of, varints
from localstore.core.model import limits
from localstore.core.model.live import UpdateInvalid

ROOT = "t"
GENESIS_BIT = 1 << (
    limits.REPLICA_BITS - 1
)  # set in the client id of every genesis, clear in every replica id

KIND_DELETED, KIND_STRING = 1, 4
INFO_KIND, INFO_RIGHT_ORIGIN, INFO_ORIGIN = 0x1F, 0x40, 0x80
INFO_KNOWN = KIND_DELETED | KIND_STRING | INFO_RIGHT_ORIGIN | INFO_ORIGIN
PARENT_IS_ROOT = 1
FOUR_BYTE_LEADS = bytes(range(0xF0, 0xF8))  # first bytes of UTF-8 characters that are two units of UTF-16
LEANS_ON_UNKNOWN = "the update leans on text that is not known; send all from the state vector"
DELETIONS_PER_STEP = 2048  # deletions per item walked over: they are found by bisection and only shift lists

_BEYOND_BASIC = re.compile("[\U00010000-\U0010ffff]+")
_insertion_at = re.compile(
    rb"\x01\x01(%b)(%b)%b(%b)(%b)(%b)(%b)(%b)"
    % (*[VARINT] * 2, bytes([KIND_STRING | INFO_ORIGIN | INFO_RIGHT_ORIGIN]), *[VARINT] * 5)
).match

StateVector = Mapping[int, int]
Point = tuple[int, int]  # (client, clock) of one UTF-16 unit


class Struct(NamedTuple):
    """An item: a run of UTF-16 units that a client inserted, or a deleted run. `clock`: the number of its
    first unit among all units of the client; `length`: how many units it has. `origin`, `right_origin`: the
    units between which it was inserted. `text`: its UTF-8, None for a deleted run."""

    client: int
    clock: int
    length: int
    origin: Point | None
    right_origin: Point | None
    text: bytes | None


class Deletion(NamedTuple):
    client: int
    clock: int
    length: int


class Caps(msgspec.Struct, frozen=True):
    """Limits for one encoded update: its bytes, its items (inserted runs, `structs`), the bytes of one
    inserted text, and its deletions."""

    total_bytes: int
    structs: int
    string_bytes: int
    deletions: int


UPDATE_CAPS = Caps(
    limits.UPDATE_BYTES, limits.UPDATE_STRUCTS, limits.UPDATE_STRING_BYTES, limits.UPDATE_DELETE_RANGES
)
STATE_CAPS = Caps(
    limits.LANE_STATE_BYTES, limits.LANE_STATE_STRUCTS, limits.LANE_STATE_BYTES, limits.LANE_STATE_STRUCTS
)


class Update(msgspec.Struct, frozen=True):
    """A parsed update, or a parsed state of a lane. `structs`: its items (inserted runs) in the order in
    which they are encoded."""

    structs: list[Struct]
    deletions: list[Deletion]

    @property
    def clients(self) -> set[int]:
        return {struct.client for struct in self.structs}


def parse(data: bytes, caps: Caps = UPDATE_CAPS) -> Update:
    """Parse one update of a lane. Raises UpdateInvalid."""
    if len(data) > caps.total_bytes:
        raise UpdateInvalid(f"the update has {len(data)} bytes; the limit is {caps.total_bytes}")
    reader = Reader(data)
    structs = _insertion(reader, caps) or _structs(reader, caps)
    update = Update(structs, _deletions(reader, caps))
    if reader.at != len(data):
        raise UpdateInvalid("the update has bytes after its end")
    return update


def validate(
    data: bytes, vector: StateVector, replica: int | None, items: int = 0, halves: Set[Point] = frozenset()
) -> Update:
    """Parse an update and check that a lane can apply it as a whole. `vector`: the lane's state vector, which
    is the number of units that it has of each client.

    The items (inserted runs) must be written by `replica` (None: by anybody, for a trusted log) and continue
    where `vector` ends. They may refer only to known items and to earlier items of the update. Deletions must
    be of known items. `items`: an upper bound of the lane's items, by which the work is limited: placing one
    item may walk over all others. `halves`: positions inside a character, where no item may be split (see
    `second_halves`).

    Raises UpdateInvalid if a check fails. If the update begins after a gap, the writer must send again from
    the receiver's state vector."""
    update = parse(data)
    check(update, vector, replica, items, halves)
    return update


def check(
    update: Update, vector: StateVector, replica: int | None, items: int = 0, halves: Set[Point] = frozenset()
) -> tuple[dict[int, int], set[Point]]:
    """Check a parsed update against a lane, as `validate` describes. Returns (the lane's state vector after
    the update, the `second_halves` of the update). A state vector is the number of units of each client."""
    if work(update, items) > limits.UPDATE_WORK:
        raise UpdateInvalid(
            "the update has too many parts for a lane of this size; send the file as a new version"
        )
    ends = dict(vector)
    for client, clock, length, left, right, _ in update.structs:
        if client & GENESIS_BIT:
            raise UpdateInvalid("the update claims to be a genesis")
        if client != replica and replica is not None:
            raise UpdateInvalid("the update writes under another replica id")
        if clock != ends.get(client, 0):
            raise UpdateInvalid("the update does not continue the state vector; send all from there")
        if left is not None and left[1] >= ends.get(left[0], 0):
            raise UpdateInvalid(LEANS_ON_UNKNOWN)
        if right is not None and right[1] >= ends.get(right[0], 0):
            raise UpdateInvalid(LEANS_ON_UNKNOWN)
        ends[client] = clock + length
    for client, clock, length in update.deletions:
        if clock + length > ends.get(client, 0):
            raise UpdateInvalid("the update deletes text that is not known; send all from the state vector")
    own = second_halves(update)
    if own or halves:
        _check_pairs(update, own, halves)
    return ends, own


def validate_state(data: bytes) -> Update:
    """Parse the full state of a lane. Raises UpdateInvalid if a part of what a client wrote is missing, or if
    an item (inserted run) refers to text that is not in the state."""
    update = parse(data, STATE_CAPS)
    ends: dict[int, int] = {}
    for struct in update.structs:
        if struct.clock != ends.get(struct.client, 0):
            raise UpdateInvalid("the state does not start at its beginning")
        ends[struct.client] = struct.clock + struct.length
    if len(genesis_ids(ends)) > 1:
        raise UpdateInvalid("the state mixes two lanes")
    points = [p for s in update.structs for p in (s.origin, s.right_origin) if p is not None]
    if any(clock >= ends.get(client, 0) for client, clock in points):
        raise UpdateInvalid("the state leans on text outside itself")
    if any(clock + length > ends.get(client, 0) for client, clock, length in update.deletions):
        raise UpdateInvalid("the state deletes text outside itself")
    return update


def genesis_ids(vector: StateVector) -> set[int]:
    """The clients in a state vector (the number of units of each client) that inserted the first text of a
    lane. A valid lane has at most one of them."""
    return {client for client in vector if client & GENESIS_BIT}


def ends_of(update: Update) -> dict[int, int]:
    """For each client, the position (clock) at which its next unit would come after this update. For a full
    state of a lane, this is the state vector: the number of units of each client."""
    return {struct.client: struct.clock + struct.length for struct in update.structs}


def second_halves(update: Update) -> set[Point]:
    """The positions inside characters that take two UTF-16 units, such as emoji. A position is the (client,
    clock) of the second unit."""
    halves: set[Point] = set()
    for client, clock, _, _, _, text in update.structs:
        if text and has_pairs(text):
            halves.update((client, clock + unit) for unit in _pair_ends(text))
    return halves


def has_pairs(text: bytes) -> bool:
    """Whether the UTF-8 text has characters that take two UTF-16 units, such as emoji."""
    return not text.isascii() and len(text.translate(None, FOUR_BYTE_LEADS)) < len(text)


def work(update: Update, items: int) -> int:
    """An upper bound of the steps (about 0.1 µs each) that it takes to apply `update` to a lane of `items`
    items (inserted runs). To place one item, the CRDT library may walk over all others."""
    structs = len(update.structs)
    return structs * (items + structs) + len(update.deletions) * items // DELETIONS_PER_STEP


def most_structs(items: int) -> int:
    """How many items (inserted runs) an update without deletions may add to a lane of `items` items. The work
    to apply it must stay within UPDATE_WORK, and the number itself within UPDATE_STRUCTS."""
    affordable = (isqrt(items * items + 4 * limits.UPDATE_WORK) - items) // 2
    return min(affordable, limits.UPDATE_STRUCTS)


def join_updates(updates: Sequence[Update]) -> Update:
    """Joins several updates into one. Each must continue where the updates before it end."""
    return Update(
        [struct for update in updates for struct in update.structs],
        [deletion for update in updates for deletion in update.deletions],
    )


def decode_state_vector(data: bytes) -> dict[int, int]:
    """The state vector (the number of units of each client) that `data` encodes. Raises UpdateInvalid for any
    other bytes."""
    numbers = numbers_of(data)
    vector = dict(zip(numbers[1::2], numbers[2::2], strict=False))
    if not numbers or numbers[0] != len(vector) or len(numbers) != 1 + 2 * len(vector):
        raise UpdateInvalid("the state vector announces another number of clients, or one comes twice")
    if vector and (max(vector) >> limits.REPLICA_BITS or max(vector.values()) >= CLOCK_END):
        raise UpdateInvalid("a client id or a clock is too large")
    return vector


def encode_state_vector(vector: StateVector) -> bytes:
    """The canonical encoding of a state vector (the number of units of each client). Clients are in ascending
    order, and those with 0 units are left out."""
    return _vector(sorted([entry for entry in vector.items() if entry[1]]))


def says(data: bytes, vector: StateVector) -> bool:
    """Whether `data` is an encoding of this state vector (the number of units of each client), with the
    clients in any order. Raises UpdateInvalid if `data` is no encoded state vector."""
    descending = sorted(vector.items(), reverse=True)
    return data == _vector(descending) or decode_state_vector(data) == vector


def _vector(entries: list[tuple[int, int]]) -> bytes:
    return varints([len(entries), *chain.from_iterable(entries)])


def _check_pairs(update: Update, own: Set[Point], halves: Set[Point]) -> None:
    cuts = [(s.origin[0], s.origin[1] + 1) for s in update.structs if s.origin is not None]
    cuts += [s.right_origin for s in update.structs if s.right_origin is not None]
    for client, clock, length in update.deletions:
        cuts += [(client, clock), (client, clock + length)]
    if any(cut in own or cut in halves for cut in cuts):
        raise UpdateInvalid("the update cuts a character in two")


def _pair_ends(text: bytes) -> Iterator[int]:
    pairs = 0
    for run in _BEYOND_BASIC.finditer(text.decode("utf-8")):
        start, end = run.span()
        first = start + pairs + 1
        pairs += end - start
        yield from range(first, end + pairs, 2)


def _insertion(reader: Reader, caps: Caps) -> list[Struct] | None:
    """A quick way to read the most frequent kind of update, which inserts one short plain text between two
    characters. Returns the items (inserted runs) of the update. For any other update, returns None and reads
    nothing."""
    match = _insertion_at(reader.data)
    if match is None:
        return None
    client, clock, left, left_clock, right, right_clock, size = reader.numbers(match)
    end = match.end() + size
    text = reader.data[match.end() : end]
    if client >> limits.REPLICA_BITS or max(left_clock, right_clock, clock + size) >= CLOCK_END:
        return None
    if not 0 < size == len(text) <= caps.string_bytes or not text.isascii():
        return None
    reader.at = end
    return [Struct(client, clock, size, (left, left_clock), (right, right_clock), text)]


def _structs(reader: Reader, caps: Caps) -> list[Struct]:
    structs: list[Struct] = []
    seen: set[int] = set()
    for _ in range(reader.count(5)):
        number = reader.count(3)
        client = reader.client(seen)
        clock = reader.clock()
        seen.add(client)
        if number == 0:
            raise UpdateInvalid("a client comes without items")
        if len(structs) + number > caps.structs:
            raise UpdateInvalid(f"the update has more than {caps.structs} items")
        for _ in range(number):
            struct = _struct(reader, client, clock, caps)
            structs.append(struct)
            clock += struct.length
            if clock >= CLOCK_END:
                raise UpdateInvalid("a clock is too large")
    return structs


def _struct(reader: Reader, client: int, clock: int, caps: Caps) -> Struct:
    info = reader.byte()
    kind = info & INFO_KIND
    if info & ~INFO_KNOWN or kind not in (KIND_DELETED, KIND_STRING):
        raise UpdateInvalid("the update holds something other than text")
    origin = reader.point() if info & INFO_ORIGIN else None
    right_origin = reader.point() if info & INFO_RIGHT_ORIGIN else None
    if origin is None and right_origin is None:
        _root(reader)
    size = reader.length()
    if kind == KIND_DELETED:
        return Struct(client, clock, size, origin, right_origin, None)
    if size > caps.string_bytes:
        raise UpdateInvalid(f"a piece of text has {size} bytes; the limit is {caps.string_bytes}")
    text = reader.read(size)
    return Struct(client, clock, units(text), origin, right_origin, text)


def _root(reader: Reader) -> None:
    if reader.varint() != PARENT_IS_ROOT or reader.read(reader.count(1)) != ROOT.encode():
        raise UpdateInvalid("the update writes outside the text of its lane")


def units(text: bytes) -> int:
    """The length of UTF-8 text in UTF-16 units. Raises UpdateInvalid unless it is UTF-8."""
    if text.isascii():
        return len(text)
    try:
        return len(text.decode("utf-8")) + len(text) - len(text.translate(None, FOUR_BYTE_LEADS))
    except UnicodeDecodeError:
        raise UpdateInvalid("a piece of text is not UTF-8") from None


def _deletions(reader: Reader, caps: Caps) -> list[Deletion]:
    if reader.data[reader.at : reader.at + 2] == b"\0":  # none, and the end
        reader.at += 1
        return []
    deletions: list[Deletion] = []
    seen: set[int] = set()
    for _ in range(reader.count(4)):
        client = reader.client(seen)
        seen.add(client)
        number = reader.count(2)
        if number == 0:
            raise UpdateInvalid("a client comes without deletions")
        if len(deletions) + number > caps.deletions:
            raise UpdateInvalid(f"the update has more than {caps.deletions} deletions")
        end = 0
        for _ in range(number):
            clock, length = reader.clock(), reader.length()
            if clock < end or clock + length >= CLOCK_END:
                raise UpdateInvalid("deletions overlap, do not ascend, or end too late")
            deletions.append(Deletion(client, clock, length))
            end = clock + length
    return deletions
