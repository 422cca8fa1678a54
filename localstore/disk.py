"""What the disk had when it was last looked at, as the tables `folders` and `stats` keep it: by folder what
walks recorded, and single files that were looked at since. Each function is part of its caller's transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping

from localstore.folders import is_utf8
from localstore.found import Part
from localstore.stats import Seen, Stat, joined

SCHEMA = "CREATE TABLE folders(path TEXT PRIMARY KEY, mark BLOB NOT NULL, files BLOB NOT NULL);"
_ONE = "SELECT path, mark, files FROM folders WHERE path=?"
_BELOW = "SELECT path, mark, files FROM folders WHERE path>=? AND path<?"


def folders(sql: sqlite3.Connection) -> dict[str, Seen]:
    """By folder, its path with a slash behind, what is recorded of its files."""
    rows = sql.execute("SELECT path, mark, files FROM folders")
    found = {path: Seen(mark, files) for path, mark, files in rows}
    return found | joined(found, _single(sql))


def folders_in(sql: sqlite3.Connection, part: Part) -> dict[str, Seen]:
    """The same of some folders."""
    found: dict[str, Seen] = {}
    for path in part.files | part.all:
        if not is_utf8(path):
            continue
        below = path in part.all
        rows = sql.execute(_BELOW if below else _ONE, _range(path) if below else (path,))
        found.update((path, Seen(mark, files)) for path, mark, files in rows)
    return found | joined(found, (one for one in _single(sql) if part.covers(_folder(one.path))))


def single_folders(sql: sqlite3.Connection) -> set[str]:
    """The folders of files that were looked at since the last walk."""
    return {_folder(one.path) for one in _single(sql)}


def file(sql: sqlite3.Connection, path: str) -> Stat | None:
    """One file."""
    for row in sql.execute("SELECT * FROM stats WHERE path=?", (path,)):
        return Stat(*row)
    for (files,) in sql.execute("SELECT files FROM folders WHERE path=?", (_folder(path),)):
        return next((one for one in Seen(b"", files).stats() if one.path == path), None)
    return None


def put_folders(sql: sqlite3.Connection, found: Mapping[str, Seen | None]) -> None:
    """Record folders, None to forget one; they hold all that single looks found."""
    sql.execute("DELETE FROM stats")
    sql.executemany(
        "DELETE FROM folders WHERE path=?", [(path,) for path, one in found.items() if one is None]
    )
    sql.executemany(
        "INSERT OR REPLACE INTO folders VALUES(?,?,?)",
        [(path, *one) for path, one in found.items() if one is not None],
    )


def put_single(sql: sqlite3.Connection, found: Iterable[Stat], gone: Iterable[str]) -> None:
    """Record single files, and that others are gone."""
    sql.executemany("DELETE FROM stats WHERE path=?", [(path,) for path in gone])
    sql.executemany("INSERT OR REPLACE INTO stats VALUES(?,?,?,?,?,?,?,?)", found)


def _single(sql: sqlite3.Connection) -> Iterator[Stat]:
    return (Stat(*row) for row in sql.execute("SELECT * FROM stats"))


def _folder(path: str) -> str:
    """The folder of a file, with a slash behind; empty for the root."""
    return path[: path.rfind("/") + 1]


def _range(prefix: str) -> tuple[str, str | bytes]:
    """Where the paths that begin with this one begin and end: 0 follows the slash, bytes every text."""
    return (prefix, f"{prefix[:-1]}0") if prefix else ("", b"")
