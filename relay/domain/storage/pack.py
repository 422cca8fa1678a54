"""Rules of packs: which objects a repository has, and how many objects are uploaded and downloaded at
once.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager

import msgspec

from localstore.core.encoding import DIGEST_SIZE
from localstore.core.errors import BadRequest, Invalid, NotFound, TooLarge
from localstore.core.model.limits import FRAME_SHARED_MAX, HAVE_DIGESTS, MIB
from localstore.core.model.payload import HaveAnswer, PackStored
from localstore.core.model.seal import PayloadMissing
from localstore.core.storage.file_kind import kind_of
from localstore.core.storage.frame import ZSTD
from localstore.core.storage.pack import Frame, FrameRow, PackReader
from relay.base.threads import run_in_pool
from relay.caller import View
from relay.capacity import quota
from relay.domain.storage import chunked
from relay.http.buffers import BEGUN_PATIENCE
from relay.http.routing import Upload
from relay.objects.export import Export, export
from relay.objects.store import FrameAt

# Raises unless the caller may read all of these digests: `history.proof.require_named` of a seal.
RequireNamed = Callable[[Collection[bytes]], Awaitable[None]]
LONG_LIST = 2000
OBJECTS_AT_ONCE = 1000  # that become reachable in one transaction, in about 10 ms
STEP = 4 * MIB  # bytes verified at once, off the event loop
# In memory: of an object that a table names, of the place of one that is asked for, of a digest asked about.
ROW_BYTES, PLACE_BYTES, DIGEST_BYTES = 300, 600, 200


async def have(view: View, digests: Sequence[bytes]) -> HaveAnswer:
    """Find which of `digests` the repository lacks, as objects and as large files. Objects that it has are
    protected from the collector for another day."""
    require_plaintext(view)
    await view.lease.wait(len(digests) * DIGEST_BYTES)
    async with _wait_turn(view, digests), view.write() as tx:
        missing = await view.node.objects.find_missing(tx, view.repo.id, digests)
        await view.node.objects.touch(tx, [digest for digest in digests if digest not in missing])
        if missing and await chunked.any_held(tx, view.repo.id):
            files = await chunked.find_sizes(tx, view.repo.id, missing)
            await chunked.touch(tx, view.repo.id, files)
            missing -= files.keys()
    return HaveAnswer(missing=[index for index, digest in enumerate(digests) if digest in missing])


async def store(view: View, upload: Upload) -> PackStored:
    """Store every object of a pack, or none

    The objects become reachable only if the whole pack is valid and matches the signature of the request.
    """
    require_plaintext(view)
    if upload.length is None:
        raise BadRequest("a pack is sent with a Content-Length")
    intake = _Intake(view)
    async for step in split_steps(upload.chunks()):
        await intake.append(step, upload)
    intake.reader.close()
    await upload.finish()
    await intake.index()
    return PackStored(objects=len(intake.digests), stored_bytes=intake.stored_bytes)


async def fetch(view: View, digests: Sequence[bytes], require_named: RequireNamed) -> Export:
    """Make a pack with as many of these objects, in order, as fit. Raises PayloadMissing if the repository
    lacks one.

    Directories of trees are never included, because they name files that the caller may not see.
    `require_named`: a function that raises an error if the caller has hidden paths and may not see one of the
    objects.
    """
    require_plaintext(view)
    held = await view.lease.wait(len(digests) * PLACE_BYTES)
    async with _wait_turn(view, digests):
        await require_named(digests)
        distinct = list(dict.fromkeys(digests))
        located = await view.node.objects.locate(distinct, view.repo.id)
        missing = [digest for digest in distinct if digest not in located or located[digest].directory]
        if missing:
            raise PayloadMissing(
                f"{view.repo.full_name} holds no object {missing[0].hex()[:12]}",
                missing=[digest.hex() for digest in missing[:100]],
            )
        pack = await export(view.node.objects, [located[digest] for digest in distinct], view.lease)
    view.lease.give_back(held)
    return pack


def _wait_turn(view: View, digests: Sequence[bytes]) -> AbstractAsyncContextManager[None]:
    """A context in which requests with a long list of digests run one at a time. Requests with a short list
    do not wait."""
    return view.node.lists.of(len(digests)) if len(digests) > LONG_LIST else contextlib.nullcontext()


async def read_digests(upload: Upload) -> list[bytes]:
    """Read the digests in a body, which has 32 bytes for each. There may be at most HAVE_DIGESTS."""
    body = await upload.whole()
    await upload.finish()
    if len(body) % DIGEST_SIZE or not body:
        raise Invalid(f"the body is 1 to {HAVE_DIGESTS} digests of {DIGEST_SIZE} bytes, back to back")
    return [body[start : start + DIGEST_SIZE] for start in range(0, len(body), DIGEST_SIZE)]


def require_plaintext(view: View) -> None:
    """Raise NotFound for an end-to-end encrypted repository, because there the relay has no content that a
    client could name by its digest."""
    if view.repo.class_ == "private_e2ee":
        raise NotFound


class _Intake:
    """A pack while it is uploaded. Its frames are verified and written as they arrive."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._store = view.node.objects
        self.reader = PackReader()
        self.digests: list[bytes] = []
        self.stored_bytes = 0
        self._placed: list[FrameAt] = []
        self._promised = False
        self._held = 0  # bytes of the lease

    async def append(self, step: Sequence[bytes], upload: Upload) -> None:
        self._view.node.reserve.require()
        await self._reserve_memory(sum(map(len, step)))
        frames, texts = await run_in_pool(self._verify_frames, step)
        self._view.node.lanes.texts.add(texts)
        if not self._promised and self.reader.toc is not None:
            await self._check_table(self.reader.toc)
            upload.promise(msgspec.msgpack.encode(self.reader.toc))  # canonical: the bytes that arrived
            self._promised = True
        for frame in frames:
            self.digests += [row.digest for row in frame.row.objects]
            self.stored_bytes += frame.row.stored_len
        fresh = await self._unknown_frames(frames)
        self._placed += await self._store.append(fresh, sync=False)

    async def _reserve_memory(self, arrived: int) -> None:
        """Reserve memory for the part of a frame that has arrived so far, and for the table of contents.
        `arrived`: bytes that have just arrived."""
        needed = arrived + self.reader.waiting
        if needed > self._held:
            self._held += await self._view.lease.wait(needed - self._held, BEGUN_PATIENCE)

    async def _check_table(self, table: Sequence[FrameRow]) -> None:
        """Raise TooLarge or QuotaExceeded if the pack cannot be accepted. This is known from its table of
        contents, before anything is written."""
        for row in table:
            if len(row.objects) > 1 and row.raw_len > FRAME_SHARED_MAX:
                raise TooLarge(
                    f"a frame that several objects share unpacks to at most {FRAME_SHARED_MAX} bytes, "
                    f"this one to {row.raw_len}; a larger object has a frame of its own"
                )
        sizes = [(each.digest, each.size) for row in table for each in row.objects]
        self._held += await self._view.lease.wait(len(sizes) * ROW_BYTES, BEGUN_PATIENCE)
        async with self._view.read() as tx:
            await quota.require(tx, self._view.repo.id, sizes, self._view.node.config.quota)

    async def index(self) -> None:
        """Make the pack durable, and then its objects reachable. This is done for some objects at a time, so
        that other writers need not wait for a large pack. Everything was verified before."""
        await self._store.sync(self._placed)
        for placed, digests in self._portions():
            async with self._view.write() as tx:
                await self._store.admit(tx, placed, self._view.repo.id, digests)

    def _portions(self) -> Iterator[tuple[list[FrameAt], list[bytes]]]:
        """Split the pack into portions to record, at least one. Yields (frames, digests): new frames with the
        digests of their objects, then digests of objects that the repository has already."""
        placed: list[FrameAt] = []
        digests: list[bytes] = []
        new: set[bytes] = set()
        for frame in self._placed:
            placed.append(frame)
            digests += [row.digest for row in frame.row.objects]
            if len(digests) >= OBJECTS_AT_ONCE:
                yield placed, digests
                new.update(digests)
                placed, digests = [], []
        new.update(digests)
        rest = [digest for digest in self.digests if digest not in new]
        room = max(OBJECTS_AT_ONCE - len(digests), 0)
        if placed or not new or rest[:room]:
            yield placed, digests + rest[:room]
        for start in range(room, len(rest), OBJECTS_AT_ONCE):
            yield [], rest[start : start + OBJECTS_AT_ONCE]

    async def _unknown_frames(self, frames: list[Frame]) -> list[Frame]:
        """Select the frames with an object that this repository does not hold yet. Objects of other
        repositories count as unknown too, because otherwise the time that the upload takes would reveal what
        other repositories have (see `ObjectStore.place`)."""
        digests = [row.digest for frame in frames for row in frame.row.objects]
        async with self._view.read() as tx:
            missing = await self._store.find_missing(tx, self._view.repo.id, digests)
        return [frame for frame in frames if any(row.digest in missing for row in frame.row.objects)]

    def _verify_frames(self, step: Sequence[bytes]) -> tuple[list[Frame], list[bytes]]:
        """Verify the frames that are complete with the bytes in `step`. Returns (frames, digests of their
        text objects). Which objects are text is remembered for later live updates. Objects that cannot be
        compressed do not count as text."""
        frames = [frame for part in step for frame in self.reader.feed(part)]
        texts = []
        for frame in frames:
            compressed = frame.row.codec == ZSTD
            texts += [name for name, data in frame.objects() if compressed and kind_of(data) == "text"]
        return frames, texts


async def split_steps(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Yields the chunks in lists, each with STEP bytes or a little more."""
    waiting: list[bytes] = []
    size = 0
    async for chunk in chunks:
        waiting.append(chunk)
        size += len(chunk)
        if size >= STEP:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting
