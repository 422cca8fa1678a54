"""Pack files. They are only appended to, never rewritten, and their names are never reused.

One thread writes. Requests that arrive during a write and its fdatasync are written and synced together
afterwards (group commit). So a burst of small writes costs two syncs instead of one for each write. Each
process starts its own pack file. So a crash can leave an incomplete end only in a file to which nothing is
appended any more, and no row of the index refers to this end. After a failed write or sync the file is
abandoned, because its content is unknown. A file without writes for an hour (IDLE) is closed for good. So any
process may delete a file whose last write is longer ago.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from localstore.core.errors import Unavailable
from localstore.core.model.limits import GIB, KIB, MIB
from localstore.core.storage.frame import FetchedBytes, Stored
from relay.base.clock import now_ms
from relay.base.folders import sync_folder
from relay.base.ids import new_id
from relay.base.threads import run_on_thread
from relay.objects.backend import PackGone, PackInfo, PackPosition, Run

R = TypeVar("R")
SUFFIX = ".pack"
FOLDER = "objects"
ROLL_BYTES = 1 * GIB
IDLE = 3600_000  # milliseconds
INLINE_BYTES = 64 * KIB  # reads up to here are done on the event loop
_SHOWN = 1 * MIB  # bytes passed in one call: they stay in the processor's cache
_SHORT = "a pack ends {} bytes before a frame that the index speaks of"
_PIECES = 512  # buffers in one system call; the systems we know allow 1024


@dataclass(slots=True)
class _Request:
    pieces: Sequence[bytes]
    sync: bool
    after: Sequence[PackPosition]  # bytes written before that must be durable now
    done: asyncio.Future[list[PackPosition]]


class _Open:
    """The pack file that is being written."""

    def __init__(self, folder: Path) -> None:
        self.name = new_id()
        self.size = self.synced = 0
        self.written_at = now_ms()
        self.fd = os.open(folder / (self.name + SUFFIX), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        sync_folder(folder)

    def write(self, pieces: Sequence[bytes]) -> list[PackPosition]:
        self.written_at = now_ms()
        places = []
        filled = [piece or b"\0" for piece in pieces]  # also empty frames need an offset of their own
        for piece in filled:
            places.append(PackPosition(self.name, self.size))
            self.size += len(piece)
        for start in range(0, len(filled), _PIECES):
            _write_all(self.fd, filled[start : start + _PIECES])
        return places

    def sync(self) -> None:
        if self.synced < self.size:
            os.fdatasync(self.fd)
            self.synced = self.size


class PackFiles:
    """A folder of packs; implements `relay.objects.backend.Packs`. `roll_bytes`: size at which a pack file is
    closed and the next one started."""

    def __init__(self, folder: Path, roll_bytes: int = ROLL_BYTES) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder
        self._roll_bytes = roll_bytes
        self._open: _Open | None = None
        self._abandoned: set[str] = set()
        self._waiting: list[_Request] = []
        self._drain: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="packs")

    async def append(self, pieces: Sequence[bytes], sync: bool = True) -> list[PackPosition]:
        """Append pieces to a pack, and return their positions. With `sync`, the pieces are durable when this
        returns; without, they become durable by a call of the method `sync`. Raises Unavailable if writing
        fails."""
        return await self._ask(pieces, sync, ())

    async def sync(self, places: Sequence[PackPosition]) -> None:
        """Make the bytes at these positions durable."""
        if places:
            await self._ask((), True, places)

    async def read(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        with _reading(name):
            if sum(length for _, length in ranges) <= INLINE_BYTES:
                return read_ranges(self.folder, name, ranges)
            return await asyncio.to_thread(read_ranges, self.folder, name, ranges)

    async def read_with(
        self, name: str, ranges: Sequence[tuple[int, int]], use: Callable[[Sequence[Stored]], R], run: Run
    ) -> R:
        with _reading(name):
            result: R = await run(_use_ranges, self.folder, name, ranges, use)
            return result

    async def show(
        self, name: str, ranges: Sequence[tuple[int, int]], use: Callable[[memoryview], object]
    ) -> None:
        with _reading(name):
            await asyncio.to_thread(_show_ranges, self.folder, name, ranges, use)

    async def list_packs(self) -> AsyncIterator[PackInfo]:
        for info in await asyncio.to_thread(_list_packs, self.folder):
            yield info

    async def delete(self, names: Collection[str]) -> None:
        try:
            await asyncio.to_thread(_delete, self.folder, list(names))
        except OSError as error:
            raise Unavailable(f"a pack cannot be deleted: {error.strerror or error}") from None

    async def adopt(self, name: str, file: Path) -> None:
        try:
            await run_on_thread(_copy, file, self.folder / (name + SUFFIX))
        except OSError as error:
            raise Unavailable(f"a pack cannot be written: {error.strerror or error}") from None

    async def check(self) -> None:
        if not self.folder.is_dir():
            raise Unavailable("the folder of the object store is gone")

    async def close(self) -> None:
        while self._drain is not None:
            await self._drain
        await asyncio.get_running_loop().run_in_executor(self._thread, self._roll)
        self._thread.shutdown()

    async def _ask(
        self, pieces: Sequence[bytes], sync: bool, after: Sequence[PackPosition]
    ) -> list[PackPosition]:
        done: asyncio.Future[list[PackPosition]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Request(pieces, sync, after, done))
        if self._drain is None:
            self._drain = asyncio.create_task(self._drain_waiting())
        return await done

    async def _drain_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                answers = await loop.run_in_executor(self._thread, self._carry_out, batch)
                for request, answer in zip(batch, answers, strict=True):
                    if request.done.done():
                        continue  # the request was cancelled; its bytes stay without an index row
                    if isinstance(answer, Unavailable):
                        request.done.set_exception(answer)
                    else:
                        request.done.set_result(answer)
        finally:
            self._drain = None

    def _carry_out(self, batch: list[_Request]) -> list[list[PackPosition] | Unavailable]:
        """Write the pieces of all requests, then sync once. Returns, for each request, the positions of its
        pieces or an error. If writing to a pack file fails, all requests that wrote to it fail."""
        written: list[list[PackPosition] | Unavailable] = []
        for request in batch:
            try:
                written.append(self._write(request.pieces) if request.pieces else [])
            except OSError as error:
                written.append(self._abandon(error))
        if self._open is not None and any(request.sync for request in batch):
            try:
                self._open.sync()
            except OSError as error:
                self._abandon(error)
        return [self._judge(request, answer) for request, answer in zip(batch, written, strict=True)]

    def _judge(
        self, request: _Request, answer: list[PackPosition] | Unavailable
    ) -> list[PackPosition] | Unavailable:
        if isinstance(answer, Unavailable):
            return answer
        if any(place.pack in self._abandoned for place in (*answer, *request.after)):
            return Unavailable("the disk of this server failed; nothing was stored, try again")
        return answer

    def _write(self, pieces: Sequence[bytes]) -> list[PackPosition]:
        open_ = self._open
        if open_ and (open_.size >= self._roll_bytes or now_ms() - open_.written_at > IDLE):
            self._roll()
        if self._open is None:
            self._open = _Open(self.folder)
        return self._open.write(pieces)

    def _roll(self) -> None:
        """Close the pack file that is being written. Bytes that were written without a sync become durable
        here."""
        if self._open is None:
            return
        self._open.sync()
        os.close(self._open.fd)
        self._open = None

    def _abandon(self, error: OSError) -> Unavailable:
        if self._open is not None:
            self._abandoned.add(self._open.name)
            os.close(self._open.fd)
            self._open = None
        return Unavailable(f"the disk of this server refused a write ({error.strerror}); nothing was stored")


@contextlib.contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise PackGone(name, "is gone") from None
    except OSError as error:
        raise Unavailable(f"stored bytes cannot be read: {error.strerror or error}") from None


def read_ranges(folder: Path, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    """The bytes at each (offset, length) of a pack. Raises OSError if the pack is gone or ends before the
    range does."""
    fd = os.open(folder / (name + SUFFIX), os.O_RDONLY)
    try:
        return [_read_all(fd, offset, length) for offset, length in ranges]
    finally:
        os.close(fd)


def _use_ranges(
    folder: Path, name: str, ranges: Sequence[tuple[int, int]], use: Callable[[Sequence[Stored]], R]
) -> R:
    """Check that all ranges exist, then call `use` and return its result. The check comes first because `use`
    may read only a part of the ranges."""
    fd = os.open(folder / (name + SUFFIX), os.O_RDONLY)
    try:
        size = os.fstat(fd).st_size
        for offset, length in ranges:
            if offset + length > size:
                raise OSError(_SHORT.format(min(length, offset + length - size)))
        return use([FetchedBytes(partial(os.pread, fd), offset, length) for offset, length in ranges])
    finally:
        os.close(fd)


class _Local(threading.local):
    """Has a buffer for each thread. To allocate one for every piece would cost more than hashing the
    piece."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(_SHOWN))


_local = _Local()


def _show_ranges(
    folder: Path, name: str, ranges: Sequence[tuple[int, int]], use: Callable[[memoryview], object]
) -> None:
    fd = os.open(folder / (name + SUFFIX), os.O_RDONLY)
    try:
        for offset, length in ranges:
            end = offset + length
            while offset < end:
                count = os.preadv(fd, [_local.buffer[: end - offset]], offset)
                if not count:
                    raise OSError(_SHORT.format(end - offset))
                use(_local.buffer[:count])
                offset += count
    finally:
        os.close(fd)


def _read_all(fd: int, offset: int, length: int) -> bytes:
    data = os.pread(fd, length, offset)
    if len(data) == length:
        return data
    parts = [data]
    while data and (length := length - len(data)):
        offset += len(data)
        data = os.pread(fd, length, offset)
        parts.append(data)
    if length:
        raise OSError(_SHORT.format(length))
    return b"".join(parts)


def _write_all(fd: int, pieces: Sequence[bytes]) -> None:
    rest = [memoryview(piece) for piece in pieces]
    while rest:
        written = os.writev(fd, rest)
        while rest and written >= len(rest[0]):
            written -= len(rest.pop(0))
        if rest:
            rest[0] = rest[0][written:]


def _list_packs(folder: Path) -> list[PackInfo]:
    infos = []
    for path in folder.glob(f"*{SUFFIX}"):
        with contextlib.suppress(FileNotFoundError):
            stat = path.stat()
            infos.append(PackInfo(path.stem, stat.st_size, stat.st_mtime_ns // 1_000_000))
    return infos


def _delete(folder: Path, names: Collection[str]) -> None:
    for name in names:
        (folder / (name + SUFFIX)).unlink(missing_ok=True)


def _copy(source: Path, to: Path) -> None:
    shutil.copyfile(source, to)
    with to.open("r+b") as file:
        os.fchmod(file.fileno(), 0o600)
        os.fsync(file.fileno())
    sync_folder(to.parent)
