"""Where packs lie: files of the data folder, or objects of an S3-compatible store.

Packs are written once and read by ranges. A name is never used again. What is durable is said by `append` and
`sync`; only then may the index speak of it.
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
"""How a call is carried out: on the event loop, where it is short, or on some thread."""


@dataclass(slots=True, frozen=True)
class Place:
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
    """The pack is not there, or ends before the range: it may have been rewritten under another name."""


async def inline(call: Callable[..., R], *arguments: object) -> R:
    """Run what is so short that it may block the event loop."""
    return call(*arguments)


def use_each(use: Callable[[memoryview], object], pieces: Sequence[bytes]) -> None:
    """Show whole pieces, one after the other."""
    for piece in pieces:
        use(memoryview(piece))


class Packs(Protocol):
    """A place for packs. Every method raises Unavailable when the place does not answer or refuses."""

    async def append(self, pieces: Sequence[bytes], sync: bool = True) -> list[Place]:
        """Write; durable on return if `sync`, else after `sync` of the places."""

    async def sync(self, places: Sequence[Place]) -> None:
        """Make these places durable."""

    async def read(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Bytes at (offset, length) of a pack that is durable. PackGone when they are not there."""

    async def read_with(
        self, name: str, ranges: Sequence[tuple[int, int]], use: Callable[[Sequence[Stored]], R], run: Run
    ) -> R:
        """What `use` makes of these stored frames at (offset, length), which it need not read to their ends;
        `run`: where it does. PackGone when they are not there."""

    async def show(
        self, name: str, ranges: Sequence[tuple[int, int]], use: Callable[[memoryview], object]
    ) -> None:
        """Call `use` with these bytes in order, off the event loop. A piece is there for its call only.
        PackGone comes before the first."""

    def stored(self) -> AsyncIterator[PackInfo]:
        """Every pack there is, also those that no index speaks of."""

    async def delete(self, names: Collection[str]) -> None:
        """Take packs away; those that are not there do not matter."""

    async def adopt(self, name: str, file: Path) -> None:
        """Store a whole pack, durable, under the name that it had in another place. Nobody serves yet."""

    async def check(self) -> None:
        """Whether packs can be reached now."""

    async def close(self) -> None:
        """Finish what is waiting."""
