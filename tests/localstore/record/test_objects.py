"""Texts are kept once, come back as they were, alone or many together, and never damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localstore.core.encoding import digest
from localstore.record import objects as module
from localstore.record import sql
from localstore.record.database import Database
from localstore.record.objects import Objects

TEXTS = [f"text {number}\n".encode() * (number % 50 + 1) for number in range(300)]
NAMES = [digest(text) for text in TEXTS]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    db = Database(tmp_path / "state.db")
    yield db
    db.close()


@pytest.fixture
def folder(tmp_path: Path, db: Database) -> Path:
    """Of a store that holds TEXTS, with nothing in memory."""
    kept = Objects(tmp_path / "objects", db)
    kept.add(zip(NAMES, TEXTS, strict=True))
    kept.close()
    return tmp_path / "objects"


@pytest.fixture
def store(folder: Path, db: Database) -> Iterator[Objects]:
    store = Objects(folder, db)
    yield store
    store.close()


def test_each_comes_back_alone(store: Objects) -> None:
    assert [store.get(name) for name in NAMES] == TEXTS
    assert store.get(digest(b"never seen")) is None


def test_many_are_read_together(store: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "AT_ONCE", 7)
    store.load([*NAMES[::3], digest(b"never seen")])
    assert [store.get_cached(name) for name in NAMES[::3]] == TEXTS[::3]
    assert store.get_cached(NAMES[1]) is None


def test_no_more_are_read_together_than_memory_is_meant_for(
    store: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOADED_BYTES", 1000)
    store.load(NAMES)
    held = [len(text) for name, text in zip(NAMES, TEXTS, strict=True) if store.get_cached(name) == text]
    assert 0 < sum(held) <= 1000
    assert store.get(NAMES[-1]) == TEXTS[-1]


def test_a_text_is_stored_once(store: Objects, folder: Path) -> None:
    before = [path.stat().st_size for path in folder.iterdir()]
    store.add([(NAMES[0], TEXTS[0]), (NAMES[0], TEXTS[0]), (NAMES[5], TEXTS[5])])
    assert [path.stat().st_size for path in folder.iterdir()] == before
    store.add([(digest(b"new"), b"new")] * 2)
    assert store.get(digest(b"new")) == b"new"


@pytest.mark.parametrize("damage", [b"", b"\xff" * 64])
def test_what_is_damaged_is_not_there(folder: Path, db: Database, damage: bytes) -> None:
    (pack,) = folder.iterdir()
    size = pack.stat().st_size
    with pack.open("r+b") as file:
        file.seek(size // 2)
        file.write(damage) if damage else file.truncate()
    store = Objects(folder, db)
    store.load(NAMES)
    found = [store.get(name) for name in NAMES]
    assert None in found
    assert all(one in (None, text) for one, text in zip(found, TEXTS, strict=True))
    store.close()
