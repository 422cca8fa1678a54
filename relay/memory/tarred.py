"""Tar members and gzip, as functions for the worker process.

A gzip file is made of pieces that are compressed separately. Each piece ends at a whole byte, so that the
pieces can be joined and no state of the compressor is needed between two calls.
"""

from __future__ import annotations

import struct
import tarfile
import zlib
from collections.abc import Sequence
from typing import NamedTuple

LEVEL = 4  # half the time of level 6, for a twentieth more bytes
HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\x03"  # of a gzip file: no name, no time
LAST_BLOCK = b"\x03\0"  # an empty one, which ends the stream


class FilePiece(NamedTuple):
    """A piece of a file in the archive. `path`: path of the file in its first piece, else None. `size`: size
    of the whole file. `last`: whether this is the file's last piece."""

    path: str | None
    size: int
    data: bytes
    last: bool


class ArchivePart(NamedTuple):
    """A piece of an archive: compressed bytes, with the checksum and length of the whole archive so far."""

    data: bytes
    checksum: int
    written: int


def header_of(name: str, size: int, seconds: int = 0, directory: bool = False) -> bytes:
    """The tar header of a file of `size` bytes. A name that is long or not ASCII is stored in an extended
    (pax) header. `seconds`: time of the file's last change."""
    info = tarfile.TarInfo(name)
    info.size, info.mtime = size, seconds
    info.mode = 0o755 if directory else 0o644
    info.type = tarfile.DIRTYPE if directory else tarfile.REGTYPE
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


def padding_of(size: int) -> bytes:
    return b"\0" * (-size % tarfile.BLOCKSIZE)


def end_of_tar(written: int) -> bytes:
    """The zero bytes that end a tar archive of `written` bytes, as the format demands."""
    closed = written + 2 * tarfile.BLOCKSIZE
    return b"\0" * (2 * tarfile.BLOCKSIZE + -closed % tarfile.RECORDSIZE)


def pack_members(parts: Sequence[FilePiece], seconds: int, before: ArchivePart) -> ArchivePart:
    """Compress pieces of files as the next part of the archive. `seconds`: time of the last change that all
    files get. `before`: the result of the previous call."""
    pieces: list[bytes] = []
    for path, size, data, last in parts:
        if path is not None:
            pieces.append(header_of(path, size, seconds))
        pieces.append(data)
        if last:
            pieces.append(padding_of(size))
    return compress_piece(b"".join(pieces), before)


def compress_piece(raw: bytes, before: ArchivePart) -> ArchivePart:
    """Compress `raw` into the next piece of the gzip file."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    data = packer.compress(raw) + packer.flush(zlib.Z_SYNC_FLUSH)
    return ArchivePart(data, zlib.crc32(raw, before.checksum), before.written + len(raw))


def end_archive(before: ArchivePart) -> bytes:
    """The end of the archive and of its gzip file."""
    last = compress_piece(end_of_tar(before.written), before)
    return last.data + LAST_BLOCK + struct.pack("<II", last.checksum, last.written % 2**32)
