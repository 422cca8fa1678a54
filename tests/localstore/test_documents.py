"""Documents of one device: kept as a relay keeps them, by several processes, and after a death."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from localstore.core.document import edit
from localstore.core.errors import Invalid, NotFound
from localstore.core.model.document import DocumentArchived, DocumentBaseGone, DocumentCreate, DocumentPut
from localstore.documents import LocalDocuments, is_local


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "documents.db"


def _create(place: LocalDocuments, content: Any, title: str = "Plan") -> str:
    return place.create(DocumentCreate(title=title, mode=1, content=content)).id


def test_a_document_is_made_read_listed_and_deleted(file: Path) -> None:
    place = LocalDocuments(file)
    id = _create(place, {"b": 1, "a": "one two"})
    assert is_local(id)
    document = LocalDocuments(file).get(id)
    assert (document.title, document.mode, document.frontier) == ("Plan", 1, "1")
    assert document.content == {"a": "one two", "b": 1}
    assert [row.id for row in place.items(None)] == [id]
    place.delete(id)
    for act in (place.get, place.delete, place.history):
        with pytest.raises(NotFound):
            act(id)
    assert place.items(None) == []


def test_two_who_edit_the_same_version_both_keep_what_they_changed(file: Path) -> None:
    one, two = LocalDocuments(file), LocalDocuments(file)
    id = _create(one, {"text": "one two three", "n": 1})
    one.put(id, DocumentPut(content={"text": "ONE two three", "n": 1}, base="1"))
    merged = two.put(id, DocumentPut(content={"text": "one two THREE", "n": 2}, base="1"))
    assert merged.content == {"text": "ONE two THREE", "n": 2}
    assert [(row.number, row.base) for row in one.history(id)] == [(3, 1), (2, 1), (1, 0)]


def test_what_several_write_at_once_is_all_there(file: Path) -> None:
    id = _create(LocalDocuments(file), {})

    def work(who: int) -> None:
        place = LocalDocuments(file)
        for number in range(5):
            place.put(id, DocumentPut(content={f"{who}.{number}": 1}, base="1"))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    names = {f"{who}.{number}" for who in range(4) for number in range(5)}
    assert LocalDocuments(file).get(id).content == dict.fromkeys(names, 1)


def test_an_archived_document_takes_no_writes(file: Path) -> None:
    place = LocalDocuments(file)
    id = _create(place, 1)
    assert place.archive(id, True) == place.archive(id, True)
    with pytest.raises(DocumentArchived):
        place.put(id, DocumentPut(content=2))
    assert [place.items(archived) != [] for archived in (True, False, None)] == [True, False, True]
    assert not place.archive(id, False).archived
    assert place.put(id, DocumentPut(content=2)).content == 2
    assert place.put(id, DocumentPut(content=2)).frontier == "2"
    assert place.put(id, DocumentPut(content=2, title="Other")).title == "Other"


def test_old_updates_become_one_snapshot(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit, "DOCUMENT_UPDATES", 5)
    place = LocalDocuments(file)
    id = _create(place, [0])
    for number in range(1, 12):
        place.put(id, DocumentPut(content=list(range(number + 1))))
    assert [(row.number, row.first) for row in place.history(id)][-2:] == [(6, 6), (5, 1)]
    with pytest.raises(DocumentBaseGone):
        place.put(id, DocumentPut(content=[], base="4"))
    with pytest.raises(Invalid):
        place.put(id, DocumentPut(content=[], base="99"))
    merged = place.put(id, DocumentPut(content=["first", 0, 1, 2, 3, 4], base="5"))
    assert merged.content == ["first", *range(12)]


def test_a_refused_edit_leaves_nothing(file: Path) -> None:
    place = LocalDocuments(file)
    id = _create(place, 1)
    place._db.execute("CREATE TRIGGER full BEFORE UPDATE ON document BEGIN SELECT RAISE(ABORT, 'x'); END")
    with pytest.raises(sqlite3.IntegrityError):
        place.put(id, DocumentPut(content=2))
    place._db.execute("DROP TRIGGER full")
    assert len(place.history(id)) == 1
    assert place.put(id, DocumentPut(content=3)).frontier == "2"
