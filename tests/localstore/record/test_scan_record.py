"""What is recorded of the disk: a look reads as little of it as it needs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from localstore.folder.stat_cache import RACY, SECOND
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place


@pytest.fixture
def ann(tmp_path: Path) -> Place:
    place = Place(tmp_path, ModelRelay(), "ann")
    for name in ("a/1.txt", "a/2.txt", "b/1.txt", "c.txt"):
        place.write(name, name)
    time.sleep(3 * RACY / SECOND)  # until then a record of these files is not believed
    with place.device() as device:
        device.scan()
    return place


def test_a_look_reads_the_files_of_changed_folders_alone(ann: Place) -> None:
    ann.write("a/2.txt", "changed")
    with ann.device() as device:
        asked: list[str] = []
        device.db._sql.set_trace_callback(asked.append)
        scan = device.scan()
        lists = [one.rpartition("path=")[2] for one in asked if one.startswith("SELECT files FROM folders")]
        assert lists == ["'a/'"]
        assert set(scan.files) == {"a/1.txt", "a/2.txt", "b/1.txt", "c.txt"}
        assert scan.files["b/1.txt"].size == len("b/1.txt")


def test_marks_are_read_without_the_lists_beside_them(ann: Place) -> None:
    with ann.device() as device:
        plan = device.db._sql.execute("EXPLAIN QUERY PLAN SELECT path, mark FROM folders").fetchall()
    assert "COVERING INDEX" in plan[0][3]


def test_a_folder_that_is_forgotten_meanwhile_has_no_files(ann: Place) -> None:
    with ann.device() as device:
        before = device.db.folders()
        device.db.put_folders({"a/": None}, (), ())
        assert before["a/"].stats() == []
        assert [one.path for one in before["b/"].stats()] == ["b/1.txt"]
