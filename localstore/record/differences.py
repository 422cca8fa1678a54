"""The differences between the disk, as last scanned, and the folder's last seal.

They are stored and updated with each change of either side, so that no command has to compare all files.
Differences that concern the branch are not stored, but computed at each call. `find_unsettled` and `foreign`
read the entries (what the record stores about each path, such as its lane, the CRDT text). `new_on_branch`
and `gone_from_branch` compare the frontier (what the branch holds now) with the last seal.

Table `differs`: path → digest of the file on the disk, NULL for no file. A path without a row equals its
sealed version. Each function runs in its caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from localstore.record.entry import FOREIGN, Kind

SCHEMA = "CREATE TABLE differs(path TEXT PRIMARY KEY, digest BLOB) WITHOUT ROWID;"
FILL = """
INSERT INTO differs SELECT stats.path, stats.digest FROM stats LEFT JOIN sealed USING(path)
    WHERE sealed.digest IS NOT stats.digest;
INSERT INTO differs SELECT path, NULL FROM sealed WHERE path NOT IN (SELECT path FROM stats);
"""
# Partial indexes: usually few entries need work.
INDEXES = f"""
CREATE INDEX entries_open ON entries(path) WHERE want IS NOT shadow OR pending>0;
CREATE INDEX entries_foreign ON entries(path) WHERE gen>={FOREIGN};
"""
UNSETTLED = "SELECT path FROM entries WHERE want IS NOT shadow"
FOREIGN_ENTRIES = f"SELECT path FROM entries WHERE gen>={FOREIGN}"  # noqa: S608 - a number
MOVED = """
SELECT path FROM differs
UNION SELECT path FROM entries WHERE want IS NOT shadow OR pending>0
"""
UNLIKE_SEALED = """
UNION SELECT path FROM entries LEFT JOIN sealed USING(path) WHERE shadow IS NOT digest
UNION SELECT path FROM sealed WHERE path NOT IN (SELECT path FROM entries)
"""
# EXCEPT merges two sorted lists, in a third of the time of a lookup per path.
ANY_UNLIKE_SEALED = """
SELECT path, shadow FROM entries EXCEPT SELECT path, digest FROM sealed ORDER BY path LIMIT 1
"""


def record_scan(sql: sqlite3.Connection, fresh: Iterable[tuple[str, bytes]], gone: Iterable[str]) -> None:
    """Record that the disk now has the files `fresh` (path, digest), and no file at the paths `gone`."""
    present, absent = list(fresh), [(path,) for path in gone]
    sql.executemany("DELETE FROM differs WHERE path=?", [*absent, *((path,) for path, _ in present)])
    sql.executemany(
        "INSERT INTO differs SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM sealed WHERE path=? AND digest=?)",
        [(*file, *file) for file in present],
    )
    sql.executemany("INSERT INTO differs SELECT path, NULL FROM sealed WHERE path=?", absent)


def before_sealing(sql: sqlite3.Connection, paths: Iterable[str]) -> None:
    """Give each of these paths a row with the digest that is on the disk. Call it before the last seal's
    digests of these paths change, because a path without a row counts as equal to the last seal."""
    sql.executemany(
        "INSERT OR IGNORE INTO differs SELECT ?, (SELECT digest FROM sealed WHERE path=?)",
        [(path, path) for path in paths],
    )


def after_sealing(sql: sqlite3.Connection, sealed: Iterable[tuple[str, bytes | None]]) -> None:
    """Delete the table's rows of those paths whose file on the disk equals the new seal. `sealed`: (path,
    digest in the new seal) for each path; the digest is None if the seal has no file there."""
    sql.executemany("DELETE FROM differs WHERE path=? AND digest IS ?", sealed)


def recompute(sql: sqlite3.Connection, disk: Mapping[str, bytes], sealed: Mapping[str, bytes]) -> None:
    """Fill the table of differences anew, by comparing all files. `disk`, `sealed`: the digests of the files
    on the disk and in the last seal, by path."""
    sql.execute("DELETE FROM differs")
    sql.executemany(
        "INSERT INTO differs VALUES(?,?)",
        [(path, digest) for path, digest in disk.items() if sealed.get(path) != digest]
        + [(path, None) for path in sealed.keys() - disk.keys()],
    )


def all_unsealed(sql: sqlite3.Connection) -> None:
    """Record that every file on the disk is new, because the last seal is about to be forgotten."""
    sql.execute("INSERT OR IGNORE INTO differs SELECT path, digest FROM sealed")
    sql.execute("DELETE FROM differs WHERE digest IS NULL")


def changed_new_removed(sql: sqlite3.Connection) -> tuple[list[str], list[str], list[str]]:
    """The files on the disk that differ from the last seal: (changed paths, new paths, removed paths), each
    list sorted."""
    rows = sql.execute(
        "SELECT differs.path, differs.digest IS NULL, sealed.path IS NULL "
        "FROM differs LEFT JOIN sealed USING(path) ORDER BY differs.path"
    )
    changed: list[str] = []
    new: list[str] = []
    removed: list[str] = []
    for path, absent, unsealed in rows:
        (removed if absent else new if unsealed else changed).append(path)
    return changed, new, removed


def seen_on_disk(sql: sqlite3.Connection, path: str) -> bytes | None:
    """The digest of the file at the path as last scanned; None if there was none."""
    for (digest,) in sql.execute("SELECT digest FROM differs WHERE path=?", (path,)):
        return None if digest is None else bytes(digest)
    for (digest,) in sql.execute("SELECT digest FROM sealed WHERE path=?", (path,)):
        return bytes(digest)
    return None


def unsealed_digests(sql: sqlite3.Connection) -> set[bytes]:
    """Digests of the files on the disk that differ from their sealed version."""
    rows = sql.execute("SELECT digest FROM differs WHERE digest IS NOT NULL")
    return {digest for (digest,) in rows}


def may_need_update(sql: sqlite3.Connection) -> list[str]:
    """The paths at which the disk, the last seal and the entry (what the record stores about the path) are
    not all equal, sorted. Every path that needs an update is among them."""
    also = "" if shown_as_sealed(sql) else UNLIKE_SEALED
    return only_column(sql.execute(f"{MOVED}{also}ORDER BY path"))


def shown_as_sealed(sql: sqlite3.Connection) -> bool:
    """Whether the entries contain exactly the files of the last seal, with the same bytes."""
    counts = "SELECT (SELECT count(*) FROM entries), (SELECT count(*) FROM sealed)"
    entries, files = sql.execute(counts).fetchone()
    return entries == files and sql.execute(ANY_UNLIKE_SEALED).fetchone() is None


def find_unsettled(sql: sqlite3.Connection) -> list[str]:
    """The paths whose file on the disk does not show the text of its lane, which are those without
    `PathRecord.settled`."""
    return only_column(sql.execute(UNSETTLED))


def foreign(sql: sqlite3.Connection) -> list[str]:
    """The paths of the files whose lane (CRDT text) on this branch is not known yet
    (`PathRecord.foreign`)."""
    return only_column(sql.execute(FOREIGN_ENTRIES))


def new_on_branch(sql: sqlite3.Connection) -> list[tuple[str, Kind, bytes, int]]:
    """(path, kind, digest, size) of the files of the frontier (what the branch holds now) that are not in the
    last seal or differ from it."""
    return sql.execute(
        "SELECT rows.path, rows.kind, rows.digest, rows.size FROM rows LEFT JOIN sealed USING(path) WHERE "
        "rows.digest IS NOT sealed.digest OR rows.kind IS NOT sealed.kind OR rows.size IS NOT sealed.size"
    ).fetchall()


def gone_from_branch(sql: sqlite3.Connection) -> list[str]:
    """The paths in the last seal that the frontier (what the branch holds now) does not have."""
    return only_column(sql.execute("SELECT path FROM sealed WHERE path NOT IN (SELECT path FROM rows)"))


def only_column(cursor: sqlite3.Cursor) -> list[str]:
    """The values that a query with a single column has selected."""
    return [value for (value,) in cursor]
