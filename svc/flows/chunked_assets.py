"""Uploads a large asset in chunks: asks which of them the repository lacks, sends those, then their list. An
upload that was interrupted continues with the chunks that are missing."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Protocol

from blake3 import blake3

from localstore.core.encoding import digest as blake3_digest
from localstore.core.errors import ClientError
from localstore.core.limits import MIB
from localstore.core.model.release import Asset
from localstore.core.model.seal import PayloadMissing
from localstore.core.paths import terminal_safe
from localstore.core.storage import chunks
from localstore.core.storage.pack import PackWriter
from localstore.folder.chunking import ChunkList, cut_into_chunks
from svc.api import Api

PACK = 4 * MIB  # of chunks in one request: what an interruption loses at most
TRIES = 2  # rounds of sending: the relay's collector may delete chunks meanwhile


class LargeFile(Protocol):
    """A file to upload. `size`: bytes; `digest`: their BLAKE3; `media`: its media type."""

    @property
    def path(self) -> Path: ...
    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def digest(self) -> bytes: ...
    @property
    def media(self) -> str: ...


def send(api: Api, repo_id: str, version: str, file: LargeFile, done: Callable[[int], None]) -> Asset:
    """Upload a file above the blob cap. `done` hears how many of its bytes the server has. Raises AssetExists
    before any byte is sent, ClientError if the file changes meanwhile."""
    listed = _cut(file)
    raw = chunks.encode(chunks.manifest(file.digest, ((one.digest, one.size) for one in listed)))
    for _ in range(TRIES):
        with suppress(PayloadMissing):
            return api.release.upload_chunked(repo_id, version, file.name, file.media, raw)
        _send_missing(api, repo_id, file, listed, done)
    return api.release.upload_chunked(repo_id, version, file.name, file.media, raw)


def _cut(file: LargeFile) -> ChunkList:
    whole = blake3()
    try:
        with file.path.open("rb", buffering=0) as opened:
            listed = cut_into_chunks(opened, whole.update)
    except OSError:
        raise _changed(file) from None
    if whole.digest() != file.digest:
        raise _changed(file)
    return listed


def _send_missing(
    api: Api, repo_id: str, file: LargeFile, listed: ChunkList, done: Callable[[int], None]
) -> None:
    by_digest = {one.digest: one for one in listed}
    missing = set(api.payload.missing(repo_id, list(by_digest)))
    wanted = sorted((by_digest[one] for one in missing if one in by_digest), key=attrgetter("offset"))
    there = file.size - sum(one.size for one in wanted)
    done(there)
    writer = PackWriter(PACK)
    try:
        with file.path.open("rb", buffering=0) as opened:
            for one in wanted:
                data = os.pread(opened.fileno(), one.size, one.offset)
                if blake3_digest(data) != one.digest:
                    raise _changed(file)
                for pack in writer.add(one.digest, data, text=False):
                    api.payload.put_pack(repo_id, pack)
                    done(there)
                there += one.size
    except OSError:
        raise _changed(file) from None
    for pack in writer.finish():
        api.payload.put_pack(repo_id, pack)
    done(file.size)


def _changed(file: LargeFile) -> ClientError:
    return ClientError(f"{terminal_safe(str(file.path))} changed while it was sent; try again")
