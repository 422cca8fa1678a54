"""Uploads a large asset in chunks: first the chunks that the repository lacks, then the list of all chunks.
After an interruption, only missing chunks are sent."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from localstore.core.errors import ClientError
from localstore.core.model.limits import MIB
from localstore.core.model.release import Asset
from localstore.core.model.seal import PayloadMissing
from localstore.core.paths import terminal_safe
from localstore.core.storage import chunks
from localstore.folder.chunking import ChunkList, FileChanged, chunks_of, pack_chunks
from svc.api import Api
from svc.flows.assets.local import LocalFile

PACK = 4 * MIB  # of chunks in one request: what an interruption loses at most
TRIES = 2  # rounds of sending: the relay's collector may delete chunks meanwhile


def send(
    api: Api, repo_id: str, version: str, file: LocalFile, done: Callable[[int], None], replaces: str = ""
) -> Asset:
    """Upload a file that is too large to be sent in one piece, and return the asset. `done` is called with
    the number of bytes that the server has. `replaces` is the BLAKE3 of the asset to replace, or "" if the
    asset is new. Raises AssetExists before any byte is sent, and ClientError if the file changes during the
    upload."""
    try:
        with file.path.open("rb", buffering=0) as opened:
            listed = chunks_of(opened, file.digest)
    except OSError:
        listed = None
    if listed is None:
        raise _changed_error(file)
    raw = chunks.encode(chunks.manifest(file.digest, ((chunk.digest, chunk.size) for chunk in listed)))
    for _ in range(TRIES):
        with suppress(PayloadMissing):
            return api.release.upload_chunked(repo_id, version, file.name, file.media, raw, replaces)
        _send_missing(api, repo_id, file, listed, done)
    return api.release.upload_chunked(repo_id, version, file.name, file.media, raw, replaces)


def _send_missing(
    api: Api, repo_id: str, file: LocalFile, listed: ChunkList, done: Callable[[int], None]
) -> None:
    missing = api.payload.missing(repo_id, list(dict.fromkeys(chunk.digest for chunk in listed)))
    try:
        with file.path.open("rb", buffering=0) as opened:
            for step in pack_chunks(opened, listed, missing, PACK):
                for pack in step.packs:
                    api.payload.put_pack(repo_id, pack)
                    done(file.size - step.left)
    except (OSError, FileChanged):
        raise _changed_error(file) from None


def _changed_error(file: LocalFile) -> ClientError:
    return ClientError(f"{terminal_safe(str(file.path))} changed while it was sent; try again")
