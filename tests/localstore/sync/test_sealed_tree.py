from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from localstore.core.model.history import Tree
from localstore.sync import verify
from localstore.sync.compose import compose
from localstore.sync.transfer.send import send
from localstore.sync.transfer.transport import Transport
from localstore.sync.working_copy import WorkingCopy
from svc.flows.common import begin, verified_head
from tests.localstore.model_relay import REPO_ID, ModelRelay
from tests.localstore.place import Place


def kept(place: Place) -> int:
    """How many directory objects the record holds."""
    with place.device() as device:
        return len(device.db.directories(every(device)))


def every(device: WorkingCopy) -> list[bytes]:
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


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Place, Place, list[str]]:
    """Two people in step, and the seals whose whole trees the second one asks for from now on."""
    relay = ModelRelay()
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    for path in ("a/b.txt", "a/c.txt", "d/e.txt"):
        ann.write(path, "one\n")
    ann.push()
    bob.pull()
    asked: list[str] = []

    def watched(transport: Transport) -> Transport:
        whole = transport.tree

        def tree(seal_id: str) -> Tree:
            asked.append(seal_id)
            return whole(seal_id)

        transport.tree = tree  # type: ignore[method-assign]
        return transport

    bob.wrap = watched
    return ann, bob, asked


def sealed_as_the_relay_has_it(place: Place) -> bool:
    """Whether the record of the last seal is its whole tree, and its directories are of that tree."""
    with place.device() as device:
        transport = place.relay.transport(place.branch, place.key)
        payload = verify.seal(transport.seal(device.last_seal or ""), device.last_seal or "", REPO_ID)
        files = device.db.read_sealed()
        root = device.db.sealed_root()
        assert root is None or root.hex() == payload.content_digest
        return files == verify.tree(transport.tree(device.last_seal or ""), payload)


def test_a_pull_recomputes_what_changed_and_the_next_push_goes_on_from_there(
    pair: tuple[Place, Place, list[str]],
) -> None:
    ann, bob, asked = pair
    for number in range(3):
        ann.write("a/b.txt", f"{number}\n")
        ann.write(f"new/{number}/f.txt", "new\n")
        (ann.folder / ("a/c.txt" if number == 1 else f"new/{number}/f.txt")).unlink()
        ann.push()
        bob.pull()
        assert sealed_as_the_relay_has_it(bob)
    assert asked == []
    assert kept(bob) == kept(ann)
    bob.write("d/e.txt", "bob\n")
    assert bob.push().seal is not None
    assert sealed_as_the_relay_has_it(bob)


def test_where_others_have_unsealed_edits_the_whole_tree_is_asked_for(
    pair: tuple[Place, Place, list[str]],
) -> None:
    ann, bob, asked = pair
    ann.write("a/b.txt", "sealed\n")
    ann.push()
    ann.write("a/b.txt", "live\n")
    with ann.device() as device:
        begin(device)
        compose(device, device.scan())
        send(device)
    bob.pull()
    assert len(asked) == 1
    assert bob.read("a/b.txt") == b"live\n"
    assert sealed_as_the_relay_has_it(bob)


@pytest.mark.parametrize(
    "lie",
    [
        "UPDATE rows SET digest=zeroblob(32) WHERE path='d/e.txt'",
        "UPDATE rows SET kind='blob' WHERE path='d/e.txt'",
        "UPDATE rows SET size=99 WHERE path='d/e.txt'",
        "DELETE FROM rows WHERE path='d/e.txt'",
        "INSERT INTO rows SELECT 'x.txt', kind, gen, epoch, ver, other, digest, size, live FROM rows "
        "WHERE path='d/e.txt'",
        "UPDATE meta SET value='other' WHERE key='tree_key_id'",
    ],
)
def test_a_frontier_that_is_not_what_was_sealed_proves_nothing(
    pair: tuple[Place, Place, list[str]], lie: str
) -> None:
    ann, bob, asked = pair
    ann.write("a/b.txt", "two\n")
    ann.push()
    with bob.device() as device:
        head = begin(device)
        with sqlite3.connect(device.db.path) as sql:
            sql.execute(lie)
        with device.db.step():
            pass  # single values are read anew after a step
        new = verified_head(device, head)
        assert new is not None
        assert new.whole
        assert new.changes["d/e.txt"] == device.db.read_sealed()["d/e.txt"]
    assert asked == [head]
