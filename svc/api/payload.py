"""Bytes by their BLAKE3: single payloads, packs of many, and which of them a repository lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

from localstore.core.encoding import digest as blake3_digest
from localstore.core.errors import ServerMisbehaved
from localstore.core.limits import CHUNK_MANIFEST, GIB, HAVE_DIGESTS, TEXT_FILE
from localstore.core.model.base import Model
from localstore.core.model.history import HaveAnswer
from localstore.core.storage.pack import Pack
from svc.api.repo import at
from svc.http.client import Http
from svc.http.target import segment

PACK_MAX = 4 * GIB  # a pack is unpacked as it flows; its own table caps what it may hold


class _Stored(Model, frozen=True):
    """Answer of an upload: that it is there is all that matters."""


class PayloadCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def missing(self, repo_id: str, digests: Sequence[bytes]) -> list[bytes]:
        """Those of `digests` (32 bytes each) that the repository does not hold, in their order."""
        found: list[bytes] = []
        for start in range(0, len(digests), HAVE_DIGESTS):
            asked = digests[start : start + HAVE_DIGESTS]
            answer = self._http.call(
                "POST", f"{at(repo_id)}/have", HaveAnswer, content=b"".join(asked), repeatable=True
            )
            if not all(0 <= index < len(asked) for index in answer.missing):
                raise ServerMisbehaved(f"{self._http.origin} lacks objects that nobody asked for")
            found.extend(asked[index] for index in answer.missing)
        return found

    def put(self, repo_id: str, digest: bytes, parts: Callable[[], Iterable[bytes]], length: int) -> None:
        """Store `length` bytes named by `digest`; `parts` opens them anew for every attempt."""
        path = f"{at(repo_id)}/payloads/{digest.hex()}"
        self._http.upload("PUT", path, _Stored, parts, length, digest)

    def put_pack(self, repo_id: str, pack: Pack) -> None:
        """Store every object of a pack; its table of contents is what the request signs."""
        path = f"{at(repo_id)}/packs"
        self._http.upload("POST", path, _Stored, pack.parts, pack.size, pack.toc_digest)

    def put_manifest(self, repo_id: str, digest: bytes, raw: bytes) -> None:
        """Say which stored chunks make the large file `digest`."""
        path = f"{at(repo_id)}/payloads/{digest.hex()}/manifest"
        self._http.upload("PUT", path, _Stored, lambda: iter((raw,)), len(raw), blake3_digest(raw))

    def manifest(self, repo_id: str, digest: bytes) -> bytes:
        """The manifest of the large file `digest`, not verified."""
        return self._http.read(f"{at(repo_id)}/payloads/{digest.hex()}/manifest", CHUNK_MANIFEST)

    def get(self, repo_id: str, digest: bytes, cap: int = TEXT_FILE) -> bytes:
        """The bytes named by `digest`, at most `cap`, not verified."""
        return self._http.read(f"{at(repo_id)}/payloads/{segment(digest.hex())}", cap)

    def get_pack(self, repo_id: str, digests: Sequence[bytes]) -> AbstractContextManager[Iterator[bytes]]:
        """Many objects as one pack, streamed."""
        return self._http.stream("POST", f"{at(repo_id)}/packs/fetch", PACK_MAX, content=b"".join(digests))
