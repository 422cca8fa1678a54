"""Tells which ignored folders contain tracked files, without owning (locking) the working copy."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from localstore.folder.git_tracked import GitTracked
from localstore.folder.walk_rules import is_utf8

_BELOW = "SELECT 1 FROM entries WHERE path>? AND path<? LIMIT 1"


class TrackedFolders:
    """Reads the record of the linked `folder`, and git's index in the folder."""

    def __init__(self, folder: Path, record: Path) -> None:
        self._database = record / "state.db"
        self._git = GitTracked(folder, record)
        self._sql: sqlite3.Connection | None = None

    def hold(self, folder: str) -> bool:
        """Whether there is a tracked file below this folder, according to the client's record of the working
        copy or to git's index."""
        self._git.refresh()
        return self._recorded_below(folder) or self._git.keeps_below(folder)

    def _recorded_below(self, folder: str) -> bool:
        if not is_utf8(folder):
            return False
        try:
            if self._sql is None:
                self._sql = sqlite3.connect(f"{self._database.absolute().as_uri()}?mode=ro", uri=True)
            return self._sql.execute(_BELOW, (folder + "/", folder + "0")).fetchone() is not None
        except sqlite3.Error:
            return False

    def close(self) -> None:
        if self._sql is not None:
            self._sql.close()
