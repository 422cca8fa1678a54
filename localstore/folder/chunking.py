"""Where a large file falls apart, found in the same pass that hashes it.

What the walk found is kept in memory until the file is sent. Nothing depends on it: a list that is not there
any more is made again by reading the file.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Iterator
from io import RawIOBase

import msgspec

from localstore.core import limits
from localstore.core.encoding import digest as blake3_digest
from localstore.core.storage.chunks import Chunker

KEPT_BYTES = 32 * limits.MIB  # of lists: the chunks of about 60 GB of files
_ROW = struct.Struct(">32sI")


class ChunkPosition(msgspec.Struct, frozen=True):
    """A chunk of a file: where it begins, its BLAKE3 and its size in bytes."""

    offset: int
    digest: bytes
    size: int


class ChunkList:
    """The chunks of one file in their order, 36 bytes each."""

    def __init__(self) -> None:
        self._rows = bytearray()

    def __iter__(self) -> Iterator[ChunkPosition]:
        offset = 0
        for digest, size in _ROW.iter_unpack(self._rows):
            yield ChunkPosition(offset, digest, size)
            offset += size

    @property
    def stored(self) -> int:
        """Bytes of memory that this list takes."""
        return len(self._rows)

    def add(self, chunk: memoryview) -> None:
        self._rows += _ROW.pack(blake3_digest(chunk), len(chunk))


def cut_into_chunks(file: RawIOBase, seen: Callable[[memoryview], object] = lambda window: None) -> ChunkList:
    """The chunks from where the file stands to its end. `seen` is shown all these bytes too, some at a time
    and only for the time of the call. OSError if they cannot be read."""
    chunker, found = Chunker(), ChunkList()
    while count := file.readinto(chunker.space()):
        seen(chunker.space()[:count])
        for chunk in chunker.feed(count):
            found.add(chunk)
    for chunk in chunker.finish():
        found.add(chunk)
    return found


class ChunkLists:
    """Lists by the BLAKE3 of their file. The oldest go when all together are over KEPT_BYTES."""

    def __init__(self) -> None:
        self._lists: OrderedDict[bytes, ChunkList] = OrderedDict()
        self._size = 0

    def keep(self, digest: bytes, found: ChunkList) -> None:
        self.pop(digest)
        self._lists[digest] = found
        self._size += found.stored
        while self._size > KEPT_BYTES:
            self.pop(next(iter(self._lists)))

    def pop(self, digest: bytes) -> ChunkList | None:
        """The list, which is forgotten here."""
        found = self._lists.pop(digest, None)
        if found is not None:
            self._size -= found.stored
        return found
