"""Stores packs as objects of an S3-compatible store, through obstore.

Frames are collected in memory until a write must be durable or PART_BYTES are reached. They then become one
object, `packs/NAME`. Writes that arrive while an object is being stored share the next object, so that a push
takes few requests.

An object is never written twice. In the mode `native` the store itself refuses a second write
(If-None-Match). In the mode `emulated` only the random name makes one improbable. The object `owner` names
the node that owns the bucket. Two nodes must not share one, because the collector deletes packs that its
database does not know.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import S3Store

from localstore.core.errors import Unavailable
from localstore.core.model.limits import MIB
from localstore.core.storage.frame import Stored
from relay.base.environment import StartRefused
from relay.base.flags import CONDITIONAL_PUT, ConditionalPut
from relay.base.ids import new_id
from relay.config import S3
from relay.objects.backend import PackGone, PackInfo, PackPosition, Run, use_each

R = TypeVar("R")
PART_BYTES = 16 * MIB
GATHER_SECONDS = 0.005
IN_FLIGHT = 4  # objects being stored at once; these and the one being filled bound the memory
PREFIX, OWNER = "packs/", "owner"
ANSWER_SECONDS, SLOWEST_RATE = 15.0, MIB // 4  # for an answer of the store; bytes that add a second
# For SILENT_SECONDS after the store was silent, an answer has only so long, beside the seconds for its bytes,
# so that not every request waits in full
SILENT_ANSWER_SECONDS, SILENT_SECONDS = 3.0, 30.0
LOG = logging.getLogger(__name__)
_CONNECT, _REQUEST = timedelta(seconds=5), timedelta(seconds=ANSWER_SECONDS + PART_BYTES / SLOWEST_RATE)
_RETRIES = {"max_retries": 3, "retry_timeout": timedelta(seconds=60)}
_AT_START = {"max_retries": 2, "retry_timeout": timedelta(seconds=10)}  # one lost connection refuses no start


class _Part:
    """Frames that will be stored together, as one object of the S3 store. `done`: completes when this object
    is stored or has failed."""

    def __init__(self) -> None:
        self.name = new_id()
        self.pieces: list[bytes] = []
        self.size = 0
        self.done: asyncio.Task[None] | None = None

    def add(self, pieces: Sequence[bytes]) -> list[PackPosition]:
        places = []
        for piece in pieces:
            places.append(PackPosition(self.name, self.size))
            self.pieces.append(piece or b"\0")  # also empty frames need an offset of their own
            self.size += len(self.pieces[-1])
        return places


class S3Packs:
    """The packs in one bucket; implements `relay.objects.backend.Packs`."""

    def __init__(self, where: S3, put: ConditionalPut) -> None:
        self._where = where
        self._create = put == "native"
        self._store = _connect(where, _RETRIES)
        self._silent_until = 0.0  # of the loop's clock
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._filling = _Part()
        self._unsettled: dict[str, _Part] = {}  # parts that hold frames whose durability nobody asked for yet

    async def open(self, owner: str) -> None:
        """Open the bucket. `owner`: the name of this node. Raises StartRefused if the bucket does not answer
        or belongs to another node. In the mode `native`, StartRefused is also raised if the store allows to
        write an object twice."""
        try:
            await self._require_owner(owner)
            if self._create:
                await self._require_conditional_put()
        except (BaseError, OSError) as error:
            raise StartRefused(
                f"the object store {self._where.endpoint} does not serve bucket {self._where.bucket}: "
                f"{_first_line(error)}"
            ) from None

    async def append(self, pieces: Sequence[bytes], sync: bool = True) -> list[PackPosition]:
        places: list[PackPosition] = []
        for part in _group_pieces(pieces):
            while self._filling.size and self._filling.size + sum(map(len, part)) > PART_BYTES:
                await self._send()
            places += self._filling.add(part)
            self._unsettled[self._filling.name] = self._filling
        if sync:
            await self.sync(places)
        return places

    async def sync(self, places: Sequence[PackPosition]) -> None:
        for name in dict.fromkeys(place.pack for place in places):
            part = self._unsettled.get(name)
            if part is None:
                continue  # stored, and another asked for it before
            if part is self._filling:
                await asyncio.sleep(GATHER_SECONDS)
            if part is self._filling:
                await self._send()
            assert part.done is not None  # noqa: S101  # it was sent
            await asyncio.shield(part.done)

    async def read(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        starts = [offset for offset, _ in ranges]
        lengths = [length for _, length in ranges]
        try:
            pieces = await self._ask(
                obstore.get_ranges_async(
                    self._store, PREFIX + name, starts=starts, lengths=[max(length, 1) for length in lengths]
                ),
                _span_of(ranges),
            )
        except (NotFoundError, FileNotFoundError):
            raise PackGone(name, "is gone") from None
        except (BaseError, OSError) as error:
            raise _to_unavailable(error) from None
        data = [bytes(piece)[:length] for piece, length in zip(pieces, lengths, strict=True)]
        if [len(piece) for piece in data] != lengths:
            raise PackGone(name, "ends before a frame that the index speaks of")
        return data

    async def read_with(
        self, name: str, ranges: Sequence[tuple[int, int]], use: Callable[[Sequence[Stored]], R], run: Run
    ) -> R:
        """Read the ranges and return the result of `use`. All ranges are read in one request, because more
        bytes cost less here than another request."""
        result: R = await run(use, await self.read(name, ranges))
        return result

    async def show(
        self, name: str, ranges: Sequence[tuple[int, int]], use: Callable[[memoryview], object]
    ) -> None:
        await asyncio.to_thread(use_each, use, await self.read(name, ranges))

    async def list_packs(self) -> AsyncIterator[PackInfo]:
        try:
            pages = obstore.list(self._store, prefix=PREFIX)
            while (page := await self._ask(anext(pages, None))) is not None:
                for entry in page:
                    changed = int(entry["last_modified"].timestamp() * 1000)
                    yield PackInfo(entry["path"].removeprefix(PREFIX), entry["size"], changed)
        except (BaseError, OSError) as error:
            raise _to_unavailable(error) from None

    async def delete(self, names: Collection[str]) -> None:
        if not names:
            return
        try:
            await self._ask(obstore.delete_async(self._store, [PREFIX + name for name in names]))
        except (NotFoundError, FileNotFoundError):
            return
        except (BaseError, OSError) as error:
            raise _to_unavailable(error) from None

    async def adopt(self, name: str, file: Path) -> None:
        try:
            size = (await asyncio.to_thread(file.stat)).st_size
            await self._ask(obstore.put_async(self._store, PREFIX + name, file), size)
        except (BaseError, OSError) as error:
            raise _to_unavailable(error) from None

    async def check(self) -> None:
        try:
            await self._ask(obstore.head_async(self._store, OWNER))
        except (BaseError, OSError) as error:
            raise _to_unavailable(error) from None

    async def close(self) -> None:
        waiting = [part.done for part in self._unsettled.values() if part.done is not None]
        await asyncio.gather(*waiting, return_exceptions=True)

    async def _send(self) -> None:
        """Start storing the collected frames as one object of the S3 store. Waits first while too many
        objects are being stored."""
        part, self._filling = self._filling, _Part()
        part.done = asyncio.create_task(self._store_part(part))
        part.done.add_done_callback(_consume_error)
        if self._slots.locked():
            async with self._slots:
                return

    async def _store_part(self, part: _Part) -> None:
        async with self._slots:
            try:
                await self._put(part.name, b"".join(part.pieces))
            finally:
                part.pieces.clear()
        del self._unsettled[part.name]  # a part that failed stays, so that `sync` of it fails as well

    async def _put(self, name: str, data: bytes) -> None:
        mode: Any = "create" if self._create else "overwrite"
        try:
            put = obstore.put_async(self._store, PREFIX + name, data, mode=mode, use_multipart=False)
            await self._ask(put, len(data))
        except AlreadyExistsError:
            await self._require_ours(name, len(data))
        except (BaseError, OSError) as error:
            raise _to_unavailable(error) from None

    async def _ask(self, call: Awaitable[R], size: int = 0) -> R:
        """The store's answer to a call that moves `size` bytes. Raises the store's errors, and TimeoutError
        if it takes longer than ANSWER_SECONDS and a second for every SLOWEST_RATE bytes."""
        clock = asyncio.get_running_loop().time
        seconds = SILENT_ANSWER_SECONDS if clock() < self._silent_until else ANSWER_SECONDS
        try:
            async with asyncio.timeout(seconds + size / SLOWEST_RATE):
                answer = await call
        except TimeoutError:
            if clock() >= self._silent_until:
                self._silent_until = clock() + SILENT_SECONDS
            raise
        except (NotFoundError, FileNotFoundError, AlreadyExistsError):  # answers, too
            self._silent_until = 0.0
            raise
        self._silent_until = 0.0
        return answer

    async def _require_ours(self, name: str, size: int) -> None:
        """Raise Unavailable unless the existing object `name` has `size` bytes. If it has, an earlier attempt
        of this request stored it, and only the answer was lost."""
        try:
            stat = await self._ask(obstore.head_async(self._store, PREFIX + name))
        except (BaseError, OSError) as error:
            raise _to_unavailable(error) from None
        if stat["size"] != size:
            raise Unavailable("the object store holds other bytes under a new name; nothing was stored")

    async def _require_owner(self, owner: str) -> None:
        store = _connect(self._where, _AT_START)
        try:
            answer = await self._ask(obstore.get_async(store, OWNER))
            holder = bytes(await answer.bytes_async()).decode("utf-8", "replace")
        except (NotFoundError, FileNotFoundError):
            await self._ask(obstore.put_async(store, OWNER, owner.encode(), use_multipart=False))
            return
        if holder != owner:
            raise StartRefused(
                f"bucket {self._where.bucket} belongs to the node {holder[:200]!r}, this one is {owner!r}; "
                f"use another bucket, or delete its object `{OWNER}` if the node has moved"
            )

    async def _require_conditional_put(self) -> None:
        """Raise an error unless the store refuses to write an existing object. Writes the same name twice,
        without retries, to find out."""
        once, path = _connect(self._where, {"max_retries": 0}), f"probe/{new_id()}"
        refused = False
        try:
            await self._ask(obstore.put_async(once, path, b"1", mode="create", use_multipart=False))
            await self._ask(obstore.put_async(once, path, b"2", mode="create", use_multipart=False))
        except AlreadyExistsError:
            refused = True
        except (BaseError, OSError) as error:
            if "501" not in str(error) and "NotImplemented" not in str(error):
                raise
        with contextlib.suppress(BaseError, OSError):
            await self._ask(obstore.delete_async(once, path))
        if not refused:
            raise StartRefused(
                f"the object store {self._where.endpoint} does not refuse to write a name twice; "
                f"set {CONDITIONAL_PUT}=emulated"
            )


def _connect(where: S3, retries: dict[str, Any]) -> S3Store:
    options: dict[str, Any] = {
        "access_key_id": where.access_key,
        "secret_access_key": where.secret_key,
        "skip_signature": None if where.access_key else True,
    }
    return S3Store(
        where.bucket,
        endpoint=where.endpoint,
        region=where.region,
        virtual_hosted_style_request=False,
        client_options={
            "connect_timeout": _CONNECT,
            "timeout": _REQUEST,
            "allow_http": where.endpoint.startswith("http://"),
        },
        retry_config=retries,  # type: ignore[arg-type]
        **{name: value for name, value in options.items() if value is not None},
    )


def _span_of(ranges: Sequence[tuple[int, int]]) -> int:
    """How many bytes lie between the beginning of the first range and the end of the last one. At most these
    are moved, because the client of the store also reads short gaps between ranges."""
    if not ranges:
        return 0
    return max(offset + length for offset, length in ranges) - min(offset for offset, _ in ranges)


def _group_pieces(pieces: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Yields the pieces in groups of at most PART_BYTES; a larger piece is a group of its own."""
    batch: list[bytes] = []
    size = 0
    for piece in pieces:
        if batch and size + len(piece) > PART_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(piece)
        size += len(piece)
    if batch:
        yield batch


def _consume_error(task: asyncio.Task[None]) -> None:
    """Mark the error of a task as seen, so that asyncio does not report it. Tasks that wait for this one
    still get the error."""
    if not task.cancelled():
        task.exception()


def _to_unavailable(error: Exception) -> Unavailable:
    """The error that the client gets. The details are only in the log."""
    LOG.warning("object store: %s", _first_line(error))
    return Unavailable("the object store of this server does not answer; try again later")


def _first_line(error: Exception) -> str:
    """The first line of the library's error, without its debug output."""
    if isinstance(error, TimeoutError):
        return "it accepts requests and does not answer them in time"
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
