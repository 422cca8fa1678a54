"""The SQLite database of one working copy (part of its record).

Each transaction is one step of the protocol that keeps the folder and the branch in sync. After a crash the
database contains all completed steps. It uses the journal mode WAL and synchronous FULL, so a completed step
also survives a power cut."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from msgspec.structs import astuple

from localstore.folder.stat_cache import RecordedFolder, Stat, with_single_files
from localstore.folder.walk_rules import is_utf8
from localstore.record import differences
from localstore.record.arrivals import ArrivalTable
from localstore.record.byte_files import ByteFiles
from localstore.record.conflicts import Conflicts
from localstore.record.entry import PathRecord
from localstore.record.object_index import ObjectIndex
from localstore.record.rows import FrontierRow, Intent, SealedFile, SealedTree
from localstore.record.scan_record import ScanRecord
from localstore.record.schema import STEPS
from localstore.record.sql import AT_ONCE, select_in

__all__ = [
    "PARTIAL",
    "RESCUED",
    "STALE_EPOCH",
    "Database",
    "FrontierRow",
    "Intent",
    "SealedFile",
    "SealedTree",
]
PARTIAL = "partial"  # state of an intent: a large file is still arriving
RESCUED = "rescued"  # names of the earlier records that were rescued, separated by spaces
STALE_EPOCH = -1  # epoch of a row that must be fetched again


class Database:
    """Reads and writes `state.db`: one connection, used by one thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sql = sqlite3.connect(path, isolation_level=None)
        self.scan_record = ScanRecord(self._sql)
        self.objects = ObjectIndex(self._sql)
        self.conflicts = Conflicts(self._sql)
        self.arrivals = ArrivalTable(self._sql)
        self.byte_files = ByteFiles(self._sql)
        self._depth = 0
        self._values: dict[str, str | int | bytes | None] | None = None  # cache of the table `meta`
        self._sql.execute("PRAGMA journal_mode=WAL")
        self._sql.execute("PRAGMA synchronous=FULL")
        self._sql.execute("PRAGMA secure_delete=FAST")  # some builds overwrite deleted rows with zeros
        (version,) = self._sql.execute("PRAGMA user_version").fetchone()
        if version < len(STEPS):
            steps = "".join(STEPS[version:])
            self._sql.executescript(f"BEGIN;{steps}PRAGMA user_version={len(STEPS)};COMMIT;")

    def close(self) -> None:
        self._sql.close()

    def version(self) -> int:
        """A number that changes when another connection has changed the database. If it has changed, cached
        values are dropped."""
        self._values = None
        return cast("int", self._sql.execute("PRAGMA data_version").fetchone()[0])

    @contextmanager
    def step(self) -> Iterator[None]:
        """A context with one transaction. A step inside another step is part of the outer transaction."""
        if self._depth == 0:
            self._sql.execute("BEGIN IMMEDIATE")
        self._depth += 1
        try:
            yield
        except BaseException:
            self._depth -= 1
            if self._depth == 0:
                self._values = None
                self.byte_files.forget_total()
                self._sql.execute("ROLLBACK")
            raise
        self._depth -= 1
        if self._depth == 0:
            self._values = None  # a commit may fail
            self._sql.execute("COMMIT")

    # --- single values

    def get(self, key: str) -> str | int | bytes | None:
        if self._values is None:
            self._values = dict(self._sql.execute("SELECT key, value FROM meta").fetchall())
        return self._values.get(key)

    def text(self, key: str) -> str | None:
        value = self.get(key)
        return value if isinstance(value, str) else None

    def number(self, key: str) -> int:
        value = self.get(key)
        return value if isinstance(value, int) else 0

    def put(self, key: str, value: str | int | bytes | None) -> None:
        self._sql.execute("INSERT OR REPLACE INTO meta VALUES(?,?)", (key, value))
        self._values = None

    def drop_value(self, key: str) -> None:
        if self.get(key) is not None:
            self._sql.execute("DELETE FROM meta WHERE key = ?", (key,))
            self._values = None

    # --- entries

    def entries(self) -> dict[str, PathRecord]:
        return {row[0]: PathRecord(*row) for row in self._sql.execute("SELECT * FROM entries")}

    def entries_at(self, paths: Iterable[str]) -> dict[str, PathRecord]:
        """The entries at these paths, by path. Paths without an entry are left out."""
        rows = select_in(self._sql, "SELECT * FROM entries WHERE path", paths)
        return {row[0]: PathRecord(*row) for row in rows}

    def large_files(self) -> list[tuple[str, bytes, int]]:
        """(path, digest, size) of each large file that was written to the folder. Large files are stored in
        chunks."""
        cursor = self._sql.execute(
            "SELECT path, shadow, size FROM entries WHERE kind='chunked' AND shadow IS NOT NULL"
        )
        return cursor.fetchall()

    def paths_of_binaries(self, digests: Collection[bytes]) -> dict[bytes, list[str]]:
        """The paths of the files with these contents that were written to the folder, by digest. Text files
        and files that are stored in chunks are left out."""
        select = "SELECT shadow, path FROM entries WHERE kind='blob'"
        if len(digests) <= AT_ONCE:
            rows: Iterable[tuple[bytes, str]] = select_in(self._sql, f"{select} AND shadow", digests)
        else:  # no index leads to a digest, so the table is read once instead of once for each lot
            rows = (row for row in self._sql.execute(select) if row[0] in digests)
        paths: dict[bytes, list[str]] = {}
        for shadow, path in rows:
            paths.setdefault(shadow, []).append(path)
        return paths

    def knows_any(self) -> bool:
        """Whether the record has any entry."""
        return self._sql.execute("SELECT 1 FROM entries LIMIT 1").fetchone() is not None

    def find_unsettled(self) -> list[str]:
        return differences.find_unsettled(self._sql)

    def foreign(self) -> list[str]:
        return differences.foreign(self._sql)

    def seen_on_disk(self, path: str) -> bytes | None:
        return differences.seen_on_disk(self._sql, path)

    def unsealed_digests(self) -> set[bytes]:
        return differences.unsealed_digests(self._sql)

    def may_need_update(self) -> list[str]:
        return differences.may_need_update(self._sql)

    def shows_unsealed(self) -> bool:
        """Whether the folder shows the branch with edits that the last seal lacks, as far as is recorded."""
        return not differences.shown_as_sealed(self._sql)

    def put_entries(self, entries: Iterable[PathRecord]) -> None:
        self._sql.executemany(
            "INSERT OR REPLACE INTO entries VALUES(?,?,?,?,?,?,?,?,?,?,?)", map(astuple, entries)
        )

    def tracks(self, path: str) -> bool:
        """Whether this file has an entry; False for a name that is not UTF-8."""
        return (
            is_utf8(path)
            and self._sql.execute("SELECT 1 FROM entries WHERE path=?", (path,)).fetchone() is not None
        )

    def tracks_below(self, folder: str) -> bool:
        """Whether a file below this directory has an entry."""
        below = "SELECT 1 FROM entries WHERE path>? AND path<? LIMIT 1"
        between = (folder + "/", folder + "0")
        return is_utf8(folder) and self._sql.execute(below, between).fetchone() is not None

    def drop_entries(self, paths: Iterable[str]) -> None:
        """Delete the entries of these paths, with their lane states, pending updates and updates in
        flight."""
        rows = [(path,) for path in paths]
        for table in ("entries", "lane_states", "pending", "flights"):
            self._delete(table, rows)

    def _delete(self, table: str, rows: list[tuple[str]]) -> None:
        """Delete the rows of a table whose paths are in `rows`. An empty table is skipped, because most of
        the tables are empty."""
        if self._sql.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone():  # noqa: S608 - fixed names
            self._sql.executemany(f"DELETE FROM {table} WHERE path=?", rows)  # noqa: S608

    def replace_entries(self, entries: Collection[PathRecord]) -> None:
        """Store these entries. Lane states and pending updates of their paths are deleted."""
        rows = [(entry.path,) for entry in entries]
        for table in ("lane_states", "pending"):
            self._delete(table, rows)
        self.put_entries(entries)

    def lane_state(self, path: str) -> tuple[bytes, bool] | None:
        """The stored CRDT state of a path's lane as (state, whole). None if nothing is stored. `whole` is
        False if `state` is only the update that follows the lane's first text (see `put_lane_state`)."""
        row = self._sql.execute("SELECT state, whole FROM lane_states WHERE path=?", (path,)).fetchone()
        return (row[0], bool(row[1])) if row else None

    def put_lane_state(self, path: str, state: bytes | None, whole: bool = True) -> None:
        """Store the CRDT state of a lane that has edits, or delete it if `state` is None. `whole`: False if
        `state` is not a whole state, but the single update that follows the lane's first text (genesis)."""
        if state is None:
            self._sql.execute("DELETE FROM lane_states WHERE path=?", (path,))
        else:
            self._sql.execute("INSERT OR REPLACE INTO lane_states VALUES(?,?,?)", (path, state, whole))

    def pending(self, path: str) -> list[bytes]:
        rows = self._sql.execute("SELECT ops FROM pending WHERE path=? ORDER BY id", (path,))
        return [row[0] for row in rows]

    def add_pending(self, path: str, ops: bytes) -> None:
        self._sql.execute("INSERT INTO pending(path, ops) VALUES(?,?)", (path, ops))

    def drop_pending(self, path: str, first: int) -> None:
        """Delete the oldest pending updates of a path. `first`: how many to delete."""
        self._sql.execute(
            "DELETE FROM pending WHERE id IN (SELECT id FROM pending WHERE path=? ORDER BY id LIMIT ?)",
            (path, first),
        )

    def put_pending(self, path: str, updates: Iterable[bytes]) -> None:
        """Replace the pending updates of a path with `updates`."""
        self._sql.execute("DELETE FROM pending WHERE path=?", (path,))
        self._sql.executemany("INSERT INTO pending(path, ops) VALUES(?,?)", [(path, ops) for ops in updates])

    # --- updates in flight

    def flights(self) -> list[tuple[str, bytes]]:
        """Each update in flight (sent and not answered) as (path, encoded update), in the order of the
        updates' numbers."""
        return self._sql.execute("SELECT path, body FROM flights ORDER BY n").fetchall()

    def flight_kinds(self) -> dict[str, str]:
        """The kind of the update in flight, by path. Paths without one are left out."""
        return dict(self._sql.execute("SELECT path, kind FROM flights").fetchall())

    def flight_numbers(self) -> set[int]:
        """Numbers of the updates in flight."""
        return {n for (n,) in self._sql.execute("SELECT n FROM flights")}

    def lowest_flight(self) -> int | None:
        return cast("int | None", self._sql.execute("SELECT min(n) FROM flights").fetchone()[0])

    def put_flights(self, flights: Iterable[tuple[int, str, str, bytes]]) -> None:
        """Store updates in flight, each as (number, path, kind, encoded update)."""
        self._sql.executemany("INSERT INTO flights VALUES(?,?,?,?)", flights)

    def drop_flights(self, numbers: Iterable[int]) -> None:
        """Delete the updates in flight with these numbers, which the relay has answered."""
        settled = sorted(set(numbers))
        if settled and settled[-1] - settled[0] == len(settled) - 1:
            self._sql.execute("DELETE FROM flights WHERE n BETWEEN ? AND ?", (settled[0], settled[-1]))
        else:
            self._sql.executemany("DELETE FROM flights WHERE n=?", [(n,) for n in settled])

    # --- the frontier and the last seal

    def rows(self) -> dict[str, FrontierRow]:
        new = tuple.__new__
        return {row[0]: new(FrontierRow, row) for row in self._sql.execute("SELECT * FROM rows")}

    def row(self, path: str) -> FrontierRow | None:
        values = self._sql.execute("SELECT * FROM rows WHERE path=?", (path,)).fetchone()
        return FrontierRow(*values) if values else None

    def row_sizes(self, paths: Iterable[str]) -> dict[str, int]:
        """The size in bytes of the files at these paths on the recorded frontier, by path. Paths without a
        file there are left out."""
        return dict(select_in(self._sql, "SELECT path, size FROM rows WHERE path", paths))

    def put_rows(self, rows: Sequence[FrontierRow], gone: Collection[str], whole: bool) -> None:
        """Store rows of the frontier, and delete the rows of the paths `gone`. `whole`: delete all rows that
        are not in `rows`."""
        if whole:
            self._sql.execute("DELETE FROM rows")
            self.byte_files.forget_total()
        self.byte_files.changing(rows, gone)
        self._sql.executemany("DELETE FROM rows WHERE path=?", [(path,) for path in gone])
        self._sql.executemany("INSERT OR REPLACE INTO rows VALUES(?,?,?,?,?,?,?,?,?)", rows)

    def mark_row_stale(self, path: str) -> None:
        """Make the next pull fetch the lane of this path. Called after the relay has refused an update of the
        text, because the lane may have a new epoch although its row did not change."""
        self._sql.execute("UPDATE rows SET epoch=? WHERE path=? AND kind='text'", (STALE_EPOCH, path))

    def read_sealed(self) -> dict[str, SealedFile]:
        new, rows = tuple.__new__, self._sql.execute("SELECT path, kind, digest, size FROM sealed")
        return {row[0]: new(SealedFile, row[1:]) for row in rows}

    def sealed_among(self, paths: Iterable[str]) -> set[str]:
        """Those of `paths` that the last seal contains."""
        return {row[0] for row in select_in(self._sql, "SELECT path FROM sealed WHERE path", paths)}

    def frontier_since_seal(self) -> dict[str, SealedFile | None]:
        """The files of the frontier that differ from the last seal, by path. None stands for a file that the
        frontier lacks."""
        changes: dict[str, SealedFile | None] = dict.fromkeys(differences.gone_from_branch(self._sql))
        changes.update((row[0], SealedFile(*row[1:])) for row in differences.new_on_branch(self._sql))
        return changes

    def count_rows(self) -> int:
        """The number of files on the recorded frontier."""
        return cast("int", self._sql.execute("SELECT count(*) FROM rows").fetchone()[0])

    def count_shown(self) -> int:
        """How many files of the branch are in the folder, as far as the record knows."""
        statement = "SELECT count(*) FROM entries WHERE shadow IS NOT NULL"
        return cast("int", self._sql.execute(statement).fetchone()[0])

    def sealed_digests(self) -> dict[str, str]:
        """The hex digest of each file of the last seal, by path (sorted)."""
        rows = self._sql.execute("SELECT path, digest FROM sealed ORDER BY path")
        return {path: digest.hex() for path, digest in rows}

    def changes_since_seal(self) -> tuple[list[str], list[str], list[str]]:
        """(changed paths, new paths, removed paths) of the disk compared with the last seal, according to the
        last scan. Each list is sorted."""
        return differences.changed_new_removed(self._sql)

    def change_sealed(self, changes: Iterable[tuple[str, SealedFile | None]]) -> None:
        changes = list(changes)
        removed = [(path,) for path, file in changes if file is None]
        put = [(path, *file) for path, file in changes if file is not None]
        differences.before_sealing(self._sql, (path for path, _ in changes))
        self._sql.executemany("DELETE FROM sealed WHERE path=?", removed)
        self._sql.executemany("INSERT OR REPLACE INTO sealed VALUES(?,?,?,?)", put)
        digests = ((path, file.digest if file else None) for path, file in changes)
        differences.after_sealing(self._sql, digests)

    # --- the last seal's directories

    def sealed_root(self) -> bytes | None:
        """The root digest of the last seal's tree. None if the directories of the tree are not stored."""
        root = self.get("sealed_root")
        return root if isinstance(root, bytes) else None

    def directories(self, digests: Iterable[bytes]) -> dict[bytes, bytes]:
        """The bytes of the stored directory objects with these digests, by digest. Digests without a stored
        object are left out."""
        return dict(select_in(self._sql, "SELECT digest, raw FROM directories WHERE digest", digests))

    def put_sealed_tree(self, tree: SealedTree | None) -> None:
        """Store the directories of the last seal's tree. If `tree` is None, they are unknown, and the stored
        ones are deleted."""
        if tree is None or tree.gone is None:
            self._sql.execute("DELETE FROM directories")
        else:
            self._sql.executemany(
                "DELETE FROM directories WHERE digest=?", [(digest,) for digest in tree.gone]
            )
        if tree is not None:
            self._sql.executemany("INSERT OR REPLACE INTO directories VALUES(?,?)", tree.fresh.items())
        self.put("sealed_root", tree.root if tree else None)

    # --- stat cache

    def folders(self) -> dict[str, RecordedFolder]:
        """The recorded files of each folder, by the folder's path. This includes single files that were
        hashed since the last scan."""
        return self.scan_record.folders()

    def put_folders(
        self, folders: Mapping[str, RecordedFolder | None], fresh: Iterable[Stat], gone: Iterable[str]
    ) -> None:
        """Store the result of a scan. `folders`: the folders that changed, None to forget one. `fresh`: new
        or changed files. `gone`: paths that have no file now."""
        self.scan_record.put_folders(folders)
        differences.record_scan(self._sql, ((stat.path, stat.digest) for stat in fresh), gone)

    def put_first_seal(self, sealed: Mapping[str, SealedFile], stats: Iterable[Stat]) -> None:
        """Store the first seal of the working copy and the stats of the files that were written for it."""
        self.scan_record.put_last_scan(None)
        self._sql.execute("DELETE FROM sealed")
        rows = ((path, *file) for path, file in sealed.items())
        self._sql.executemany("INSERT INTO sealed VALUES(?,?,?,?)", rows)
        folders = self.folders()
        folders |= with_single_files(folders, stats)
        self.put_folders(folders, (), ())
        digests = {stat.path: stat.digest for folder in folders.values() for stat in folder.stats()}
        differences.recompute(self._sql, digests, {path: file.digest for path, file in sealed.items()})

    def put_stats(self, stats: Iterable[Stat], gone: Iterable[str] = ()) -> None:
        """Store stats of single files, and forget the files at the paths `gone`. The next scan merges them
        into their folders."""
        stats, gone = list(stats), list(gone)
        self.scan_record.put_single(stats, gone)
        differences.record_scan(self._sql, ((stat.path, stat.digest) for stat in stats), gone)

    # --- journal

    def intents(self) -> list[Intent]:
        return [Intent(*row) for row in self._sql.execute("SELECT * FROM journal ORDER BY rowid")]

    def put_intents(self, intents: Iterable[Intent]) -> None:
        self._sql.executemany("INSERT OR REPLACE INTO journal VALUES(?,?,?,?,?)", intents)

    def drop_intents(self, temps: Iterable[str]) -> None:
        self._sql.executemany("DELETE FROM journal WHERE temp=?", [(temp,) for temp in temps])

    # --- what cannot be written here

    def unwritable(self) -> dict[str, str]:
        return dict(self._sql.execute("SELECT path, reason FROM unwritable").fetchall())

    def put_unwritable(self, path: str, reason: str) -> None:
        self._sql.execute("INSERT OR REPLACE INTO unwritable VALUES(?,?)", (path, reason))

    def drop_unwritable(self, path: str) -> None:
        self._sql.execute("DELETE FROM unwritable WHERE path=?", (path,))

    # --- starting over

    def forget_branch(self) -> None:
        """Delete everything about the branch and the replica. Stats, texts and the journal stay."""
        differences.all_unsealed(self._sql)
        for table in (
            "entries",
            "lane_states",
            "pending",
            "flights",
            "rows",
            "sealed",
            "unwritable",
            "arrivals",
        ):
            self._sql.execute(f"DELETE FROM {table}")  # noqa: S608 - fixed names
        self._sql.execute("DELETE FROM directories")
        self._sql.execute("DELETE FROM meta WHERE key<>?", (RESCUED,))
        self._values = None
        self.byte_files.forget_total()
