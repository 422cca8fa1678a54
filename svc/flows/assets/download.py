"""Downloads assets of a release into a folder. Interrupted downloads are continued."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import msgspec
from blake3 import blake3

from localstore.core.errors import ClientError, Conflict, Invalid, NotFound, ServerMisbehaved
from localstore.core.model.release import Asset, Release, check_asset_name
from localstore.core.paths import case_key, terminal_safe
from localstore.disk_errors import translated_disk_errors
from localstore.progress import Progress
from svc.api import Api
from svc.flows.assets.local import PIECE


class DownloadedAsset(msgspec.Struct, frozen=True):
    """An asset that is now in the file `path`. `downloaded` is False if the file already existed."""

    asset: Asset
    path: Path
    downloaded: bool


def select_assets(release: Release, patterns: Sequence[str]) -> list[Asset]:
    """Return the assets that match one of the patterns, or all assets if there are no patterns. Raises
    NotFound if none matches, ServerMisbehaved if a name cannot be a file name."""
    assets = [asset for asset in release.assets if not patterns or _matches(asset.name, patterns)]
    if not assets:
        what = f"that matches {' or '.join(map(terminal_safe, patterns))}" if patterns else "to download"
        raise NotFound(f"release {terminal_safe(release.version)} has no asset {what}")
    names = set()
    for asset in assets:
        try:
            names.add(case_key(check_asset_name(asset.name)))
        except Invalid as error:
            raise ServerMisbehaved(
                f"the server sent an asset that cannot be written: {error.detail}"
            ) from None
    if len(names) < len(assets):
        raise ServerMisbehaved("the server sent two assets of one name")
    return assets


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def download(
    api: Api,
    repo_id: str,
    version: str,
    assets: Sequence[Asset],
    folder: Path,
    clobber: bool,
    progress: Progress,
) -> Iterator[DownloadedAsset]:
    """Download the assets into the folder. Each has a temporary name until it is complete and verified, then
    gets its own name and is yielded. If a file with other bytes already has that name, it is replaced if
    `clobber` is True. Otherwise Conflict is raised before anything is written."""
    with translated_disk_errors(folder, folder):
        present = {asset.name for asset in assets if _has_asset(folder / asset.name, asset, clobber)}
        folder.mkdir(parents=True, exist_ok=True)
        for at, asset in enumerate(assets):
            target = folder / asset.name
            if asset.name not in present:
                done = partial(progress, "receiving", at, len(assets))
                _fetch(api, repo_id, version, asset, target, done)
            yield DownloadedAsset(asset, target, asset.name not in present)
        progress("receiving", len(assets), len(assets))


def _has_asset(target: Path, asset: Asset, clobber: bool) -> bool:
    """Return whether the file exists with the bytes of the asset. If it has other bytes, raises Conflict, or
    returns False if `clobber` is True."""
    try:
        info = target.lstat()
    except FileNotFoundError:
        return False
    regular = stat.S_ISREG(info.st_mode)
    if regular and info.st_size == asset.size:
        with target.open("rb") as file:
            if _digest(file.fileno()).hexdigest() == asset.blake3:
                return True
    if clobber and regular:
        return False
    raise Conflict(
        f"{terminal_safe(str(target))} is there with other content; move it away, or add --clobber"
        if regular
        else f"{terminal_safe(str(target))} is there and no file; move it away"
    )


def _fetch(
    api: Api, repo_id: str, version: str, asset: Asset, target: Path, done: Callable[[int], None]
) -> None:
    """Download an asset into a temporary file in the target's folder, and rename it to `target` when it is
    complete and verified. An interrupted download is continued."""
    part = target.with_name(f".svc-{asset.blake3[:16]}.tmp")
    with _open_part(part) as fd:
        whole = _digest(fd) if 0 < os.fstat(fd).st_size <= asset.size else None
        if whole is None or not _is_whole(whole, fd, asset):
            whole = _receive(api, repo_id, version, asset, fd, whole, done)
        if not _is_whole(whole, fd, asset):
            with suppress(FileNotFoundError):
                part.unlink()
            raise ServerMisbehaved(
                f"the bytes of {asset.name} are not those that the release names; nothing was written"
            )
        os.fsync(fd)
        part.replace(target)


def _is_whole(whole: blake3, fd: int, asset: Asset) -> bool:
    return os.fstat(fd).st_size == asset.size and bool(whole.hexdigest() == asset.blake3)


def _receive(
    api: Api,
    repo_id: str,
    version: str,
    asset: Asset,
    fd: int,
    whole: blake3 | None,
    done: Callable[[int], None],
) -> blake3:
    """Download the missing bytes of an asset, and append them to the file `fd`. `whole` is the hash of the
    bytes that the file already has; if it is None, the file is emptied first. Returns the hash of the
    complete file. If it is wrong because of the earlier bytes, the whole asset is downloaded again."""
    start = os.fstat(fd).st_size if whole is not None else 0
    if start == asset.size:
        start, whole = 0, None
    with api.release.download(repo_id, version, asset.name, start) as (begins, pieces):
        if whole is None or begins != start:
            whole = blake3()
            os.ftruncate(fd, 0)
        size = os.lseek(fd, 0, os.SEEK_END)
        for piece in pieces:
            size += len(piece)
            if size > asset.size:
                break
            whole.update(piece)
            _write(fd, piece)
            done(size)
    if start and not _is_whole(whole, fd, asset):
        return _receive(api, repo_id, version, asset, fd, None, done)
    return whole


def _write(fd: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(fd, rest) :]


@contextmanager
def _open_part(part: Path) -> Iterator[int]:
    """A context that yields the descriptor of the temporary file, locked by this process. Raises ClientError
    if another process is writing it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(part, flags, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), str(part))
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ClientError(
                f"another process downloads into {terminal_safe(str(part.parent))}; wait for it"
            ) from None
        yield fd
    finally:
        os.close(fd)


def _digest(fd: int) -> blake3:
    """Return the BLAKE3 hash of the whole file."""
    whole, at = blake3(), 0
    while piece := os.pread(fd, PIECE, at):
        whole.update(piece)
        at += len(piece)
    return whole
