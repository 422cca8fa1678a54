"""Uploads files as assets of a release."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from localstore.core.errors import ClientError
from localstore.core.model import release as releases
from localstore.core.model.limits import BLOB_FILE
from localstore.core.model.release import Asset, AssetExists
from localstore.core.paths import case_key, terminal_safe
from localstore.progress import Progress
from svc.api import Api
from svc.flows.assets import chunked
from svc.flows.assets.local import PIECE, LocalFile


class UploadedAsset(msgspec.Struct, frozen=True):
    """An asset that is now on the server. `uploaded` is False if the release already had these bytes under
    this name."""

    asset: Asset
    uploaded: bool


def upload(
    api: Api, repo_id: str, version: str, files: Sequence[LocalFile], clobber: bool, progress: Progress
) -> Iterator[UploadedAsset]:
    """Upload the files as assets, and yield each when it is on the server. An asset that already exists with
    the same bytes is not sent. If it exists with other bytes, AssetExists is raised. With `clobber` it is
    replaced instead, after the new bytes have arrived."""
    for at, file in enumerate(files):
        progress("sending", at, len(files))
        done = partial(progress, "sending", at, len(files))
        try:
            yield UploadedAsset(_send(api, repo_id, version, file, done), True)
            continue
        except AssetExists as error:
            there = _find_existing(api, repo_id, version, error, file.name)
            if there.name == file.name and there.blake3 == file.digest.hex():
                yield UploadedAsset(there, False)
                continue
            if not clobber:
                raise
        yield UploadedAsset(_replace(api, repo_id, version, file, done, there), True)
    progress("sending", len(files), len(files))


def _replace(
    api: Api, repo_id: str, version: str, file: LocalFile, done: Callable[[int], None], there: Asset
) -> Asset:
    try:
        return _send(api, repo_id, version, file, done, there.blake3)
    except AssetExists as error:  # its answer was lost, or somebody else has replaced it meanwhile
        now = _find_existing(api, repo_id, version, error, file.name)
        if now.name != file.name or now.blake3 != file.digest.hex():
            raise
        return now


def _send(
    api: Api, repo_id: str, version: str, file: LocalFile, done: Callable[[int], None], replaces: str = ""
) -> Asset:
    if file.size > BLOB_FILE:
        return chunked.send(api, repo_id, version, file, done, replaces)
    parts = partial(_pieces, file, done)
    return api.release.upload(
        repo_id, version, file.name, file.media, parts, file.size, file.digest, replaces
    )


def _pieces(file: LocalFile, done: Callable[[int], None]) -> Iterator[bytes]:
    """Yields the file's bytes in pieces, and stops at the size that was measured before. `done` is called
    with the number of bytes sent. If the file has changed since, its digest no longer matches and the server
    refuses it."""
    remaining = file.size
    with file.path.open("rb") as opened:
        while remaining and (piece := opened.read(min(PIECE, remaining))):
            remaining -= len(piece)
            yield piece
            done(file.size - remaining)
    if remaining:
        raise ClientError(f"{terminal_safe(str(file.path))} became shorter while it was sent; try again")


def _find_existing(api: Api, repo_id: str, version: str, refused: AssetExists, name: str) -> Asset:
    key = case_key(name)
    for asset in api.items(releases.ASSETS, id=repo_id, v=version):
        if case_key(asset.name) == key:
            return asset
    raise refused
