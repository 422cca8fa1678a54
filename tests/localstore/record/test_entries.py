"""Entries are read as they are asked for, and are as if all had been read."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstore.record import entries as module
from localstore.record.database import Database
from localstore.record.entries import Entries
from localstore.record.entry import Entry

PATHS = [f"d/{number}" for number in range(20)]


@pytest.fixture
def db(tmp_path: Path) -> Database:
    db = Database(tmp_path / "state.db")
    db.put_entries(Entry(path, "text", gen=number) for number, path in enumerate(PATHS))
    return db


def test_one_is_read_without_the_others(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Entries(db)
    monkeypatch.setattr(db, "entries", None)
    assert known["d/3"].gen == 3
    assert known["d/3"] is known.get("d/3"), "what is changed in one place is changed in all"
    assert known.get("no") is None
    assert known


@pytest.mark.parametrize("single", [0, 3, 500])
def test_all_are_those_of_the_database_and_what_changed_since(
    db: Database, monkeypatch: pytest.MonkeyPatch, single: int
) -> None:
    monkeypatch.setattr(module, "SINGLE", single)
    known = Entries(db)
    first = known["d/0"]
    first.pending = 7
    known["new"] = Entry("new", "blob")
    del known["d/1"]
    assert known.pop("d/2", None) is not None
    assert known.pop("no", None) is None
    known["d/2"] = Entry("d/2", "blob")
    for path in PATHS[3:10]:
        assert known[path].path == path
    assert "d/1" not in known
    assert set(known) == {*PATHS, "new"} - {"d/1"}
    assert known["d/0"] is first
    assert known["d/2"].kind == "blob"
    assert "d/1" not in known
    assert {path: entry.path for path, entry in known.items()} == {path: path for path in known}
    assert len(known) == len(list(known.values())) == len(known.keys()) == 20


def test_nothing_known_is_false(tmp_path: Path) -> None:
    assert not Entries(Database(tmp_path / "state.db"))
