"""Downloads a large file (stored in chunks) into a temporary file of the working copy. First the chunk
manifest is fetched, then the chunks that no file of this machine has (`localstore.sync.transfer.fill`).

The temporary file is in the working copy's folder, so that moving it into place is a rename. Its name is
added to the journal (state `partial`) before the file is created. After an interruption, the next process
reuses the chunks in the file, or removes it. The manifest is in the record during the download."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from localstore.core.errors import ServerMisbehaved, SvcError
from localstore.core.model import limits
from localstore.core.storage import chunks
from localstore.core.storage.chunks import ChunkManifest
from localstore.folder.chunking import ChunkList, ChunkPosition, cut_into_chunks
from localstore.folder.files import FetchedFile
from localstore.folder.writer import temp_name
from localstore.record.database import PARTIAL, Intent
from localstore.sync.transfer.fill import KnownFile, OtherBytes, fill
from localstore.sync.working_copy import WorkingCopy

REQUEST_BYTES = 16 * limits.MIB
MANIFESTS = "manifests"  # of downloads under way, in the record
ROW_BYTES = 100  # of a manifest, for one chunk
AVERAGE = 64 * limits.KIB  # of a chunk
MANIFEST_SHARE = 100  # the manifests of other files are asked for, up to one in so many bytes of the file


def download(copy: WorkingCopy, digest: bytes, size: int, near: str | None = None) -> FetchedFile:
    """Download and verify the file with the BLAKE3 `digest` and `size` bytes. Returns its place in the
    folder.

    `near`: a path that may have an older version of the file. Chunks in that file, in other large files of
    the folder or in `copy.known_files` are copied instead of fetched. Raises ServerMisbehaved if the relay
    sends other bytes."""
    expected = copy.placeholder_for(digest, size)
    if expected is not None:
        return expected
    listed = _manifest(copy, digest, size)
    path = _temporary(copy, digest)
    fd = copy.files.resume(path)
    try:
        filled = fill(
            fd,
            listed.chunks,
            digest,
            _known_files(copy, digest, size, near),
            partial(_fetch, copy),
            copy.progress,
        )
    except OtherBytes:
        copy.files.remove(path)
        raise ServerMisbehaved(
            f"the server sent other bytes than the file {digest.hex()[:12]}; try again"
        ) from None
    finally:
        os.close(fd)
    copy.reused += filled.copied
    copy.fetched_lists.keep(digest, _list_of(listed))
    return FetchedFile(path)


def clear(copy: WorkingCopy) -> None:
    """Remove partial downloads. Call this when every needed file is in place."""
    temps = [intent.temp for intent in copy.db.intents() if intent.state == PARTIAL]
    for temp in temps:
        copy.files.remove(temp)
    if temps:
        with copy.db.step():
            copy.db.drop_intents(temps)
    shutil.rmtree(copy.record / MANIFESTS, ignore_errors=True)


def _temporary(copy: WorkingCopy, digest: bytes) -> str:
    """The name of the temporary file that an interrupted download of the file `digest` left. If there is
    none, a new name."""
    for intent in copy.db.intents():
        if (intent.state, intent.new) == (PARTIAL, digest):
            return intent.temp
    temp = temp_name("")
    with copy.db.step():
        copy.db.put_intents([Intent(temp, "", None, digest, PARTIAL)])
    return temp


def _fetch(copy: WorkingCopy, sizes: Mapping[bytes, int]) -> Iterator[tuple[bytes, bytes]]:
    """Yields (digest, bytes) of chunks. They are fetched in requests of REQUEST_BYTES, which is less than
    usual, so that no answer takes long."""
    part: dict[bytes, int] = {}
    room = REQUEST_BYTES
    for digest, size in sizes.items():
        if part and size > room:
            yield from copy.fetch(part, keep=False)
            part, room = {}, REQUEST_BYTES
        part[digest] = size
        room -= size
    if part:
        yield from copy.fetch(part, keep=False)


# --- files that may hold chunks


def _known_files(copy: WorkingCopy, digest: bytes, size: int, near: str | None) -> Iterator[KnownFile]:
    """Yields files of this machine that may contain chunks of the wanted file, which has the BLAKE3 `digest`:
    first an older version at the same path, then the same file at another path, then other large files of the
    folder, then `copy.known_files`."""
    info = copy.files.stat(near) if near is not None else None
    if near is not None and info is not None and info.st_size > limits.BLOB_FILE:
        yield KnownFile(partial(copy.files.open, near), _cut)
    for path, other, _ in copy.db.large_files():
        if other == digest and path != near:  # renamed or copied on the branch
            yield KnownFile(partial(copy.files.open, path), _cut)
    room = size // MANIFEST_SHARE
    others = [file for file in copy.db.large_files() if file[1] != digest and file[0] != near]
    for path, other, bytes_of_it in sorted(others, key=lambda file: abs(file[2] - size)):
        listed = copy.fetched_lists.get(other)
        if listed is not None:
            yield KnownFile(partial(copy.files.open, path), partial(_place_chunks, listed))
            continue
        cost = bytes_of_it // AVERAGE * ROW_BYTES
        if cost <= room:
            room -= cost
            yield KnownFile(
                partial(copy.files.open, path), partial(_request_chunks, copy, other, bytes_of_it)
            )
    yield from copy.known_files(size)


def _cut(fd: int) -> Iterable[ChunkPosition]:
    """Cuts an open file into chunks, and returns their positions."""
    with open(fd, "rb", buffering=0, closefd=False) as file:
        return cut_into_chunks(file)


def _place_chunks(listed: ChunkList, _fd: int) -> Iterable[ChunkPosition]:
    return listed


def _request_chunks(copy: WorkingCopy, digest: bytes, size: int, _fd: int) -> Iterable[ChunkPosition]:
    """The chunks of a large file of the repository, according to the manifest on the relay. Empty if the
    relay has no manifest of it."""
    try:
        listed = _list_of(_fetched_manifest(copy, digest, size))
    except SvcError:
        return ()
    copy.fetched_lists.keep(digest, listed)
    return listed


def _list_of(manifest: ChunkManifest) -> ChunkList:
    return ChunkList.of((bytes.fromhex(row.blake3), row.size) for row in manifest.chunks)


# --- manifests


def _manifest(copy: WorkingCopy, digest: bytes, size: int) -> ChunkManifest:
    """The chunk manifest of the file. It is stored in the record while the file is downloaded."""
    cached = copy.record / MANIFESTS / digest.hex()
    with contextlib.suppress(OSError, SvcError):
        if cached.stat().st_size <= limits.CHUNK_MANIFEST:
            return _check_manifest(cached.read_bytes(), digest, size)
    return _fetched_manifest(copy, digest, size, partial(_keep, cached))


def _keep(path: Path, raw: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(raw)


def _fetched_manifest(
    copy: WorkingCopy, digest: bytes, size: int, keep: Callable[[bytes], object] = lambda raw: None
) -> ChunkManifest:
    try:
        raw = copy.transport.manifest(digest)
        manifest = _check_manifest(raw, digest, size)
    except SvcError as error:
        if isinstance(error, ServerMisbehaved) or error.status not in (413, 422):
            raise
        raise ServerMisbehaved(f"the server sent an invalid manifest: {error.detail}") from None
    keep(raw)
    return manifest


def _check_manifest(raw: bytes, digest: bytes, size: int) -> ChunkManifest:
    manifest = chunks.decode(raw)
    if (manifest.blake3, manifest.size) != (digest.hex(), size):
        raise ServerMisbehaved(f"the server sent the manifest of another file than {digest.hex()[:12]}")
    return manifest
