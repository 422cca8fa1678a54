"""Reads the files on this machine that are uploaded as assets."""

from __future__ import annotations

import mimetypes
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import msgspec
from blake3 import blake3

from localstore.core.errors import Invalid, UsageError
from localstore.core.model.limits import ASSET_FILE, MIB, in_words
from localstore.core.model.release import BYTES, check_asset_name
from localstore.core.paths import case_key, terminal_safe

PIECE = 1 * MIB
_ENCODED = {"gzip": "application/gzip", "bzip2": "application/x-bzip2", "xz": "application/x-xz"}


class LocalFile(msgspec.Struct, frozen=True):
    """A file to upload as an asset. `size` is its number of bytes, `digest` the BLAKE3 of these bytes."""

    path: Path
    name: str
    size: int
    digest: bytes
    media: str


def local_files(paths: Sequence[str]) -> list[LocalFile]:
    """Read the files at these paths, and describe them. Raises UsageError for a file that cannot be an asset,
    and for two files of the same name."""
    files: dict[str, LocalFile] = {}
    for typed in paths:
        file = _read_file(Path(typed))
        if case_key(file.name) in files:
            raise UsageError(f"{typed} and {files[case_key(file.name)].path} would be one asset {file.name}")
        files[case_key(file.name)] = file
    return list(files.values())


def _read_file(path: Path) -> LocalFile:
    label = terminal_safe(str(path))
    try:
        name = check_asset_name(path.name)
        with path.open("rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode):
                raise UsageError(f"{label} is not a file")
            if info.st_size > ASSET_FILE:
                raise UsageError(
                    f"{label} has {info.st_size} bytes; an asset has at most {in_words(ASSET_FILE)}"
                )
            whole, size = blake3(), 0
            while piece := file.read(PIECE):
                whole.update(piece)
                size += len(piece)
    except Invalid as error:
        raise UsageError(error.detail) from None
    except OSError as error:
        raise UsageError(f"{label} cannot be read ({error.strerror})") from None
    return LocalFile(path, name, size, whole.digest(), media_of(name))


def media_of(name: str) -> str:
    """Return the media type for a file name."""
    guessed, encoding = mimetypes.guess_type(name)
    return _ENCODED.get(encoding, BYTES) if encoding else guessed or BYTES
