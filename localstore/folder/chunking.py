"""Cuts a large file into chunks while it is hashed, and packs the chunks that a repository lacks.

A scan keeps the lists of chunks in memory until the files are sent. A list that is missing is computed again
from the file."""

from __future__ import annotations

import os
import struct
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from io import FileIO, RawIOBase
from operator import attrgetter
from typing import NamedTuple

import msgspec
from blake3 import blake3

from localstore.core.encoding import digest as blake3_digest
from localstore.core.model import limits
from localstore.core.storage.chunks import Chunker
from localstore.core.storage.pack import Pack, PackWriter

KEPT_BYTES = 32 * limits.MIB  # of lists: the chunks of about 60 GB of files
_ROW = struct.Struct(">32sI")


class ChunkPosition(msgspec.Struct, frozen=True):
    """One chunk of a file. `offset` and `size`: bytes; `digest`: BLAKE3."""

    offset: int
    digest: bytes
    size: int


class FileChanged(Exception):
    """The file has changed since it was cut into chunks."""


class Packed(NamedTuple):
    """One step of packing chunks. `packs`: the packs that this step filled. `left`: how many bytes of chunks
    are still to be read."""

    packs: list[Pack]
    left: int


class ChunkList:
    """The chunks of one file in order. Each takes 36 bytes of memory."""

    def __init__(self) -> None:
        self._rows = bytearray()

    def __iter__(self) -> Iterator[ChunkPosition]:
        offset = 0
        for digest, size in _ROW.iter_unpack(self._rows):
            yield ChunkPosition(offset, digest, size)
            offset += size

    @classmethod
    def from_bytes(cls, data: bytes) -> ChunkList:
        """The list of chunks from the bytes that `to_bytes` returned. Raises ValueError for other bytes."""
        if len(data) % _ROW.size:
            raise ValueError("no list of chunks")
        chunks = cls()
        chunks._rows += data
        return chunks

    def to_bytes(self) -> bytes:
        """The list as bytes, 36 for each chunk: its digest, and its size as a big-endian number."""
        return bytes(self._rows)

    @classmethod
    def of(cls, rows: Iterable[tuple[bytes, int]]) -> ChunkList:
        """The list of these chunks (digest, size)."""
        chunks = cls()
        for digest, size in rows:
            chunks._rows += _ROW.pack(digest, size)
        return chunks

    @property
    def stored(self) -> int:
        """How many bytes of memory the list takes."""
        return len(self._rows)

    def add(self, chunk: memoryview) -> None:
        self._rows += _ROW.pack(blake3_digest(chunk), len(chunk))


def cut_into_chunks(file: RawIOBase, seen: Callable[[memoryview], object] = lambda window: None) -> ChunkList:
    """Cuts a file into chunks, from its current position to its end. `seen`: called with all bytes, piece by
    piece; a piece is valid only during the call. Raises OSError."""
    chunker, chunks = Chunker(), ChunkList()
    while count := file.readinto(chunker.space()):
        seen(chunker.space()[:count])
        for chunk in chunker.feed(count):
            chunks.add(chunk)
    for chunk in chunker.finish():
        chunks.add(chunk)
    return chunks


def chunks_of(file: RawIOBase, digest: bytes) -> ChunkList | None:
    """The chunks of a file that was just opened. None if the file's BLAKE3 is not `digest`. Raises
    OSError."""
    whole = blake3()
    chunks = cut_into_chunks(file, whole.update)
    return chunks if whole.digest() == digest else None


def pack_chunks(file: FileIO, listed: ChunkList, missing: Collection[bytes], most: int) -> Iterator[Packed]:
    """Packs the chunks with the digests `missing` into packs of at most `most` bytes, in the order of the
    file. Yields once for each chunk, and once for the last pack. Each chunk is verified before it is
    packed. Raises FileChanged and OSError."""
    first = {chunk.digest: chunk for chunk in listed}
    chunks = sorted((first[digest] for digest in set(missing) if digest in first), key=attrgetter("offset"))
    remaining, writer = sum(chunk.size for chunk in chunks), PackWriter(most)
    for chunk in chunks:
        data = os.pread(file.fileno(), chunk.size, chunk.offset)
        if blake3_digest(data) != chunk.digest:
            raise FileChanged
        remaining -= chunk.size
        yield Packed(list(writer.add(chunk.digest, data, text=False)), remaining)
    yield Packed(list(writer.finish()), 0)


class ChunkLists:
    """Stores lists of chunks under the BLAKE3 of their file. The oldest lists are dropped if all together
    take more than KEPT_BYTES."""

    def __init__(self) -> None:
        self._lists: OrderedDict[bytes, ChunkList] = OrderedDict()
        self._size = 0

    def keep(self, digest: bytes, chunks: ChunkList) -> None:
        self.pop(digest)
        self._lists[digest] = chunks
        self._size += chunks.stored
        while self._size > KEPT_BYTES:
            self.pop(next(iter(self._lists)))

    def get(self, digest: bytes) -> ChunkList | None:
        """The list of chunks of the file with this digest; None if it is not stored."""
        return self._lists.get(digest)

    def pop(self, digest: bytes) -> ChunkList | None:
        """Remove and return the list of chunks of the file with this digest; None if it is not stored."""
        chunks = self._lists.pop(digest, None)
        if chunks is not None:
            self._size -= chunks.stored
        return chunks
