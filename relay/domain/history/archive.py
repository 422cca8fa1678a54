"""Streams a whole tree as one gzip tarball. The same seal always gives the same bytes, and memory is bounded.

The tarball is made in steps. Before each step the reader waits for its turn (`relay.memory.streams`). A
separate process writes and compresses the members of the tarball (one for each file).
"""

from __future__ import annotations

import contextlib
import tarfile
from collections.abc import AsyncGenerator, AsyncIterator

from localstore.core.model.limits import MIB
from localstore.core.tree import TreeEntry
from relay.caller import View
from relay.db.seal import SealRow
from relay.domain.history import sealed
from relay.domain.history.files import cache_control_of, etag_of
from relay.http.routing import Reply
from relay.memory import tarred
from relay.memory.tarred import ArchivePart, FilePiece

STEP_BYTES, STEP_PARTS = 1 * MIB, 256  # that one turn goes through
SHORT = 12  # digits of the seal id in the folder's name
FORM = 2  # of the compressed bytes: a download goes on where it stopped only if they are the same


async def archive(view: View, sha: str) -> Reply:
    """The whole tree at a seal as one gzip tarball"""
    sealed.require_plaintext(view)
    row = await sealed.seal(view, sha)
    view.node.streams.require(view.payer)
    name = f"{view.repo.name}-{row.id[:SHORT]}"
    return Reply(
        stream=_archive(view, row, name),
        content_type="application/gzip",
        etag=etag_of(view, f"{row.id}-{name}-{FORM}"),
        headers={
            "cache-control": cache_control_of(view),
            "content-disposition": f'attachment; filename="{name}.tar.gz"',
        },
    )


async def _archive(view: View, row: SealRow, folder: str) -> AsyncIterator[bytes]:
    seconds = row.created_at // 1000
    first = tarred.header_of(folder, 0, seconds, directory=True)
    packed = tarred.compress_piece(first, ArchivePart(b"", 0, 0))
    async with contextlib.aclosing(_read_parts(view, row.root, folder)) as parts:
        head = tarred.HEAD + packed.data
        while (step := await _compress_step(view, parts, seconds, packed)) is not None:
            packed = step
            yield head + packed.data  # not the head alone: if the first files are lost, the client is told so
            head = b""
    if head:
        yield head
    yield tarred.end_archive(packed)


async def _compress_step(
    view: View, parts: AsyncIterator[FilePiece], seconds: int, before: ArchivePart
) -> ArchivePart | None:
    """Compress the next pieces of files, as many as fit into one step. `seconds`: the modification time that
    all files get in the archive. `before`: the result of the previous step. Returns None at the end."""
    async with view.node.streams.turn(view.payer, view.lease) as step:
        pieces: list[FilePiece] = []
        size = 0
        async for part in parts:
            pieces.append(part)
            size += len(part.data)
            if size >= STEP_BYTES or len(pieces) >= STEP_PARTS:
                break
        step.count(len(pieces), size)
    if not pieces:
        return None
    # Outside of the turn: the process beside the relay has a queue of its own.
    size += len(pieces) * tarfile.BLOCKSIZE * 2
    done = before._replace(data=b"")
    return await view.node.workers.go_on_waiting(view.payer, size, tarred.pack_members, pieces, seconds, done)


async def _read_parts(view: View, root: bytes, folder: str) -> AsyncGenerator[FilePiece, None]:
    batch: list[tuple[str, TreeEntry]] = []
    weight = 0
    async for path, file in sealed.walk_files(view, root):
        if batch and (weight + file.size > sealed.BATCH_BYTES or len(batch) >= sealed.BATCH_FILES):
            async for part in _list_members(view, batch, folder):
                yield part
            batch, weight = [], 0
        batch.append((path, file))
        weight += file.size
    async for part in _list_members(view, batch, folder):
        yield part


async def _list_members(
    view: View, batch: list[tuple[str, TreeEntry]], folder: str
) -> AsyncIterator[FilePiece]:
    async for piece in sealed.read_contents(view, [file for _, file in batch]):
        path, file = batch[piece.at]
        yield FilePiece(f"{folder}/{path}" if piece.first else None, file.size, piece.data, piece.last)
