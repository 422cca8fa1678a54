"""Adds a GGUF file of this machine to the cache, without copying it if the file system can.

A reflink shares the bytes until one side is written. A hard link is the same file, which may be changed in
place: `Models.intact` detects that. On other file systems the file is copied."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from blake3 import blake3

from localstore.core.paths import terminal_safe
from localstore.disk_errors import translated_disk_errors
from localstore.errors import DiskError
from localstore.models.errors import BadModel
from localstore.models.gguf import Header, read
from localstore.models.store import About, Models
from localstore.progress import Progress, silent

_CLONE = 0x40049409  # FICLONE of Linux
_PIECE = 4 << 20


class Taken(NamedTuple):
    """A file (blob) in the cache. `digest`: its SHA-256 in hex; `about`: its description; `new`: whether it
    was not in the cache before."""

    digest: str
    about: About
    new: bool


def take_in(models: Models, file: Path, progress: Progress = silent) -> Taken:
    """Add the file to the cache. Raises BadModel if it is not a model, or changes during the call. Raises
    OSError if it cannot be read, DiskError if the cache cannot be written."""
    name = terminal_safe(str(file))
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise BadModel(
            f"{name} cannot be read: {error.strerror}; name a GGUF file that you may read"
        ) from None
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            raise BadModel(f"{name} is not a file; name a GGUF file")
        header = _header(fd, before.st_size, name)
        sha256, digest = _digests(fd, before.st_size, progress)
        recorded = models.about(sha256)
        if recorded is not None and models.intact(sha256, recorded):
            return Taken(sha256, recorded, False)
        part = models.blobs / f".{secrets.token_hex(8)}"
        try:
            with translated_disk_errors(models.blobs, models.blobs):
                models.blobs.mkdir(parents=True, exist_ok=True, mode=0o700)
                how = _place(fd, file, part, before)
            after = os.fstat(fd)
            if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
                raise BadModel(f"{name} was written while it was read; wait for its writer, then pull again")
            about = _about(part, how, str(file.resolve()), digest, header)
            with models.hold_lock():
                part.replace(models.blob(sha256))
                models.put_about(sha256, about)  # after the blob: a record never stands over other bytes
                part.unlink(missing_ok=True)  # renaming one link over another of the same file keeps both
        finally:
            with suppress(OSError):
                part.unlink()
        return Taken(sha256, about, True)
    finally:
        os.close(fd)


def take_upload(
    models: Models, part: Path, sha256: str, digest: str, source: str, how: str = "upload"
) -> Taken:
    """Move the file `part`, which is already on the cache's disk, into the cache. `sha256`, `digest`: its
    SHA-256 and BLAKE3 in hex. `source`, `how`: see `About`. Raises BadModel."""
    with part.open("rb") as file:
        try:
            header = read(file, part.stat().st_size)
        except BadModel as error:
            raise BadModel(f"the blob is not a model: {error.detail}") from None
    about = _about(part, how, source, digest, header)
    with models.hold_lock():
        part.replace(models.blob(sha256))
        models.put_about(sha256, about)
    return Taken(sha256, about, True)


def _about(part: Path, how: str, source: str, digest: str, header: Header) -> About:
    info = part.stat()
    return About(
        size=info.st_size,
        blake3=digest,
        how=how,
        source=source,
        inode=info.st_ino,
        mtime_ns=info.st_mtime_ns,
        header=header,
    )


def _header(fd: int, size: int, name: str) -> Header:
    with open(fd, "rb", closefd=False) as file:
        try:
            header = read(file, size)
        except BadModel as error:
            raise BadModel(f"{name}: {error.detail}") from None
    return header


def _digests(fd: int, size: int, progress: Progress) -> tuple[str, str]:
    """Computes (SHA-256, BLAKE3) of the file in hex, reading it once."""
    first, second, done = hashlib.sha256(), blake3(max_threads=blake3.AUTO), 0
    while piece := os.pread(fd, _PIECE, done):
        first.update(piece)
        second.update(piece)
        done += len(piece)
        progress("reading", min(done, size) >> 20, size >> 20, done)
    return first.hexdigest(), second.hexdigest()


def _place(fd: int, file: Path, part: Path, info: os.stat_result) -> str:
    """Create the file `part` with the bytes of `file`, which is open as `fd`. Returns how this was done:
    reflink, link or copy."""
    target = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.ioctl(target, _CLONE, fd)
            return "reflink"
        except OSError:
            pass  # another file system, or one that shares no bytes
    finally:
        os.close(target)
    part.unlink()
    try:
        os.link(file.resolve(), part)
        linked = part.stat()
        if (linked.st_dev, linked.st_ino) == (info.st_dev, info.st_ino):
            return "link"
        part.unlink()  # the name means another file by now; the open one is copied
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
    free = shutil.disk_usage(part.parent).free
    if free < info.st_size:
        raise DiskError(
            f"the model needs {info.st_size:,} bytes in {part.parent}, and {free:,} are free; free some "
            "space, or set SVC_LLM_HOME to a folder on the disk of the file, where it takes no space"
        )
    try:
        with part.open("xb") as copy:
            done = 0
            while piece := os.pread(fd, _PIECE, done):
                copy.write(piece)
                done += len(piece)
            copy.flush()
            os.fsync(copy.fileno())
    except OSError as error:
        raise DiskError(
            f"the model cannot be written to {part.parent}: {error.strerror}; free some space, then pull "
            "again"
        ) from None
    return "copy"
