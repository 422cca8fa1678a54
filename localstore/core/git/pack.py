"""A pack without deltas, and its index (gitformat-pack(5), version 2 of both).

    writer = GitPackWriter(file.write)
    writer.add("blob", data)
    count = len(writer.entries)   # the first bytes of the file are then `pack_header(count)`

A pack begins with the number of its objects, and its checksum covers that number. So a pack is written with a
placeholder, and completed by `pack_header` and a checksum over the whole file.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from localstore.core.git.objects import Kind, header

LEVEL = 1  # of zlib: `git repack` compresses again what stays
_TYPES: dict[Kind, int] = {"commit": 1, "tree": 2, "blob": 3}
_FAR = 2**31  # offsets from here on stand in a table of their own
_INDEX_MAGIC = b"\xfftOc\x00\x00\x00\x02"


class PackEntry(NamedTuple):
    """The place of an object in a pack. `id`: 20 bytes; `crc`: CRC-32 of the object's bytes in the pack."""

    id: bytes
    offset: int
    crc: int


def pack_header(count: int) -> bytes:
    """The first bytes of a pack with this many objects."""
    return b"PACK" + struct.pack(">II", 2, count)


def entry_header(kind: Kind, size: int) -> bytes:
    """The header of an object in a pack: its kind and its size before compression. In the pack, the
    compressed content follows."""
    first = _TYPES[kind] << 4 | size & 15
    size >>= 4
    encoded = bytearray()
    while size:
        encoded.append(first | 0x80)
        first, size = size & 0x7F, size >> 7
    encoded.append(first)
    return bytes(encoded)


class GitPackWriter:
    """Writes git objects into a pack. `write`: called with the bytes of the pack, in order. An object that
    the pack already has is not written again. `size`: bytes written so far. `raw`: bytes of the objects
    before compression."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self.entries: list[PackEntry] = []
        self._ids: set[bytes] = set()
        self.size = self.raw = 0
        self._put(pack_header(0))

    def __contains__(self, object_id: bytes) -> bool:
        return object_id in self._ids

    def add(self, kind: Kind, data: bytes) -> bytes:
        """Write an object unless the pack has it. Returns its id."""
        started = header(kind, len(data))
        object_id = hashlib.sha1(started + data, usedforsecurity=False).digest()
        if object_id in self._ids:
            return object_id
        written = entry_header(kind, len(data)) + zlib.compress(data, LEVEL)
        self._enter(object_id, zlib.crc32(written), self.size)
        self._put(written)
        self.raw += len(data)
        return object_id

    def begin(self, size: int) -> LargeBlob:
        """Begin a blob of `size` bytes that is written in pieces. Until the blob is finished, no other object
        may be written. The writer cannot check whether the pack has the same blob already, so call this only
        while the pack is empty."""
        return LargeBlob(self, size)

    def _enter(self, object_id: bytes, crc: int, offset: int) -> None:
        self.entries.append(PackEntry(object_id, offset, crc))
        self._ids.add(object_id)

    def _put(self, data: bytes) -> None:
        self._write(data)
        self.size += len(data)


class LargeBlob:
    """A blob that is written in pieces."""

    def __init__(self, writer: GitPackWriter, size: int) -> None:
        self._writer, self._offset = writer, writer.size
        self._hash = hashlib.sha1(header("blob", size), usedforsecurity=False)
        self._packer = zlib.compressobj(LEVEL)
        self._crc = 0
        self._out(entry_header("blob", size))

    def feed(self, data: bytes) -> None:
        self._hash.update(data)
        self._writer.raw += len(data)
        self._out(self._packer.compress(data))

    def finish(self) -> bytes:
        """Complete the blob. Returns its id."""
        self._out(self._packer.flush())
        object_id = self._hash.digest()
        self._writer._enter(object_id, self._crc, self._offset)
        return object_id

    def _out(self, data: bytes) -> None:
        self._crc = zlib.crc32(data, self._crc)
        self._writer._put(data)


def pack_index(entries: Sequence[PackEntry], checksum: bytes) -> bytes:
    """The index of a pack with these objects; `checksum`: the last 20 bytes of the pack."""
    ordered = sorted(entries)
    counts = [0] * 256
    for entry in ordered:
        counts[entry.id[0]] += 1
    far = [entry.offset for entry in ordered if entry.offset >= _FAR]
    numbers = iter(range(len(far)))
    offsets = [entry.offset if entry.offset < _FAR else _FAR | next(numbers) for entry in ordered]
    count = len(ordered)
    body = b"".join(
        [
            _INDEX_MAGIC,
            struct.pack(">256I", *accumulate(counts)),
            *(entry.id for entry in ordered),
            struct.pack(f">{count}I", *(entry.crc for entry in ordered)),
            struct.pack(f">{count}I", *offsets),
            struct.pack(f">{len(far)}Q", *far),
            checksum,
        ]
    )
    return body + hashlib.sha1(body, usedforsecurity=False).digest()
