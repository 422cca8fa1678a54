"""Writes private files so that each appears under its name only when it is complete and on the disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from blake3 import blake3

from localstore.core.model.limits import MIB
from relay.base.folders import sync_folder
from relay.base.threads import run_on_thread

PIECE = 4 * MIB


def reason(error: OSError) -> str:
    """A text with the reason of the error, and the file's name if the system reports it."""
    what = error.strerror or str(error)
    return f"{what} ({error.filename})" if error.filename else what


def size_of(path: Path) -> int:
    """The size of the file in bytes; -1 if it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def digest_of(path: Path) -> str:
    """BLAKE3 of a file, as hex."""
    hasher = blake3()
    for piece in read_pieces(path):
        hasher.update(piece)
    return hasher.hexdigest()


def read_pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def copy(source: Path, to: Path) -> None:
    """Copy the file `source` to `to` and sync its content to the disk. The caller syncs the folder of
    `to`."""
    with Writing(to) as writing:
        for piece in read_pieces(source):
            writing.write(piece)


class Writing:
    """Writes a file under a temporary name and renames it to `to` when all of it is on the disk. An exception
    leaves the temporary file behind; the next `Writing` of `to` replaces it."""

    def __init__(self, to: Path) -> None:
        self._to = to
        self._new = to.with_name(to.name + ".new")
        self._file = self._new.open("wb")
        os.fchmod(self._file.fileno(), 0o600)
        self._hasher = blake3()

    def write(self, piece: bytes) -> None:
        self._hasher.update(piece)
        self._file.write(piece)

    def digest(self) -> str:
        return self._hasher.hexdigest()

    def finish(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._new.replace(self._to)

    def __enter__(self) -> Writing:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.finish()
        else:
            self._file.close()

    async def __aenter__(self) -> Writing:
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        await run_on_thread(self.__exit__, kind)


def replace(path: Path, content: bytes) -> None:
    """Replace the content of a file atomically."""
    with Writing(path) as writing:
        writing.write(content)
    sync_folder(path.parent)


def sync_folders(top: Path) -> None:
    for folder in (top, *(path for path in top.rglob("*") if path.is_dir())):
        sync_folder(folder)
