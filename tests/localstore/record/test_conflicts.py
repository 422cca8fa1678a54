"""Conflicts are recorded one for each copy, and their texts outlive whatever else is forgotten."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from localstore.core.encoding import digest
from localstore.record.conflicts import RecordedConflict, line_ranges
from localstore.record.database import Database
from localstore.record.objects import Objects
from localstore.record.schema import STEPS

TEXTS = {digest(text): text for text in (b"a = 1\n", b"a = 2\n", b"a = 3\n")}
BASE, THEIRS, MINE = TEXTS
APP = RecordedConflict("app.py", "app.sync-conflict-x.py", BASE, THEIRS, MINE, "bob", "1", "1")
ZOO = RecordedConflict("zoo/ü.md", "zoo/ü.sync-conflict-x.md", None, THEIRS, MINE, None, "2-3", "4")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    db = Database(tmp_path / "state.db")
    yield db
    db.close()


def test_conflicts_come_back_as_they_were_recorded(db: Database) -> None:
    db.conflicts.put(ZOO)
    db.conflicts.put(APP)
    assert db.conflicts.list() == [APP, ZOO]
    assert db.conflicts.get(ZOO.kept_as) == ZOO
    assert db.conflicts.get("nothing") is None


def test_a_path_has_a_conflict_for_each_copy_of_it(db: Database) -> None:
    again = APP._replace(kept_as="app.sync-conflict-y.py", lines="7-9")
    for one in (ZOO, again, APP):
        db.conflicts.put(one)
    assert db.conflicts.list() == [APP, again, ZOO]
    assert db.conflicts.of("app.py") == [APP, again]
    db.conflicts.put(again._replace(lines="8"))
    db.conflicts.remove(APP.kept_as)
    assert db.conflicts.of("app.py") == [again._replace(lines="8")]


def test_what_is_removed_is_gone_and_removing_nothing_is_no_error(db: Database) -> None:
    db.conflicts.put(APP)
    db.conflicts.remove(APP.kept_as)
    db.conflicts.remove(APP.kept_as)
    assert db.conflicts.list() == []


def test_a_step_that_fails_records_nothing(db: Database) -> None:
    with pytest.raises(ZeroDivisionError), db.step():
        db.conflicts.put(APP)
        raise ZeroDivisionError
    assert db.conflicts.list() == []


def test_record_and_texts_survive_another_branch_and_another_process(tmp_path: Path, db: Database) -> None:
    store = Objects(tmp_path / "objects", db)
    store.add(TEXTS.items())
    db.conflicts.put(APP)
    db.forget_branch()
    store.close()
    db.close()
    again = Database(tmp_path / "state.db")
    store = Objects(tmp_path / "objects", again)
    [kept] = again.conflicts.list()
    assert kept == APP
    names = [name for name in (kept.base, kept.theirs, kept.mine) if name is not None]
    assert [store.get(name) for name in names] == list(TEXTS.values())
    store.close()
    again.close()


def test_a_database_of_before_gets_the_table(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    old = sqlite3.connect(path)
    before = next(n for n, step in enumerate(STEPS) if "TABLE conflicts" in step)
    old.executescript(f"BEGIN;{''.join(STEPS[:before])}PRAGMA user_version={before};COMMIT;")
    old.close()
    db = Database(path)
    db.conflicts.put(APP)
    assert db.conflicts.list() == [APP]
    db.close()


def test_conflicts_of_before_stay_when_a_path_may_have_several(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    old = sqlite3.connect(path)
    before = next(n for n, step in enumerate(STEPS) if "TABLE one_each" in step)
    old.executescript(f"BEGIN;{''.join(STEPS[:before])}PRAGMA user_version={before};COMMIT;")
    old.executemany("INSERT INTO conflicts VALUES(?,?,?,?,?,?,?,?)", [APP, ZOO])
    old.commit()
    old.close()
    db = Database(path)
    assert db.conflicts.list() == [APP, ZOO]
    db.close()


def test_conflicts_of_before_stay_when_a_side_may_have_no_file(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    old = sqlite3.connect(path)
    before = next(n for n, step in enumerate(STEPS) if "TABLE of_files" in step)
    old.executescript(f"BEGIN;{''.join(STEPS[:before])}PRAGMA user_version={before};COMMIT;")
    old.executemany("INSERT INTO conflicts VALUES(?,?,?,?,?,?,?,?)", [APP, ZOO])
    old.commit()
    old.close()
    db = Database(path)
    none_there, folder_here = APP._replace(kept_as="b", theirs=None), APP._replace(kept_as="c", mine=None)
    for one in (none_there, folder_here):
        db.conflicts.put(one)
    assert db.conflicts.list() == [APP, none_there, folder_here, ZOO]
    db.close()


def test_ranges_are_written_as_people_count() -> None:
    assert line_ranges([(11, 14)]) == "12-14"
    assert line_ranges([(0, 1), (4, 9), (0, 1)]) == "1, 5-9"
    assert line_ranges([(3, 3)]) == "4"
