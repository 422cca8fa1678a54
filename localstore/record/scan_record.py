"""What the last scan found: files by folder, exclusions, the watcher's token, and single files that were
hashed since the scan.

Each call runs in its caller's transaction.

Table `asides`: folder (raw path with a trailing slash) → what the scan left out of it
(`localstore.folder.scan_result.Exclusions`). The table may be used only while a last scan is recorded. A scan
without a watcher deletes that record, but not this table."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import msgspec

from localstore.folder.scan_result import Exclusions, PartialWalk
from localstore.folder.stat_cache import RecordedFolder, Stat, with_single_files
from localstore.folder.walk_rules import is_utf8
from localstore.watch.protocol import WatcherToken

SCHEMA = "CREATE TABLE folders(path TEXT PRIMARY KEY, mark BLOB NOT NULL, files BLOB NOT NULL);"
MARKS = "CREATE INDEX folder_marks ON folders(path, mark);"
ASIDES = "CREATE TABLE asides(folder BLOB PRIMARY KEY, encoded BLOB NOT NULL) WITHOUT ROWID;"
LAST_SCAN = "looked"  # in `meta`: the last look, beside a watcher
_ONE = "SELECT path, mark, files FROM folders WHERE path=?"
_BELOW = "SELECT path, mark, files FROM folders WHERE path>=? AND path<?"


class LastScan(msgspec.Struct, frozen=True, array_like=True):
    """The last scan. `token`: the watcher's token up to which the record is correct. `everywhere`: when the
    whole folder was last scanned (Unix seconds). `git`: digest of the names that git tracked at that time."""

    token: WatcherToken
    everywhere: int
    git: bytes = b""


class ScanRecord:
    """Reads and writes what the last scan found."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql

    # --- files

    def folders(self) -> dict[str, RecordedFolder]:
        """The recorded files of each folder, by the folder's path with a trailing slash."""
        rows = self._sql.execute("SELECT path, mark FROM folders")
        recorded = {path: RecordedFolder(mark, partial(self._files, path)) for path, mark in rows}
        return recorded | with_single_files(recorded, self._single())

    def _files(self, folder: str) -> bytes:
        """The files of a folder, encoded. For a folder that is not recorded, this is the encoding of an empty
        list."""
        for (files,) in self._sql.execute("SELECT files FROM folders WHERE path=?", (folder,)):
            return bytes(files)
        return RecordedFolder.of([], b"").encoded

    def folders_in(self, part: PartialWalk) -> dict[str, RecordedFolder]:
        """The recorded files of the folders that a partial scan visits, by the folder's path with a trailing
        slash."""
        folders: dict[str, RecordedFolder] = {}
        for path in part.files | part.all:
            if not is_utf8(path):
                continue
            below = path in part.all
            rows = self._sql.execute(_BELOW if below else _ONE, _range(path) if below else (path,))
            folders.update((path, RecordedFolder(mark, files)) for path, mark, files in rows)
        return folders | with_single_files(
            folders, (stat for stat in self._single() if part.covers(_folder(stat.path)))
        )

    def single_folders(self) -> set[str]:
        """The folders that contain files hashed since the last scan."""
        return {_folder(stat.path) for stat in self._single()}

    def single(self, path: str) -> Stat | None:
        """The stat of the file at this path if it was hashed since the last scan, else None."""
        for row in self._sql.execute("SELECT * FROM stats WHERE path=?", (path,)):
            return Stat(*row)
        return None

    def file(self, path: str) -> Stat | None:
        """The last recorded stat of the file at this path; None if there is none."""
        single = self.single(path)
        if single is not None:
            return single
        stats = RecordedFolder(b"", self._files(_folder(path))).stats()
        return next((stat for stat in stats if stat.path == path), None)

    def put_folders(self, folders: Mapping[str, RecordedFolder | None]) -> None:
        """Store folders, or forget a folder that is None. The stats of single files are dropped, because the
        folders contain these files now."""
        gone = [(path,) for path, folder in folders.items() if folder is None]
        put = [(path, folder.mark, folder.encoded) for path, folder in folders.items() if folder is not None]
        self._sql.execute("DELETE FROM stats")
        self._sql.executemany("DELETE FROM folders WHERE path=?", gone)
        self._sql.executemany("INSERT OR REPLACE INTO folders VALUES(?,?,?)", put)

    def put_single(self, stats: Iterable[Stat], gone: Iterable[str]) -> None:
        """Store the stats of single files that were hashed since the last scan, and forget those of the paths
        `gone`."""
        self._sql.executemany("DELETE FROM stats WHERE path=?", [(path,) for path in gone])
        self._sql.executemany("INSERT OR REPLACE INTO stats VALUES(?,?,?,?,?,?,?,?)", stats)

    def _single(self) -> Iterator[Stat]:
        return (Stat(*row) for row in self._sql.execute("SELECT * FROM stats"))

    # --- what was left out, and the last look

    def exclusions(self) -> dict[str, Exclusions]:
        """What the last scan left out of each folder, by the folder's path."""
        rows = self._sql.execute("SELECT folder, encoded FROM asides")
        return {os.fsdecode(folder): _ASIDE(encoded) for folder, encoded in rows}

    def put_exclusions(self, changes: Mapping[str, Exclusions | None]) -> None:
        """Store the changed exclusions of each folder. None means that nothing of the folder is left out any
        more."""
        gone = [(os.fsencode(folder),) for folder, aside in changes.items() if aside is None]
        put = [
            (os.fsencode(folder), _ENCODE(aside)) for folder, aside in changes.items() if aside is not None
        ]
        self._sql.executemany("DELETE FROM asides WHERE folder=?", gone)
        self._sql.executemany("INSERT OR REPLACE INTO asides VALUES(?,?)", put)

    def last_scan(self) -> LastScan | None:
        """The last scan. None if it was made without a watcher, because a scan is only recorded with the
        watcher's token."""
        for (encoded,) in self._sql.execute("SELECT value FROM meta WHERE key=?", (LAST_SCAN,)):
            return decode_last_scan(encoded)
        return None

    def put_last_scan(self, last: LastScan | None) -> None:
        """Store the last scan. None makes the next scan visit the whole folder. That is needed when the
        tracked paths change: ignored files may then have to be scanned, and no event reports that."""
        encoded = None if last is None else _ENCODE(last)
        self._sql.execute("INSERT OR REPLACE INTO meta VALUES(?,?)", (LAST_SCAN, encoded))


def decode_last_scan(encoded: object) -> LastScan | None:
    """The last scan, decoded. None if `encoded` is not an encoded last scan."""
    try:
        return _LOOKED(encoded) if isinstance(encoded, bytes) else None
    except msgspec.MsgspecError:
        return None


_ENCODE = msgspec.msgpack.Encoder().encode
_ASIDE = msgspec.msgpack.Decoder(Exclusions).decode
_LOOKED = msgspec.msgpack.Decoder(LastScan).decode


def _folder(path: str) -> str:
    """The path of the folder that contains a file, with a trailing slash. "" for the root."""
    return path[: path.rfind("/") + 1]


def _range(prefix: str) -> tuple[str, str | bytes]:
    """Bounds (first, last) of an SQL query for all paths that begin with `prefix`, a path with a trailing
    slash or "". The character `0`, which follows the slash in the alphabet, ends the range."""
    return (prefix, f"{prefix[:-1]}0") if prefix else ("", b"")
