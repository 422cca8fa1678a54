"""Reads numbers and byte strings from the untrusted bytes of lane updates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import lru_cache

from localstore.core.model import limits
from localstore.core.model.live import UpdateInvalid

CLOCK_END = 1 << 31
VARINT_BYTES = 8  # 56 bits: enough for every number of the format
# Numbers whose spelling is remembered, a few MB at most: ids come many times in an update and in a batch.
KNOWN = 1 << 13

VARINT = rb"[\x00-\x7f]|[\x80-\xff]{1,%d}[\x01-\x7f]" % (VARINT_BYTES - 1)
_all_in = re.compile(VARINT).findall
_one_at = re.compile(VARINT).match
_two_at = re.compile(rb"(%b)(%b)" % (VARINT, VARINT)).match


def varints(numbers: Iterable[int]) -> bytes:
    """The numbers encoded as unsigned LEB128 (variable length), each in its shortest form."""
    return b"".join(map(_encode_number, numbers))


def numbers_of(data: bytes) -> list[int]:
    """The numbers in `data`, which has the form that `varints` writes. Raises UpdateInvalid for any other
    bytes."""
    spelled = _all_in(data)
    if b"".join(spelled) != data:  # something that is not a number was passed over
        reader = Reader(data)
        while True:
            reader.varint()
    return list(map(_number, spelled))


@lru_cache(maxsize=KNOWN)
def _encode_number(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


@lru_cache(maxsize=KNOWN)
def _number(spelled: bytes) -> int:
    """The value of a number that is encoded as LEB128 in at most eight bytes. Seven bits of each byte belong
    to the number. They are joined in three steps for all bytes at once, which is fast."""
    pairs = int.from_bytes(spelled, "little")
    pairs = pairs & 0x007F007F007F007F | (pairs & 0x7F007F007F007F00) >> 1
    pairs = pairs & 0x00003FFF00003FFF | (pairs & 0x3FFF00003FFF0000) >> 2
    return pairs & 0x0FFFFFFF | (pairs & 0x0FFFFFFF00000000) >> 4


class Reader:
    """A position in untrusted bytes, from which it reads. Raises UpdateInvalid where the bytes end too early
    or are malformed."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise UpdateInvalid("the update ends too early")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        at = self.at
        if at < len(self.data) and (number := self.data[at]) <= 0x7F:
            self.at = at + 1
            return number
        match = _one_at(self.data, at)
        if match is None:
            raise UpdateInvalid(self._fault())
        self.at = match.end()
        return _number(match[0])

    def point(self) -> tuple[int, int]:
        """Reads a position in the CRDT text, as (client, clock): the clock counts the units of that
        client."""
        match = _two_at(self.data, self.at)
        if match is None:
            return self.varint(), self.clock()  # one of them says what is wrong
        self.at = match.end()
        client, clock = self.numbers(match)
        if clock >= CLOCK_END:
            raise UpdateInvalid("a clock is too large")
        return client, clock

    @staticmethod
    def numbers(match: re.Match[bytes]) -> Iterator[int]:
        """The numbers in the groups of `match`. Each group has matched one number in its encoded form
        (LEB128)."""
        return map(_number, match.groups())

    def _fault(self) -> str:
        """The reason why the bytes at the present position are no encoded number."""
        spelled = self.data[self.at : self.at + VARINT_BYTES]
        if min(spelled, default=0x80) < 0x80:
            return "a number is not in its shortest form"
        return "a number is too large" if len(spelled) == VARINT_BYTES else "the update ends too early"

    def count(self, least_bytes: int) -> int:
        """Reads how many elements follow. Raises UpdateInvalid if the remaining bytes are too few for so
        many. `least_bytes`: the fewest bytes that an element can have."""
        number = self.varint()
        if number * least_bytes > len(self.data) - self.at:
            raise UpdateInvalid("the update announces more than it holds")
        return number

    def client(self, seen: Mapping[int, object] | Set[int]) -> int:
        client = self.varint()
        if client >> limits.REPLICA_BITS or client in seen:
            raise UpdateInvalid("a client id is too large or comes twice")
        return client

    def clock(self) -> int:
        clock = self.varint()
        if clock >= CLOCK_END:
            raise UpdateInvalid("a clock is too large")
        return clock

    def length(self) -> int:
        length = self.clock()
        if length == 0:
            raise UpdateInvalid("a stretch is empty")
        return length

    def read(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            raise UpdateInvalid("the update ends too early")
        taken = self.data[self.at : end]
        self.at = end
        return taken
