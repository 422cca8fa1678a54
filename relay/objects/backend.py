"""The interface of stores for packs: files of the data folder, or objects of an S3-compatible store.

Packs are written once and read by ranges. Names are never reused. Bytes are durable after `append` with
`sync=True`, or after a call of `sync`. Only then may the database refer to them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from localstore.core.errors import Unavailable
from localstore.core.storage.frame import Stored

R = TypeVar("R")
Run = Callable[..., Awaitable[Any]]
"""Runs a call: short ones on the event loop, others on a thread."""


@dataclass(slots=True, frozen=True)
class PackPosition:
    """Where bytes were written: the pack's name and the offset in it."""

    pack: str
    offset: int


@dataclass(slots=True, frozen=True)
class PackInfo:
    """A stored pack. `size` in bytes, `changed_at` in ms UTC."""

    name: str
    size: int
    changed_at: int


class PackGone(Unavailable):
    """Raised if a pack does not exist or ends before the range that is read. Its frames may have been moved
    to another pack; if they were not, they are lost, which the audit tells. `what`: what is the matter with
    the pack."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(
            f"pack {name} of the object store {what}; try again, and if it stays so, the operator of this "
            "server runs: relay audit"
        )
        self.what = f"the pack {what}"


async def inline(call: Callable[..., R], *arguments: object) -> R:
    """Call `call` on the event loop and return its result. For calls that are short enough to need no
    thread."""
    return call(*arguments)


def use_each(use: Callable[[memoryview], object], pieces: Sequence[bytes]) -> None:
    """Call `use` with each of the pieces in turn."""
    for piece in pieces:
        use(memoryview(piece))


class Packs(Protocol):
    """A store of packs. Every method raises Unavailable when the store does not answer or refuses."""

    async def append(self, pieces: Sequence[bytes], sync: bool = True) -> list[PackPosition]:
        """Write bytes to a pack, and return their positions. With `sync`, the bytes are durable when this
        returns; without, they become durable by a call of the method `sync`."""

    async def sync(self, places: Sequence[PackPosition]) -> None:
        """Make the bytes at these positions durable."""

    async def read(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes at each (offset, length) of a pack. Raises PackGone if the pack does not exist or is too
        short."""

    async def read_with(
        self, name: str, ranges: Sequence[tuple[int, int]], use: Callable[[Sequence[Stored]], R], run: Run
    ) -> R:
        """Call `use` with the frames stored at each (offset, length) of the pack, and return its result.
        `use` need not read all bytes of each frame. `run`: the function that calls `use`, on a thread or
        directly. Raises PackGone if the pack does not exist or is too short."""

    async def show(
        self, name: str, ranges: Sequence[tuple[int, int]], use: Callable[[memoryview], object]
    ) -> None:
        """Call `use` with the bytes of the ranges, in order, piece by piece and off the event loop. A piece
        is valid only during the call that gets it. Raises PackGone before the first call, never later."""

    def list_packs(self) -> AsyncIterator[PackInfo]:
        """Yields every stored pack, including those that the database does not know."""

    async def delete(self, names: Collection[str]) -> None:
        """Delete the packs with these names; missing packs are ignored."""

    async def adopt(self, name: str, file: Path) -> None:
        """Store a whole pack durably under the name that it had in another store. Restoring a backup uses
        this before relays serve."""

    async def check(self) -> None:
        """Raise Unavailable unless the store can be reached now."""

    async def close(self) -> None:
        """Finish pending writes."""
