from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from localstore.core.encoding import digest
from localstore.folder.stat_cache import RecordedFolder, Stat
from localstore.record.database import Database, SealedFile
from localstore.record.entry import PathRecord
from localstore.record.schema import SCHEMA
from tests.depth import rounds

PATHS = st.sampled_from(["a", "b", "d/a", "d/e/f"])
BYTES = st.sampled_from([b"one", b"two", b"three"])
FILES = st.dictionaries(PATHS, st.none() | BYTES, min_size=1)


class Differences(RuleBasedStateMachine):
    """The record of differences is what comparing everything would find, whatever changes in what order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.db = Database(Path(self.folder.name) / "state.db")
        self.disk: dict[str, bytes] = {}
        self.sealed: dict[str, bytes] = {}
        self.known: dict[str, PathRecord] = {}

    def teardown(self) -> None:
        self.db.close()
        self.folder.cleanup()

    @rule(found=FILES, walk=st.booleans())
    def looked(self, found: dict[str, bytes | None], walk: bool) -> None:
        fresh = [stat_of(path, data) for path, data in found.items() if data is not None]
        gone = [path for path, data in found.items() if data is None]
        with self.db.step():
            if walk:
                self.db.put_folders({"": RecordedFolder.of(fresh, b"mark")}, fresh, gone)
            else:
                self.db.put_stats(fresh, gone)
        change(self.disk, found)

    @rule(changes=FILES)
    def sealed_now(self, changes: dict[str, bytes | None]) -> None:
        with self.db.step():
            self.db.change_sealed(
                (path, None if data is None else SealedFile("text", digest(data), len(data)))
                for path, data in changes.items()
            )
        change(self.sealed, changes)

    @rule(path=PATHS, shown=st.none() | BYTES, want=st.none() | BYTES, pending=st.sampled_from([0, 0, 1]))
    def known_as(self, path: str, shown: bytes | None, want: bytes | None, pending: int) -> None:
        shadow, wanted = (None if data is None else digest(data) for data in (shown, want))
        self.known[path] = PathRecord(path, "text", gen=1, want=wanted, shadow=shadow, pending=pending)
        with self.db.step():
            self.db.put_entries([self.known[path]])

    @rule(path=PATHS)
    def in_step(self, path: str) -> None:
        """As most paths are: one text in all places."""
        self.looked({path: b"one"}, walk=False)
        self.sealed_now({path: b"one"})
        self.known_as(path, b"one", b"one", 0)

    @rule(path=PATHS)
    def unknown(self, path: str) -> None:
        with self.db.step():
            self.db.drop_entries([path])
        self.known.pop(path, None)

    @rule()
    def branch_forgotten(self) -> None:
        with self.db.step():
            self.db.forget_branch()
        self.sealed.clear()
        self.known.clear()

    @invariant()
    def differences_are_right(self) -> None:
        both = self.disk.keys() & self.sealed.keys()
        changed = sorted(path for path in both if self.disk[path] != self.sealed[path])
        new = sorted(self.disk.keys() - self.sealed.keys())
        removed = sorted(self.sealed.keys() - self.disk.keys())
        assert self.db.changes_since_seal() == (changed, new, removed)

    @invariant()
    def what_may_need_an_update_is_told(self) -> None:
        """Of every other path disk, seal and lane are one, and nothing is pending."""
        one = {path for path, entry in self.known.items() if self._is_one(path, entry)}
        assert self.db.may_need_update() == sorted(
            (self.disk.keys() | self.sealed.keys() | self.known.keys()) - one
        )

    def _is_one(self, path: str, entry: PathRecord) -> bool:
        sides = {entry.want, entry.shadow}
        sides |= {digest(side[path]) if path in side else None for side in (self.disk, self.sealed)}
        return len(sides) == 1 and not entry.pending


TestDifferences = Differences.TestCase
TestDifferences.settings = settings(max_examples=rounds(30, 100), deadline=None)


def change(files: dict[str, bytes], changes: dict[str, bytes | None]) -> None:
    for path, data in changes.items():
        if data is None:
            files.pop(path, None)
        else:
            files[path] = data


def stat_of(path: str, data: bytes) -> Stat:
    return Stat(path, len(data), 1, 1, 1, "text", digest(data), 10**12)


def test_a_record_of_the_first_schema_is_taken_over(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    old.executescript(f"BEGIN;{SCHEMA}PRAGMA user_version=1;COMMIT;")
    for path, data in (("same", b"one"), ("changed", b"two"), ("new", b"three")):
        old.execute("INSERT INTO stats VALUES(?,?,?,?,?,?,?,?)", stat_of(path, data))
    for path, data in (("same", b"one"), ("changed", b"one"), ("removed", b"one")):
        old.execute("INSERT INTO sealed VALUES(?,?,?,?)", (path, "text", digest(data), len(data)))
    old.execute("INSERT INTO lane_states VALUES('same', x'0102')")
    old.close()
    db = Database(tmp_path / "state.db")
    assert db.lane_state("same") == (b"\1\2", True)
    assert db.changes_since_seal() == (["changed"], ["new"], ["removed"])
    assert {one.path for one in db.folders()[""].stats()} == {"same", "changed", "new"}
    db.close()


def test_nothing_is_tracked_under_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    """A rule may leave such a file out; whether it is tracked is asked before its name is looked at."""
    db = Database(tmp_path / "state.db")
    assert not db.tracks("odd\udcff.log")
    assert not db.tracks_below("odd\udcff")
    db.close()
