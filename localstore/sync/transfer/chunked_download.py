"""Downloads a file above the blob cap: first its chunk manifest, then its chunks, into a temporary file.

The temporary file is in the working copy's folder, so that moving it into place is a rename. Its name is in
the journal (state `partial`) before it is created; the next process resumes after the last whole chunk, or
removes it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from blake3 import blake3

from localstore.core import limits
from localstore.core.encoding import digest as blake3_digest
from localstore.core.errors import ServerMisbehaved, SvcError
from localstore.core.storage import chunks
from localstore.core.storage.chunks import ChunkRow
from localstore.folder.chunking import ChunkPosition, cut_into_chunks
from localstore.folder.files import Fetched
from localstore.folder.writer import temp_name
from localstore.record.database import PARTIAL, Intent
from localstore.sync.working_copy import WorkingCopy

BATCH_BYTES, BATCH_CHUNKS = 16 * limits.MIB, 4096  # different chunks in memory at once


def download(copy: WorkingCopy, digest: bytes, size: int, near: str | None = None) -> Fetched:
    """Download and verify the file `digest` of `size` bytes.

    `near`: a path that may hold an older version; chunks found there are not fetched. Raises ServerMisbehaved
    if the relay sends other bytes.
    """
    expected = copy.placeholder_for(digest, size)
    if expected is not None:
        return expected
    listed = _manifest(copy, digest, size)
    path = _temporary(copy, digest)
    fd = copy.files.resume(path)
    try:
        with contextlib.ExitStack() as stack:
            older = stack.enter_context(_older(copy, near))
            _fill(copy, fd, listed, digest, older)
    except _OtherBytes:
        copy.files.remove(path)
        raise ServerMisbehaved(
            f"the server sent other bytes than the file {digest.hex()[:12]}; try again"
        ) from None
    finally:
        os.close(fd)
    return Fetched(path)


def clear(copy: WorkingCopy) -> None:
    """Remove partial downloads; every wanted file is in place."""
    left = [intent.temp for intent in copy.db.intents() if intent.state == PARTIAL]
    for temp in left:
        copy.files.remove(temp)
    if left:
        with copy.db.step():
            copy.db.drop_intents(left)


def _temporary(copy: WorkingCopy, digest: bytes) -> str:
    """The name of the temporary file: that of an interrupted download, or a new one."""
    for intent in copy.db.intents():
        if (intent.state, intent.new) == (PARTIAL, digest):
            return intent.temp
    temp = temp_name("")
    with copy.db.step():
        copy.db.put_intents([Intent(temp, "", None, digest, PARTIAL)])
    return temp


class _OtherBytes(Exception):
    """The verified chunks do not add up to the file."""


class _Older:
    """Chunks of a file on the disk, by digest."""

    def __init__(self, fd: int = -1, found: dict[bytes, ChunkPosition] | None = None) -> None:
        self._fd, self._found = fd, found or {}

    def get(self, digest: bytes) -> bytes | None:
        """The chunk; None if the file does not have it any more."""
        one = self._found.get(digest)
        if one is None:
            return None
        data = os.pread(self._fd, one.size, one.offset)
        return data if blake3_digest(data) == digest else None


@contextlib.contextmanager
def _older(copy: WorkingCopy, near: str | None) -> Iterator[_Older]:
    info = copy.files.stat(near) if near is not None else None
    if near is None or info is None or info.st_size <= limits.BLOB_FILE:
        yield _Older()
        return
    try:
        fd = copy.files.open(near)
    except OSError:
        yield _Older()
        return
    with os.fdopen(fd, "rb", buffering=0) as file:
        yield _Older(fd, {one.digest: one for one in cut_into_chunks(file)})


def _manifest(copy: WorkingCopy, digest: bytes, size: int) -> list[ChunkRow]:
    try:
        found = chunks.decode(copy.transport.manifest(digest))
    except SvcError as error:
        if isinstance(error, ServerMisbehaved) or error.status not in (413, 422):
            raise
        raise ServerMisbehaved(f"the server sent an invalid manifest: {error.detail}") from None
    if (found.blake3, found.size) != (digest.hex(), size):
        raise ServerMisbehaved(f"the server sent the manifest of another file than {digest.hex()[:12]}")
    return found.chunks


def _fill(copy: WorkingCopy, fd: int, listed: list[ChunkRow], digest: bytes, older: _Older) -> None:
    """Keep the verified beginning of the temporary file, fetch and write the rest, verify the whole. Raises
    _OtherBytes."""
    whole = blake3()
    done = written = 0
    for chunk in listed:
        data = os.pread(fd, chunk.size, written)
        if blake3_digest(data).hex() != chunk.blake3:
            break
        whole.update(data)
        done, written = done + 1, written + len(data)
    os.ftruncate(fd, written)
    os.lseek(fd, written, os.SEEK_SET)
    while done < len(listed):
        batch = _batch(listed, done)
        found = _bytes(copy, batch, older)
        for chunk in batch:
            data = found[bytes.fromhex(chunk.blake3)]
            if len(data) != chunk.size:
                raise _OtherBytes
            whole.update(data)
            _write(fd, data)
            written += len(data)
        done += len(batch)
        copy.progress("download", done, len(listed), written)
    if whole.digest() != digest:
        raise _OtherBytes


def _batch(listed: Sequence[ChunkRow], start: int) -> Sequence[ChunkRow]:
    """The chunks from `start` on that fit into BATCH_BYTES; a repeated chunk counts once."""
    seen: set[str] = set()
    room = BATCH_BYTES
    end = start
    while end < len(listed) and end - start < BATCH_CHUNKS:
        chunk = listed[end]
        if chunk.blake3 not in seen:
            if chunk.size > room:
                break
            room -= chunk.size
            seen.add(chunk.blake3)
        end += 1
    return listed[start:end]


def _bytes(copy: WorkingCopy, batch: Sequence[ChunkRow], older: _Older) -> dict[bytes, bytes]:
    sizes = {bytes.fromhex(chunk.blake3): chunk.size for chunk in batch}
    found = {digest: data for digest in sizes if (data := older.get(digest)) is not None}
    absent = {digest: size for digest, size in sizes.items() if digest not in found}
    found.update(copy.fetch(absent, keep=False))
    if len(found) < len(sizes):
        raise ServerMisbehaved(f"the server did not send {len(sizes) - len(found)} chunks; try again")
    return found


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
