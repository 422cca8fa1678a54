"""Bytes by their BLAKE3: single payloads, packs of many, and which of them a repository has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

from localstore.core.limits import PACK_BYTES, PACK_TOC_BYTES, TEXT_FILE
from localstore.core.model.base import Model
from localstore.core.model.history import HaveAnswer
from localstore.core.pack import Pack
from svc.api.http import Http, segment
from svc.api.repo import at

PACK_MAX = PACK_BYTES + PACK_TOC_BYTES + 64 * 1024 * 1024  # one frame alone may be larger than a pack


class _Digests(Model):
    digests: list[str]


class _Stored(Model):
    """Answer of an upload."""


class PayloadCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def missing(self, repo_id: str, digests: Sequence[str]) -> list[str]:
        """Those of `digests` (hex, at most HAVE_DIGESTS) that the repository does not hold."""
        body = _Digests(digests=list(digests))
        path = f"{at(repo_id)}/objects/have"
        answer = self._http.call("POST", path, HaveAnswer, body=body, repeatable=True)
        return [digests[index] for index in answer.missing if 0 <= index < len(digests)]

    def put(self, repo_id: str, digest: str, parts: Callable[[], Iterable[bytes]], length: int) -> None:
        """Store `length` bytes named by `digest` (hex); `parts` opens them anew for every attempt."""
        path = f"{at(repo_id)}/payloads/{segment(digest)}"
        self._http.upload("PUT", path, _Stored, parts, length, bytes.fromhex(digest))

    def put_pack(
        self, repo_id: str, pack: Pack, wrap: Callable[[Iterator[bytes]], Iterator[bytes]] = iter
    ) -> None:
        """Store every object of a pack; its table of contents is what the request signs. `wrap` sees the
        pieces go by (progress)."""
        self._http.upload(
            "POST",
            f"{at(repo_id)}/packs",
            _Stored,
            lambda: wrap(pack.parts()),
            pack.size,
            pack.toc_digest,
        )

    def get(self, repo_id: str, digest: str, cap: int = TEXT_FILE) -> bytes:
        """The bytes named by `digest`, at most `cap`, not verified."""
        return self._http.read(f"{at(repo_id)}/payloads/{segment(digest)}", cap)

    def get_pack(self, repo_id: str, digests: Sequence[str]) -> AbstractContextManager[Iterator[bytes]]:
        """Many objects as one pack, streamed as the relay frames them."""
        body = _Digests(digests=list(digests))
        return self._http.stream("POST", f"{at(repo_id)}/objects/pack", PACK_MAX, body=body)
