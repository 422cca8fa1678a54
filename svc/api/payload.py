"""Uploads and downloads the stored bytes of files (payloads), which are named by their BLAKE3 digests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

from localstore.core.encoding import digest as blake3_digest
from localstore.core.errors import ServerMisbehaved
from localstore.core.model import payload
from localstore.core.model.limits import CHUNK_MANIFEST, GIB, HAVE_DIGESTS, TEXT_FILE
from localstore.core.model.payload import AtQuery
from localstore.core.storage.pack import Pack
from svc.http.client import Http

PACK_MAX = 4 * GIB  # a pack is unpacked as it flows; its own table caps what it may hold


class PayloadCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def missing(self, repo_id: str, digests: Sequence[bytes]) -> list[bytes]:
        """Return the `digests` (32 bytes each) that the repository lacks, in the given order."""
        absent: list[bytes] = []
        for start in range(0, len(digests), HAVE_DIGESTS):
            part = digests[start : start + HAVE_DIGESTS]
            answer = self._http.send(payload.HAVE, b"".join(part), id=repo_id)
            if not all(0 <= index < len(part) for index in answer.missing):
                raise ServerMisbehaved(f"{self._http.origin} lacks objects that nobody asked for")
            absent.extend(part[index] for index in answer.missing)
        return absent

    def put(self, repo_id: str, digest: bytes, parts: Callable[[], Iterable[bytes]], length: int) -> None:
        """Upload `length` bytes with the BLAKE3 `digest`. `parts` is called for each attempt, and returns the
        bytes in pieces."""
        self._http.upload(payload.PUT, parts, length, digest, id=repo_id, blake3=digest.hex())

    def put_pack(self, repo_id: str, pack: Pack) -> None:
        """Upload a pack. The repository stores all its objects. The request's signature covers the digest of
        the pack's table of contents."""
        self._http.upload(payload.PUT_PACK, pack.parts, pack.size, pack.toc_digest, id=repo_id)

    def put_manifest(self, repo_id: str, digest: bytes, raw: bytes) -> None:
        """Store the chunk manifest of the large file `digest`."""
        self._http.upload(
            payload.PUT_MANIFEST,
            lambda: iter((raw,)),
            len(raw),
            blake3_digest(raw),
            id=repo_id,
            blake3=digest.hex(),
        )

    def manifest(self, repo_id: str, digest: bytes, at: str | None = None) -> bytes:
        """Return the chunk manifest of the large file `digest`, not verified. If some paths are hidden from
        the user, `at` must be a seal that contains the file."""
        where = {"id": repo_id, "blake3": digest.hex()}
        return self._http.read(payload.GET_MANIFEST, CHUNK_MANIFEST, query=AtQuery(at=at), **where)

    def get(self, repo_id: str, digest: bytes, cap: int = TEXT_FILE) -> bytes:
        """Return the bytes with the BLAKE3 `digest`, not verified. Raises an error for more than `cap`
        bytes."""
        return self._http.read(payload.GET, cap, id=repo_id, blake3=digest.hex())

    def get_pack(
        self, repo_id: str, digests: Sequence[bytes], at: str | None = None
    ) -> AbstractContextManager[Iterator[bytes]]:
        """A context that yields a pack with the objects `digests`, as pieces of bytes. If some paths are
        hidden from the user, `at` must be a seal that contains these objects."""
        body, query = b"".join(digests), AtQuery(at=at)
        return self._http.stream(payload.GET_PACK, PACK_MAX, body, query=query, id=repo_id)
