"""Memory that clients may make the relay hold: bodies still arriving, and answers still being taken.

Without it, strangers who send all but the last byte of large bodies, or never read large answers, would
decide how much memory the process has.
"""

from __future__ import annotations

from dataclasses import dataclass

from localstore.core.errors import Unavailable
from localstore.core.limits import MIB

TOTAL = 384 * MIB
FOR_AN_ADDRESS = 128 * MIB


class Buffers:
    """Bytes held at this moment, in all and for each address."""

    def __init__(self, total: int = TOTAL, each: int = FOR_AN_ADDRESS) -> None:
        self._total, self._each = total, each
        self._held: dict[str, int] = {}
        self._sum = 0

    def take(self, address: str, size: int) -> None:
        """Unavailable when that would be too much; what is held already stays."""
        held = self._held.get(address, 0) + size
        if held > self._each or self._sum + size > self._total:
            raise Unavailable("too many large requests at once; try again in a moment")
        self._held[address] = held
        self._sum += size

    def give_back(self, address: str, size: int) -> None:
        self._sum -= size
        left = self._held.get(address, 0) - size
        if left > 0:
            self._held[address] = left
        else:
            self._held.pop(address, None)


@dataclass(slots=True)
class Lease:
    """What one request holds; `release` it when the answer was sent."""

    buffers: Buffers
    address: str
    size: int = 0

    def take(self, size: int) -> None:
        self.buffers.take(self.address, size)
        self.size += size

    def release(self) -> None:
        if self.size:
            self.buffers.give_back(self.address, self.size)
            self.size = 0
