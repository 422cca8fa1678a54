"""Releases: uploads assets, and downloads them, continuing interrupted downloads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

from localstore.core.encoding import digest as blake3_digest
from localstore.core.model import release as releases
from localstore.core.model.limits import ASSET_FILE
from localstore.core.model.release import Asset, AssetUpload
from svc.http.client import Http


class ReleaseCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def upload(
        self,
        repo_id: str,
        version: str,
        name: str,
        media: str,
        parts: Callable[[], Iterable[bytes]],
        length: int,
        digest: bytes,
        replaces: str = "",
    ) -> Asset:
        """Send a file of `length` bytes with this BLAKE3; `parts` yields its bytes again for each attempt.
        `replaces`: BLAKE3 of the asset that it replaces."""
        query = AssetUpload(name=name, replaces=replaces)
        return self._http.upload(
            releases.UPLOAD, parts, length, digest, query=query, media=media, id=repo_id, v=version
        )

    def upload_chunked(
        self, repo_id: str, version: str, name: str, media: str, manifest: bytes, replaces: str = ""
    ) -> Asset:
        """Create an asset from the chunks that this manifest lists. Raises PayloadMissing if the repository
        lacks any of them."""
        query = AssetUpload(name=name, manifest=True, replaces=replaces)
        return self._http.upload(
            releases.UPLOAD,
            lambda: iter((manifest,)),
            len(manifest),
            blake3_digest(manifest),
            query=query,
            media=media,
            id=repo_id,
            v=version,
        )

    def download(
        self, repo_id: str, version: str, name: str, start: int
    ) -> AbstractContextManager[tuple[int, Iterator[bytes]]]:
        """A context with (offset at which the bytes begin, bytes): `start`, or 0 if the server sends the
        whole file. Not verified."""
        return self._http.stream_from(
            releases.DOWNLOAD, start, ASSET_FILE, None, None, id=repo_id, v=version, name=name
        )
