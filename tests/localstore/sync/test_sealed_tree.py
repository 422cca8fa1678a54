from __future__ import annotations

import sqlite3
from pathlib import Path

from localstore.sync.device import Device
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place


def kept(place: Place) -> int:
    """How many directory objects the record holds."""
    with place.device() as device:
        return len(device.db.directories(every(device)))


def every(device: Device) -> list[bytes]:
    with sqlite3.connect(device.db.path) as sql:
        return [row[0] for row in sql.execute("SELECT digest FROM directories")]


def test_directories_follow_the_seals_and_none_pile_up(tmp_path: Path) -> None:
    relay = ModelRelay()
    ann = Place(tmp_path, relay, "ann")
    for number in range(6):
        ann.write(f"d{number % 3}/e/f{number}.txt", "one\n")
    ann.push()
    assert kept(ann) == 7
    for number in range(6):
        ann.write(f"d{number % 3}/e/f{number}.txt", f"two {number}\n")
        seal = ann.push().seal
        assert relay.sealed_tree(seal) == {
            path: data for path, data in ann.files().items() if path.endswith(".txt")
        }
        assert kept(ann) == 7
    (ann.folder / "d1/e/f1.txt").unlink()
    (ann.folder / "d1/e/f4.txt").unlink()
    ann.push()
    assert kept(ann) == 5


def test_a_damaged_record_of_directories_is_only_a_lost_shortcut(tmp_path: Path) -> None:
    ann = Place(tmp_path, ModelRelay(), "ann")
    ann.write("a/b.txt", "one\n")
    ann.write("c.txt", "one\n")
    ann.push()
    for damage in ("DELETE FROM directories", "UPDATE directories SET raw=x'00'"):
        with ann.device() as device, sqlite3.connect(device.db.path) as sql:
            sql.execute(damage)
        ann.write("a/b.txt", damage)
        assert ann.push().seal is not None
        assert kept(ann) == 2


def test_a_pull_of_others_seals_ends_the_record_and_the_next_push_makes_it_again(tmp_path: Path) -> None:
    relay = ModelRelay()
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    ann.write("a/b.txt", "one\n")
    ann.push()
    bob.pull()
    bob.write("a/b.txt", "two\n")
    bob.push()
    ann.pull()
    assert kept(ann) == 0
    ann.write("a/c.txt", "three\n")
    assert ann.push().seal is not None
    assert kept(ann) == 2
