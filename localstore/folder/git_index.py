"""Finds out which files git tracks, by reading the index of a repository. It reads git's format on disk in
the versions 2 to 4, also split and sparse (see `gitformat-index`).

git is not run, because somebody else's repository may name programs in its configuration. The bytes are
untrusted: size, number and length of names are limited, and names are only compared."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from localstore.core.model.limits import GIT_INDEX_BYTES, GIT_INDEX_PATHS

_HEADER = 12
_NAME_BYTES = 4096  # more than a system call takes
_STAT_BYTES = 40  # of an entry, before the object's id
_HASHES = (20, 32)  # SHA-1, SHA-256
_LONG_NAME = 0xFFF  # the length that stands for longer names
_EXTENDED = 0x4000  # two more bytes of flags follow
_POINTER = re.compile(rb"gitdir: ([^\0\n]{1,4096})\n?")


class IndexUnreadable(ValueError):
    """The file is not an index in git's format, or is too large."""


class _OtherHash(Exception):
    """The index does not fit the assumed length of object ids, so it has the ids of another hash."""


def find_index(folder: Path) -> Path | None:
    """The path of the index of the repository whose work tree is `folder`; None if the folder has no
    `.git`."""
    place = folder / ".git"
    try:
        if stat.S_ISDIR(place.stat().st_mode):
            return place / "index"
        data = read_small(place, 5000)
    except OSError:
        return None
    named = _POINTER.fullmatch(data or b"")  # of a linked work tree or submodule
    return folder / os.fsdecode(named[1]) / "index" if named else None


def fingerprint(index: Path) -> str:
    """A text made from the stat of the index file, which differs whenever git has written an index. "" if
    there is no file."""
    try:
        info = index.stat()
    except OSError:
        return ""
    return f"{info.st_mtime_ns} {info.st_ctime_ns} {info.st_size} {info.st_ino}"


def read_index(index: Path) -> list[bytes]:
    """The paths of the regular files in the index, sorted. Raises IndexUnreadable."""
    data = _read_bounded(index)
    names, shared = _parse(data)
    if shared is not None:
        base, replaced = shared
        names += _shared_names(index.with_name(f"sharedindex.{base}"), replaced)
    return sorted({*filter(None, names)})


def _shared_names(base: Path, deleted: bytes) -> list[bytes]:
    """The names in the base file of a split index, which git keeps in two files. `deleted`: a compressed
    bitmap (EWAH) of the names to leave out; each of these becomes b"" in the result."""
    names, deeper = _parse(_read_bounded(base))
    if deeper is not None:
        raise IndexUnreadable("a split index is based on another one")
    for at in _set_bits(deleted, len(names)):
        names[at] = b""
    return names


def _read_bounded(path: Path) -> bytes:
    try:
        data = read_small(path, GIT_INDEX_BYTES)
    except OSError as error:
        raise IndexUnreadable(error.strerror or "it cannot be read") from None
    if data is None:
        raise IndexUnreadable("it is too large, or no file")
    return data


def read_small(path: Path, most: int) -> bytes | None:
    """The bytes of a regular file. None if there is no regular file, or if it has more than `most` bytes.
    Raises OSError."""
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(opened, "rb", buffering=0) as file:
        info = os.fstat(opened)
        if not stat.S_ISREG(info.st_mode) or info.st_size > most:
            return None
        data = file.read(info.st_size)
        return data if data is not None and len(data) == info.st_size else None


def _parse(data: bytes) -> tuple[list[bytes], tuple[str, bytes] | None]:
    """Parses git's index. Returns (names, split). An entry that is not a regular file has the name b"".
    `split`: None for an index in one file; for an index in two files it is (hex id of the base file, bitmap
    of the deleted entries of the base)."""
    version = int.from_bytes(data[4:8])
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise IndexUnreadable("it has no version that svc reads")
    many = int.from_bytes(data[8:_HEADER])
    if many > GIT_INDEX_PATHS:
        raise IndexUnreadable(f"it names more than {GIT_INDEX_PATHS:,} files")
    for hash_bytes in _HASHES:
        try:
            names, end = (_read_prefixed if version == 4 else _read_padded)(data, many, hash_bytes)
            return names, _split(data, end, hash_bytes)
        except (_OtherHash, IndexError):
            continue
    raise IndexUnreadable("its entries are damaged")


def _read_padded(data: bytes, many: int, hash_bytes: int) -> tuple[list[bytes], int]:
    """Reads the `many` entries of an index of version 2 or 3. `hash_bytes`: the length of git's object ids in
    it. Returns (names, offset after the entries)."""
    names = []
    at, fixed = _HEADER, _STAT_BYTES + hash_bytes + 2
    for _ in range(many):
        start = at + fixed
        high, low = data[start - 2], data[start - 1]
        if high & 0x40:
            start += 2
        length = (high & 0xF) << 8 | low
        end = start + length if length < _LONG_NAME else data.find(b"\0", start)
        if not start <= end <= start + _NAME_BYTES or data[end]:
            raise _OtherHash
        names.append(data[start:end] if data[at + 26] & 0xF0 == 0x80 else b"")
        at += (end - at + 8) & ~7
    return names, at


def _read_prefixed(data: bytes, many: int, hash_bytes: int) -> tuple[list[bytes], int]:
    """Reads the `many` entries of an index of version 4. `hash_bytes`: the length of git's object ids in it.
    Returns (names, offset after the entries). Each entry stores how many bytes to drop from the end of the
    previous name, and the bytes to append."""
    names = []
    at, name, total = _HEADER, b"", 0
    for _ in range(many):
        start = at + _STAT_BYTES + hash_bytes + 2
        flags = int.from_bytes(data[start - 2 : start])
        if flags & _EXTENDED:
            start += 2
        dropped, start = _offset(data, start)
        end = data.find(b"\0", start)
        if dropped > len(name) or not start <= end <= start + _NAME_BYTES:
            raise _OtherHash
        name = name[: len(name) - dropped] + data[start:end]
        total += len(name)
        length = flags & _LONG_NAME
        if length != min(len(name), _LONG_NAME) or len(name) > _NAME_BYTES:
            raise _OtherHash
        if total > GIT_INDEX_BYTES:
            raise IndexUnreadable("its names are too long together")
        names.append(name if data[at + 26] & 0xF0 == 0x80 else b"")
        at = end + 1
    return names, at


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """Decodes a number of git's variable width at `at`. Returns (number, offset after it)."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = (value + 1) << 7 | byte & 0x7F
        if value > _NAME_BYTES:
            raise _OtherHash
    return value, at + 1


def _split(data: bytes, at: int, hash_bytes: int) -> tuple[str, bytes] | None:
    """Whether git keeps an index in two files, as its extensions say, which begin at `at`. Returns (hex id of
    the base file, bitmap of the deleted entries of the base), None for an index in one file."""
    end = len(data) - hash_bytes
    if at > end:
        raise _OtherHash
    while at + 8 <= end:
        length = int.from_bytes(data[at + 4 : at + 8])
        start, name = at + 8, data[at : at + 4]
        if start + length > end:
            raise _OtherHash
        if name == b"link":
            base = data[start : start + hash_bytes]
            return (base.hex(), data[start + hash_bytes : start + length]) if any(base) else None
        at = start + length
    if at != end:
        raise _OtherHash
    return None


def _set_bits(bitmap: bytes, below: int) -> list[int]:
    """The positions of the 1 bits in a bitmap that git compressed (EWAH). Positions from `below` on are left
    out."""
    words = min(int.from_bytes(bitmap[4:8]), (len(bitmap) - 8) // 8)
    numbers = [int.from_bytes(bitmap[8 + 8 * at : 16 + 8 * at]) for at in range(words)]
    positions: list[int] = []
    at, place = 0, 0
    while at < words and place < below:
        marker = numbers[at]
        run, literal = marker >> 1 & 0xFFFFFFFF, marker >> 33
        if marker & 1:
            positions.extend(range(place, min(place + 64 * run, below)))
        place += 64 * run
        for word in numbers[at + 1 : at + 1 + literal]:
            if word and place < below:
                positions.extend(place + bit for bit in range(64) if word >> bit & 1 and place + bit < below)
            place += 64
        at += 1 + literal
    return positions
