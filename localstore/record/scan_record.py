"""What the disk had when it was last looked at: by folder what walks recorded, single files that were looked
at since, what was left out, and the moment up to which all of it is true. Each call is part of its caller's
transaction.

Table `asides`: folder (its path with a slash behind, as the system's bytes) →
`localstore.folder.scan_result.Aside`. It is true while a last look is kept: one
that no watcher answered drops that and leaves the table.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import msgspec

from localstore.folder.scan_result import Exclusions, PartialWalk
from localstore.folder.stat_cache import RecordedFolder, Stat, with_single_files
from localstore.folder.walk_rules import is_utf8
from localstore.watch.protocol import Token

SCHEMA = "CREATE TABLE folders(path TEXT PRIMARY KEY, mark BLOB NOT NULL, files BLOB NOT NULL);"
MARKS = "CREATE INDEX folder_marks ON folders(path, mark);"
ASIDES = "CREATE TABLE asides(folder BLOB PRIMARY KEY, encoded BLOB NOT NULL) WITHOUT ROWID;"
LAST_SCAN = "looked"  # in `meta`: the last look, beside a watcher
_ONE = "SELECT path, mark, files FROM folders WHERE path=?"
_BELOW = "SELECT path, mark, files FROM folders WHERE path>=? AND path<?"


class LastScan(msgspec.Struct, frozen=True, array_like=True):
    """The last look: the moment up to which all records of the disk are true, and when a look last went
    everywhere, in seconds of Unix time."""

    token: Token
    everywhere: int


class ScanRecord:
    """Typed access to what is recorded of the disk."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql

    # --- files

    def folders(self) -> dict[str, RecordedFolder]:
        """By folder, its path with a slash behind, what is recorded of its files."""
        rows = self._sql.execute("SELECT path, mark FROM folders")
        found = {path: RecordedFolder(mark, partial(self._files, path)) for path, mark in rows}
        return found | with_single_files(found, self._single())

    def _files(self, folder: str) -> bytes:
        """The files of a folder as they are recorded now, encoded."""
        for (files,) in self._sql.execute("SELECT files FROM folders WHERE path=?", (folder,)):
            return bytes(files)
        return RecordedFolder.of([], b"").encoded

    def folders_in(self, part: PartialWalk) -> dict[str, RecordedFolder]:
        """The same of some folders."""
        found: dict[str, RecordedFolder] = {}
        for path in part.files | part.all:
            if not is_utf8(path):
                continue
            below = path in part.all
            rows = self._sql.execute(_BELOW if below else _ONE, _range(path) if below else (path,))
            found.update((path, RecordedFolder(mark, files)) for path, mark, files in rows)
        return found | with_single_files(
            found, (one for one in self._single() if part.covers(_folder(one.path)))
        )

    def single_folders(self) -> set[str]:
        """The folders of files that were looked at since the last walk."""
        return {_folder(one.path) for one in self._single()}

    def file(self, path: str) -> Stat | None:
        """One file."""
        for row in self._sql.execute("SELECT * FROM stats WHERE path=?", (path,)):
            return Stat(*row)
        found = RecordedFolder(b"", self._files(_folder(path))).stats()
        return next((one for one in found if one.path == path), None)

    def put_folders(self, found: Mapping[str, RecordedFolder | None]) -> None:
        """Record folders, None to forget one; they hold all that single looks found."""
        gone = [(path,) for path, one in found.items() if one is None]
        put = [(path, one.mark, one.encoded) for path, one in found.items() if one is not None]
        self._sql.execute("DELETE FROM stats")
        self._sql.executemany("DELETE FROM folders WHERE path=?", gone)
        self._sql.executemany("INSERT OR REPLACE INTO folders VALUES(?,?,?)", put)

    def put_single(self, found: Iterable[Stat], gone: Iterable[str]) -> None:
        """Record single files, and that others are gone."""
        self._sql.executemany("DELETE FROM stats WHERE path=?", [(path,) for path in gone])
        self._sql.executemany("INSERT OR REPLACE INTO stats VALUES(?,?,?,?,?,?,?,?)", found)

    def _single(self) -> Iterator[Stat]:
        return (Stat(*row) for row in self._sql.execute("SELECT * FROM stats"))

    # --- what was left out, and the last look

    def exclusions(self) -> dict[str, Exclusions]:
        """What the last look left out, by folder."""
        found = self._sql.execute("SELECT folder, encoded FROM asides")
        return {os.fsdecode(folder): _ASIDE(encoded) for folder, encoded in found}

    def put_exclusions(self, changes: Mapping[str, Exclusions | None]) -> None:
        """Record those that changed; None: the folder has none any more."""
        gone = [(os.fsencode(folder),) for folder, aside in changes.items() if aside is None]
        put = [
            (os.fsencode(folder), _ENCODE(aside)) for folder, aside in changes.items() if aside is not None
        ]
        self._sql.executemany("DELETE FROM asides WHERE folder=?", gone)
        self._sql.executemany("INSERT OR REPLACE INTO asides VALUES(?,?)", put)

    def last_scan(self) -> LastScan | None:
        """The last look, if a watcher told its moment."""
        for (kept,) in self._sql.execute("SELECT value FROM meta WHERE key=?", (LAST_SCAN,)):
            return decode_last_scan(kept)
        return None

    def put_last_scan(self, last: LastScan | None) -> None:
        """None: the next look goes everywhere. So it must where other paths are tracked than at the last one:
        what rules leave out may be others too, and no event tells."""
        kept = None if last is None else _ENCODE(last)
        self._sql.execute("INSERT OR REPLACE INTO meta VALUES(?,?)", (LAST_SCAN, kept))


def decode_last_scan(kept: object) -> LastScan | None:
    """What was kept of the last look; None for anything else."""
    try:
        return _LOOKED(kept) if isinstance(kept, bytes) else None
    except msgspec.MsgspecError:
        return None


_ENCODE = msgspec.msgpack.Encoder().encode
_ASIDE = msgspec.msgpack.Decoder(Exclusions).decode
_LOOKED = msgspec.msgpack.Decoder(LastScan).decode


def _folder(path: str) -> str:
    """The folder of a file, with a slash behind; empty for the root."""
    return path[: path.rfind("/") + 1]


def _range(prefix: str) -> tuple[str, str | bytes]:
    """Where the paths that begin with this one begin and end: 0 follows the slash, bytes every text."""
    return (prefix, f"{prefix[:-1]}0") if prefix else ("", b"")
