"""The object store of a working copy: every text it has seen, readable offline.

Frames (compressed blocks of texts) are stored as they were received, in append-only files `objects/<n>.pack`.
Their index is in the database. A crash may leave a frame without an index row, which is never used. Files
that are not text are not stored, because they are on the disk, or the relay has them."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from localstore.core.encoding import digest as blake3_digest
from localstore.core.errors import Invalid
from localstore.core.model import limits
from localstore.core.storage.frame import FetchedBytes, read_object
from localstore.core.storage.pack import Frame, write_packs
from localstore.record.database import Database
from localstore.record.object_index import TextPlace

PACK_FILE_BYTES = 256 * limits.MIB
CACHE_BYTES = 32 * limits.MIB  # of texts in memory
LOADED_BYTES = 8 * limits.MIB  # of texts read ahead


class Objects:
    """The texts of one working copy, by their BLAKE3."""

    def __init__(self, folder: Path, db: Database) -> None:
        self._folder = folder
        self._db = db
        self._texts: OrderedDict[bytes, bytes] = OrderedDict()
        self._held = 0
        self._indexed: set[bytes] = set()  # by this process
        self._open: dict[int, int] = {}  # pack file → its descriptor
        folder.mkdir(exist_ok=True, mode=0o700)

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def renew(self) -> None:
        """Forget the cached results of look-ups in the index. Cached texts stay, because they cannot
        change."""
        self._indexed.clear()

    def get(self, digest: bytes) -> bytes | None:
        """The text with this BLAKE3. None if it is not stored or is damaged."""
        held = self._texts.get(digest)
        if held is not None:
            self._texts.move_to_end(digest)
            return held
        place = self._db.objects.places([digest])
        data = dict(self._cut(place)).get(digest) if place else None
        if data is not None:
            self.cache(digest, data)
        return data

    def load(self, digests: Iterable[bytes]) -> None:
        """Read texts into the cache, up to LOADED_BYTES, with one read per frame (compressed block of texts).
        Damaged texts are left out."""
        places = self._db.objects.places(digest for digest in digests if digest not in self._texts)
        frames: dict[tuple[int, int], dict[bytes, TextPlace]] = {}
        room = LOADED_BYTES
        for digest, place in places.items():
            room -= place.size
            if room >= 0:
                frames.setdefault((place.pack, place.offset), {})[digest] = place
        for group in frames.values():
            for digest, data in self._cut(group):
                self.cache(digest, data)

    def _cut(self, group: Mapping[bytes, TextPlace]) -> Iterator[tuple[bytes, bytes]]:
        """Yields (digest, text) for the texts of `group`, which are all in the same frame (compressed block
        of texts). Damaged texts are left out."""
        first = next(iter(group.values()))
        end = max(place.start + place.size for place in group.values())
        try:
            fetch = partial(os.pread, self._open_pack(first.pack))
            stored = FetchedBytes(fetch, first.offset, first.stored)
            raw = read_object(stored, first.codec, first.raw, 0, end)
        except (OSError, Invalid):
            return
        for digest, place in group.items():
            data = bytes(raw[place.start : place.start + place.size])
            if blake3_digest(data) == digest:
                yield digest, data

    def get_cached(self, digest: bytes) -> bytes | None:
        """The text with this BLAKE3 if it is in the cache; else None."""
        return self._texts.get(digest)

    def cache(self, digest: bytes, data: bytes) -> None:
        """Keep a text in memory, because a command often reads it again. If the cache exceeds CACHE_BYTES,
        the oldest texts are dropped."""
        if digest in self._texts:
            return
        self._texts[digest] = data
        self._held += len(data)
        while self._held > CACHE_BYTES:
            self._held -= len(self._texts.popitem(last=False)[1])

    def has(self, digest: bytes) -> bool:
        """Whether the text with this BLAKE3 is stored."""
        return digest in self._indexed or bool(self._db.objects.places([digest]))

    def add_frames(self, frames: Iterable[Frame]) -> None:
        """Store frames unchanged. They are written durably first and indexed afterwards, in the caller's
        transaction or in a new one."""
        self._index(list(self._append(frames)))

    def add(self, texts: Iterable[tuple[bytes, bytes]], durable: bool = True) -> None:
        """Store texts, given as (digest, bytes). `durable`: wait until they are on the disk. Texts that the
        relay has too need not be durable: if a power cut damages one, it is fetched again."""
        offered = {digest: data for digest, data in texts if digest not in self._indexed}
        places = self._db.objects.places(offered)
        fresh = [(digest, data, True) for digest, data in offered.items() if digest not in places]
        if fresh:
            frames = (frame for pack in write_packs(fresh, quick=True) for frame in pack.frames)
            self._index(list(self._append(frames, durable)))

    def _append(self, frames: Iterable[Frame], durable: bool = True) -> Iterator[tuple[bytes, TextPlace]]:
        number = self._current()
        with self._path(number).open("ab") as file:
            for frame in frames:
                offset = file.tell()
                file.write(frame.stored)
                start, row = 0, frame.row
                for entry in row.objects:
                    place = (number, offset, row.stored_len, row.codec, row.raw_len, start, entry.size)
                    yield entry.digest, TextPlace._make(place)
                    start += entry.size
            file.flush()
            if durable:
                os.fdatasync(file.fileno())

    def _index(self, places: list[tuple[bytes, TextPlace]]) -> None:
        with self._db.step():
            self._db.objects.put(places)
        self._indexed.update(digest for digest, _ in places)

    def _current(self) -> int:
        """The number of the pack file to append to."""
        packs = (path for path in self._folder.iterdir() if path.suffix == ".pack")
        numbers = [int(path.stem) for path in packs if path.stem.isdigit()]
        newest = max(numbers, default=1)
        full = newest in numbers and self._path(newest).stat().st_size >= PACK_FILE_BYTES
        return newest + 1 if full else newest

    def _open_pack(self, number: int) -> int:
        if number not in self._open:
            self._open[number] = os.open(self._path(number), os.O_RDONLY | os.O_CLOEXEC)
        return self._open[number]

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.pack"
