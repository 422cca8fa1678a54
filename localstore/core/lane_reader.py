"""Numbers and stretches of bytes, as lane updates spell them, read from bytes that nobody has vouched for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from localstore.core import limits
from localstore.core.errors import UpdateInvalid

CLOCK_END = 1 << 31
VARINT_BYTES = 8  # 56 bits: enough for every number of the format


def varints(numbers: Iterable[int]) -> bytes:
    """Each as unsigned LEB128, shortest form."""
    encoded = bytearray()
    for number in numbers:
        while number > 0x7F:
            encoded.append(number & 0x7F | 0x80)
            number >>= 7
        encoded.append(number)
    return bytes(encoded)


def numbers_of(data: bytes) -> list[int]:
    """The inverse of `varints`. UpdateInvalid for any other bytes."""
    numbers: list[int] = []
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            if byte == 0 and shift > 7:
                raise UpdateInvalid("a number is not in its shortest form")
            numbers.append(number)
            number = shift = 0
        elif shift == 7 * VARINT_BYTES:
            raise UpdateInvalid("a number is too large")
    if shift:
        raise UpdateInvalid("the update ends too early")
    return numbers


class Reader:
    """A cursor over untrusted bytes; running off the end is UpdateInvalid."""

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
        number = shift = 0
        for byte in self.data[self.at : self.at + VARINT_BYTES]:
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                if byte == 0 and shift > 7:
                    raise UpdateInvalid("a number is not in its shortest form")
                self.at += shift // 7
                return number
        if shift == 7 * VARINT_BYTES:
            raise UpdateInvalid("a number is too large")
        raise UpdateInvalid("the update ends too early")

    def count(self, least_bytes: int) -> int:
        """A number of things of at least `least_bytes` each that are still to come."""
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

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            raise UpdateInvalid("the update ends too early")
        taken = self.data[self.at : end]
        self.at = end
        return taken
