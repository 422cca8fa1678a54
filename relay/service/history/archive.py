"""A whole tree as one gzip tarball: the same bytes for the same seal, streamed in bounded memory."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import AsyncIterator

from localstore.core.limits import KIB
from localstore.core.tree import TreeEntry
from relay.base.threads import bulk
from relay.caller import View
from relay.db.seal import SealRow
from relay.http.routing import Reply
from relay.service.history import sealed
from relay.service.history.history import caching, tag

GZIP = 16 + zlib.MAX_WBITS  # zlib's own gzip header: no name, no time
LEVEL = 6
STEP = 256 * KIB  # compressed at once, off the event loop: it takes about 10 ms
SHORT = 12  # digits of the seal id in the folder's name


async def archive(view: View, sha: str) -> Reply:
    sealed.require_plaintext(view)
    found = await sealed.seal(view, sha)
    name = f"{view.repo.name}-{found.id[:SHORT]}"
    return Reply(
        stream=_compressed(_tar(view, found, name)),
        content_type="application/gzip",
        etag=tag(view, f"{found.id}-{name}"),
        headers={
            "cache-control": caching(view),
            "content-disposition": f'attachment; filename="{name}.tar.gz"',
        },
    )


def header(name: str, size: int, seconds: int = 0, directory: bool = False) -> bytes:
    """The tar header of a file, with a pax record where the name is long or not ASCII."""
    info = tarfile.TarInfo(name)
    info.size, info.mtime = size, seconds
    info.mode = 0o755 if directory else 0o644
    info.type = tarfile.DIRTYPE if directory else tarfile.REGTYPE
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


def padding(size: int) -> bytes:
    return b"\0" * (-size % tarfile.BLOCKSIZE)


def end(written: int) -> bytes:
    """Two empty blocks, padded to a whole record, as tar writes it."""
    closed = written + 2 * tarfile.BLOCKSIZE
    return b"\0" * (2 * tarfile.BLOCKSIZE + -closed % tarfile.RECORDSIZE)


async def _tar(view: View, found: SealRow, folder: str) -> AsyncIterator[bytes]:
    seconds = found.created_at // 1000
    first = header(folder, 0, seconds, directory=True)
    written = len(first)
    yield first
    batch: list[tuple[str, TreeEntry]] = []
    weight = 0
    async for path, file in sealed.files(view, found.root):
        if batch and (weight + file.size > sealed.BATCH_BYTES or len(batch) >= sealed.BATCH_FILES):
            async for part in _members(view, batch, folder, seconds):
                written += len(part)
                yield part
            batch, weight = [], 0
        batch.append((path, file))
        weight += file.size
    async for part in _members(view, batch, folder, seconds):
        written += len(part)
        yield part
    yield end(written)


async def _members(
    view: View, batch: list[tuple[str, TreeEntry]], folder: str, seconds: int
) -> AsyncIterator[bytes]:
    async for piece in sealed.contents(view, [file for _, file in batch]):
        path, file = batch[piece.at]
        if piece.first:
            yield header(f"{folder}/{path}", file.size, seconds)
        yield piece.data
        if piece.last:
            yield padding(file.size)


async def _compressed(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Compress on the bulk threads; small files together."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
    async for part in _steps(parts):
        out = await bulk(packer.compress, part)
        if out:
            yield out
    yield packer.flush()


async def _steps(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in pieces of STEP, the last one shorter."""
    waiting: list[bytes] = []
    size = 0
    async for part in parts:
        for start in range(0, len(part), STEP):
            piece = part[start : start + STEP]
            waiting.append(piece)
            size += len(piece)
            if size >= STEP:
                yield b"".join(waiting)
                waiting, size = [], 0
    yield b"".join(waiting)
