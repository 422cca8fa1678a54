"""The disk space that a node keeps free. When less is free, uploads are refused; deleting, reading and
signing in still work.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from localstore.core.errors import NoSpace
from localstore.core.model.limits import MIB

FRESH = 0.5  # seconds for which a reading of the disk is used


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes and inodes of a file system."""

    bytes: int
    inodes: int


class Reserve:
    """Checks the free space of the file systems that contain `folder` and `others`: the data, the packs, a
    SQLite database. Database servers and bucket servers have limits of their own."""

    def __init__(self, folder: Path, space: Space, others: Iterable[Path] = ()) -> None:
        self._folder, self._space, self._others = folder, space, tuple(others)
        self._looked_at = float("-inf")
        self._lacking: str | None = None

    def lacking(self) -> str | None:
        """A sentence that names the file system whose free space is below the reserve; None if all have
        enough. Raises OSError if the free space cannot be read."""
        now = time.monotonic()
        if now - self._looked_at > FRESH:
            self._lacking, self._looked_at = self._find_lack(), now
        return self._lacking

    def require(self) -> None:
        """Raise NoSpace if free space is below the reserve."""
        if lack := self.lacking():
            raise NoSpace(
                f"this node is nearly full: {lack}; this request stored nothing. "
                "Reading and deleting still work; ask its operator to make room "
                "(relay gc, relay quota, a larger disk)"
            )

    def _find_lack(self) -> str | None:
        folders = [self._folder, *(folder for folder in self._others if folder.exists())]
        return next(filter(None, map(self._find_lack_in, folders)), None)

    def _find_lack_in(self, folder: Path) -> str | None:
        stat = os.statvfs(folder)
        free, inodes = stat.f_bavail * stat.f_frsize, stat.f_favail
        if free < self._space.bytes:
            return f"{free // MIB} MiB are free, and {self._space.bytes // MIB} MiB are kept in reserve"
        if stat.f_files and inodes < self._space.inodes:  # some file systems count none
            return f"{inodes} files can be made, and {self._space.inodes} are kept in reserve"
        return None
