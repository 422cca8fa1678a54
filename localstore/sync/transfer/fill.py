"""Fills a file according to its chunk manifest. Chunks that other files of this machine contain are copied,
and the others are fetched.

Each chunk is verified and written at once to every place where it belongs. So an interrupted fill loses at
most one chunk, and the next fill keeps every chunk that is already in place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from blake3 import blake3

from localstore.core.encoding import digest as blake3_digest
from localstore.core.errors import ServerMisbehaved
from localstore.core.storage.chunks import ChunkRow
from localstore.folder.chunking import ChunkPosition
from localstore.folder.positioned import write_at
from localstore.progress import Progress, silent

OPEN_FILES = 64  # that chunks are copied from, at most


class OtherBytes(Exception):
    """The bytes of the filled file do not have the expected digest."""


class Fetch(Protocol):
    """A function that yields verified chunks (digest, bytes), each once. Some of the requested chunks may be
    missing."""

    def __call__(self, sizes: Mapping[bytes, int], /) -> Iterator[tuple[bytes, bytes]]: ...


class KnownFile(NamedTuple):
    """A file of this machine that may contain chunks. `open`: opens it and returns a descriptor for reading;
    raises OSError if the file is gone. `chunks`: called with this descriptor, returns the chunks that the
    file probably has. Each chunk is verified before it is used."""

    open: Callable[[], int]
    chunks: Callable[[int], Iterable[ChunkPosition]]


class Filled(NamedTuple):
    """Where the bytes of a filled file came from, as numbers of bytes: `fetched` from the relay, `copied`
    from files of this machine, or `kept` because they were already in place. A chunk that occurs several
    times is fetched once and copied to its other places."""

    fetched: int
    copied: int
    kept: int


def fill(
    fd: int,
    rows: Sequence[ChunkRow],
    digest: bytes,
    sources: Iterable[KnownFile],
    fetch: Fetch,
    progress: Progress = silent,
    seen: Callable[[bytes], object] = lambda data: None,
    on_present: Callable[[int], object] = lambda count: None,
) -> Filled:
    """Fill the open file `fd` with the chunks `rows`, so that its BLAKE3 is `digest`. Raises OtherBytes,
    OSError, and ServerMisbehaved if chunks are not sent.

    `sources`: files to copy chunks from, which are read only while chunks are missing. `seen`: called with
    all bytes of the file in order. `on_present`: called once, before anything is fetched, with the number of
    bytes that need not be fetched."""
    return _Filling(fd, rows, progress, seen).run(digest, sources, fetch, on_present)


class _Filling:
    def __init__(
        self, fd: int, rows: Sequence[ChunkRow], progress: Progress, seen: Callable[[bytes], object]
    ) -> None:
        self._fd, self._progress, self._seen = fd, progress, seen
        self._rows = [(bytes.fromhex(row.blake3), row.size) for row in rows]
        self._written = bytearray(len(rows))  # 1 for each chunk that is in its place
        self._places: dict[bytes, list[int]] = {}  # of the chunks that are not
        self._offsets: list[int] = []
        offset = 0
        for _, size in self._rows:
            self._offsets.append(offset)
            offset += size
        self._size = offset
        self._whole = blake3()
        self._done = 0  # chunks from the beginning that are in place and hashed
        self._fetched = self._copied = self._kept = 0

    def run(
        self,
        digest: bytes,
        sources: Iterable[KnownFile],
        fetch: Fetch,
        on_present: Callable[[int], object],
    ) -> Filled:
        self._keep_what_is_in_place()
        with _Copies(sources, self._places) as copies:
            there = (places for name, places in self._places.items() if name in copies)
            on_present(self._kept + sum(self._rows[number][1] for places in there for number in places))
            absent = {
                name: self._rows[places[0]][1] for name, places in self._places.items() if name not in copies
            }
            source = iter(fetch(absent)) if absent else iter(())
            while self._done < len(self._rows):
                number = self._done
                name, size = self._rows[number]
                data = self._in_place(number) if self._written[number] else copies.get(name)
                if data is None:
                    data = self._arrive(name, size, source, fetch)
                elif not self._written[number]:
                    self._put(name, data, fetched=False)
                self._whole.update(data)
                self._seen(data)
                self._done += 1
                self._progress("download", self._done, len(self._rows), self._offsets[number] + size)
        os.ftruncate(self._fd, self._size)
        if self._whole.digest() != digest:
            raise OtherBytes
        return Filled(self._fetched, self._copied, self._kept)

    def _keep_what_is_in_place(self) -> None:
        """Find out which chunks an interrupted fill has written already, and where the others belong."""
        there = os.fstat(self._fd).st_size
        for number, (name, size) in enumerate(self._rows):
            if self._offsets[number] < there and blake3_digest(self._in_place(number)) == name:
                self._written[number] = 1
                self._kept += size
            else:
                self._places.setdefault(name, []).append(number)

    def _in_place(self, number: int) -> bytes:
        return os.pread(self._fd, self._rows[number][1], self._offsets[number])

    def _arrive(self, name: bytes, size: int, source: Iterator[tuple[bytes, bytes]], fetch: Fetch) -> bytes:
        """The bytes of the chunk with the digest `name`. Takes fetched chunks from `source` and writes them
        to their places, until this chunk comes. If it does not come, it is fetched separately."""
        for digest, data in source:
            self._put(digest, data, fetched=True)
            if digest == name:
                return data
        for digest, data in fetch({name: size}):  # a copy of it on this machine has changed meanwhile
            self._put(digest, data, fetched=True)
            if digest == name:
                return data
        raise ServerMisbehaved("the server did not send all chunks of a file; try again")

    def _put(self, name: bytes, data: bytes, *, fetched: bool) -> None:
        """Write the chunk `data`, whose digest is `name`, to every place in the file where it belongs.
        `fetched`: whether it was fetched from the relay, so that its bytes count as such in the result."""
        for count, number in enumerate(self._places.get(name, ())):
            if self._written[number]:
                continue
            if len(data) != self._rows[number][1]:
                raise OtherBytes
            write_at(self._fd, data, self._offsets[number])
            self._written[number] = 1
            if fetched and count == 0:
                self._fetched += len(data)
            else:
                self._copied += len(data)


class _Copies:
    """Finds missing chunks in files of this machine."""

    def __init__(self, files: Iterable[KnownFile], digests: Mapping[bytes, object]) -> None:
        self._positions: dict[bytes, tuple[int, ChunkPosition]] = {}
        self._opened: list[int] = []
        for file in files if digests else ():
            if len(self._positions) == len(digests) or len(self._opened) == OPEN_FILES:
                break
            with suppress(OSError):
                fd = file.open()
                self._opened.append(fd)
                for chunk in file.chunks(fd):
                    if chunk.digest in digests:
                        self._positions.setdefault(chunk.digest, (fd, chunk))

    def __enter__(self) -> _Copies:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self._opened:
            os.close(fd)

    def __contains__(self, name: bytes) -> bool:
        return name in self._positions

    def get(self, name: bytes) -> bytes | None:
        """The bytes of the chunk with the digest `name`. None if no file has the chunk, or if the file that
        had it was changed."""
        if name not in self._positions:
            return None
        fd, position = self._positions[name]
        try:
            data = os.pread(fd, position.size, position.offset)
        except OSError:
            return None
        return data if blake3_digest(data) == name else None
