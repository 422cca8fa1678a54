"""Uploads and downloads the assets of releases. An interrupted download can be continued."""

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
        """Upload a file as an asset of a release, and return the asset. The file has `length` bytes, the
        BLAKE3 `digest` and the media type `media`. `parts` is called for each attempt, and returns the bytes
        in pieces. `replaces` is the BLAKE3 of the asset to replace, or "" if the asset is new."""
        query = AssetUpload(name=name, replaces=replaces)
        return self._http.upload(
            releases.UPLOAD, parts, length, digest, query=query, media=media, id=repo_id, v=version
        )

    def upload_chunked(
        self, repo_id: str, version: str, name: str, media: str, manifest: bytes, replaces: str = ""
    ) -> Asset:
        """Create an asset from stored chunks, which `manifest` lists, and return the asset. `replaces` is the
        BLAKE3 of the asset to replace, or "" if the asset is new. Raises PayloadMissing if the repository
        lacks one of the chunks."""
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
        """A context that downloads an asset from byte `start` on. It yields (offset of the first byte, pieces
        of bytes). The offset is 0 if the server sends the whole file instead. The bytes are not verified."""
        return self._http.stream_from(
            releases.DOWNLOAD, start, ASSET_FILE, None, None, id=repo_id, v=version, name=name
        )
