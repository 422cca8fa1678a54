"""What survives a lost link, a copied folder, a death between two steps, and a disk that refuses."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from localstore.core.errors import ServerMisbehaved
from localstore.core.model.live import ClockReused
from localstore.core.model.seal import Prepared, PrepareRequest
from localstore.errors import DiskError
from localstore.folder import link
from localstore.sync.compose import compose
from localstore.sync.transfer.send import send
from localstore.sync.trash import move_to_trash
from localstore.sync.working_copy import WorkingCopy
from svc.flows.common import begin
from svc.flows.pull import pull
from svc.flows.restore import restore
from svc.flows.status import status
from tests.localstore.folder.test_writer import Counting, kill, pull_with
from tests.localstore.histories import Killed
from tests.localstore.model_relay import ModelRelay, ModelTransport
from tests.localstore.place import Place


@pytest.fixture
def relay() -> ModelRelay:
    return ModelRelay()


@pytest.fixture
def ann(relay: ModelRelay, tmp_path: Path) -> Place:
    return Place(tmp_path, relay, "ann")


@pytest.fixture
def bob(relay: ModelRelay, tmp_path: Path) -> Place:
    return Place(tmp_path, relay, "bob")


def relink(place: Place) -> None:
    repo = link.read_repo(place.folder)
    (place.folder / ".svc").rename(place.folder.parent / f"{place.folder.name}-old-svc")
    link.write_repo(place.folder, repo)
    link.write_state(place.folder, link.SealedState(last_seal=None, tree={}))


@pytest.mark.parametrize("at", range(10, 60, 3))
def test_relinking_brings_back_a_save_caught_by_a_killed_pull(ann: Place, bob: Place, at: int) -> None:
    ann.write("a.txt", "one\ntwo\n")
    ann.write("b.bin", b"\0one")
    ann.push()
    bob.pull()
    ann.write("a.txt", "one\ntwo\nann\n")
    ann.write("b.bin", b"\0two")
    ann.push()

    class SaveThenDie(Counting):
        def exchange(self, path: str, other: str) -> None:
            bob.write("a.txt", "bob was here\none\ntwo\n")
            bob.write("b.bin", b"\0bob was here")
            super().exchange(path, other)

    with pytest.raises(Killed), bob.device() as device:
        device.files.close()
        device.files = SaveThenDie(bob.folder, at, kill)
        pull(device, "merge")
        raise Killed
    saved = any(b"bob was here" in data for data in bob.files().values())
    relink(bob)
    bob.pull("merge")
    files = bob.files()
    assert not [path for path in files if path.endswith(".tmp")]
    if saved:
        assert any(b"bob was here" in data for data in files.values())


def test_restore_killed_anywhere_is_never_a_delete(ann: Place, relay: ModelRelay) -> None:
    ann.write("a.txt", "sealed\n")
    ann.push()
    killed = 0
    for at in range(1, 60):
        ann.write("a.txt", f"edit {at}\n")
        try:
            with ann.device() as device:
                device.files.close()
                device.files = Counting(ann.folder, at, kill)
                restore(device, ["a.txt"])
            break
        except Killed:
            killed += 1
        ann.push()
        assert "a.txt" in relay.tree("main")
        kept = [*ann.files().values(), *(p.read_bytes() for p in ann.home.root.rglob("trash/*/*"))]
        assert f"edit {at}\n".encode() in kept
        with ann.device() as device:
            restore(device, ["a.txt"])
    assert killed > 5


def test_force_killed_after_the_trash_is_never_a_delete(
    ann: Place, relay: ModelRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.write("a.txt", "one\n")
    ann.push()
    ann.write("a.txt", "edited\n")

    def then_die(device: WorkingCopy, paths: list[str]) -> Path | None:
        move_to_trash(device, paths)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("svc.flows.pull.move_to_trash", then_die)
        with pytest.raises(Killed):
            ann.pull("force")
    ann.push()
    assert relay.tree("main") == {"a.txt": b"one\n"}


def test_a_stale_state_json_is_written_again(ann: Place) -> None:
    ann.write("a.txt", "one\n")
    ann.push()
    stale = ann.read(".svc/state.json")
    ann.write("a.txt", "two\n")
    sealed = ann.push().seal
    (ann.folder / ".svc/state.json").write_bytes(stale)
    ann.pull()
    assert link.read_state(ann.folder).last_seal == sealed
    (ann.folder / ".svc/state.json").unlink()
    ann.pull()
    assert link.read_state(ann.folder).last_seal == sealed


def copied(place: Place, tmp_path: Path) -> Place:
    other = Place(tmp_path, place.relay, f"{place.folder.name}-copy")
    shutil.rmtree(other.folder)
    shutil.copytree(place.folder, other.folder)
    other.key = place.key
    return other


def test_a_copied_working_copy_knows_its_base(ann: Place, relay: ModelRelay, tmp_path: Path) -> None:
    ann.write("a.txt", "one\ntwo\nthree\n")
    ann.write("b.txt", "same\n")
    sealed = ann.push().seal
    copy = copied(ann, tmp_path)
    with copy.device() as device:
        found = status(device)
    assert (found.last_seal, found.changed, found.new, found.removed) == (sealed, [], [], [])
    copy.write("a.txt", "one\ntwo\nthree, edited\n")
    ann.write("a.txt", "zero\none\ntwo\nthree\n")
    ann.push()
    pulled = copy.pull("merge")
    assert pulled.conflicts == []
    assert copy.read("a.txt") == b"zero\none\ntwo\nthree, edited\n"
    copy.push()
    assert relay.tree("main") == {"a.txt": b"zero\none\ntwo\nthree, edited\n", "b.txt": b"same\n"}


def test_a_half_copied_folder_deletes_nothing(ann: Place, relay: ModelRelay, tmp_path: Path) -> None:
    ann.write("a.txt", "one\n")
    ann.write("b.txt", "two\n")
    ann.push()
    copy = copied(ann, tmp_path)
    (copy.folder / "b.txt").unlink()
    copy.write("a.txt", "changed\n")
    copy.push()
    assert relay.tree("main") == {"a.txt": b"changed\n", "b.txt": b"two\n"}


def test_a_rolled_back_record_recognises_the_base(ann: Place, bob: Place, tmp_path: Path) -> None:
    ann.write("a.txt", "one\n")
    ann.write("b.txt", "same\n")
    ann.push()
    shutil.copytree(ann.home.root, tmp_path / "backup")
    ann.write("a.txt", "two\n")
    ann.push()
    shutil.rmtree(ann.home.root)
    shutil.copytree(tmp_path / "backup", ann.home.root)
    bob.pull()
    bob.write("a.txt", "two\nbob\n")
    bob.push()
    pulled = ann.pull("merge")
    assert pulled.conflicts == []
    assert ann.files() == {"a.txt": b"two\nbob\n", "b.txt": b"same\n"}


def test_a_number_given_twice_is_mended_by_the_next_command(ann: Place, relay: ModelRelay) -> None:
    ann.write("a.txt", "one\n")
    ann.push()
    replica = next(iter(relay.branches["main"].highest))
    relay.branches["main"].settled[replica] = relay.branches["main"].highest[replica] = 2
    ann.write("a.txt", "two\n")
    with ann.device() as device, device.db.step():
        device.db.put("n", 1)
    relay.branches["main"].highest[replica] = 1
    with pytest.raises(ClockReused):
        ann.push()
    ann.pull("merge")
    ann.push()
    assert b"two\n" in relay.tree("main").values()


@pytest.mark.parametrize(
    ("code", "words"), [(28, "free some space"), (30, "writable"), (13, "permission"), (5, "check the disk")]
)
def test_what_the_disk_refuses_is_one_sentence(ann: Place, bob: Place, code: int, words: str) -> None:
    ann.write("a.txt", "one\n")
    ann.push()

    def refuse() -> None:
        raise OSError(code, "refused", "a.txt")

    for at in range(1, 6):
        with pytest.raises(DiskError, match=words) as raised:
            pull_with(bob, at, refuse)
        assert "a.txt" in raised.value.detail
    bob.pull()
    assert bob.files() == {"a.txt": b"one\n"}


def test_a_damaged_record_says_where_it_is(ann: Place) -> None:
    ann.write("a.txt", "one\n")
    ann.push()
    (database,) = ann.home.root.glob("copies/*/state.db")
    for beside in database.parent.glob("state.db-*"):
        beside.unlink()
    database.write_bytes(b"not a database" * 1000)
    with pytest.raises(DiskError, match=r"move this record away") as raised:
        ann.push()
    assert str(database.parent) in raised.value.detail
    assert isinstance(raised.value.__cause__, sqlite3.Error)
    shutil.move(database.parent, database.parents[2] / "away")
    ann.write("a.txt", "two\n")
    ann.push()
    assert ann.relay.tree("main") == {"a.txt": b"two\n"}


def test_a_full_disk_in_the_trash_gives_the_file_back(ann: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    ann.write("a.txt", "one\n")
    ann.push()
    ann.write("a.txt", "edited\n")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("localstore.sync.trash._copy_out", full)
        with pytest.raises(DiskError, match="free some space"):
            ann.pull("force")
    assert ann.files() == {"a.txt": b"edited\n"}


def test_a_seal_that_dropped_my_edits_is_not_signed(ann: Place, bob: Place, relay: ModelRelay) -> None:
    ann.write("a.txt", "one\n")
    ann.push()

    class Dropping(ModelTransport):
        """Blames others for a text, and shows a lane without what was just sent."""

        def prepare(self, request: PrepareRequest) -> Prepared:
            (file,) = self.branch.files.values()
            file.lane = None
            file.lane = self.relay._lane(self.branch, file)
            file.lane.edit(7777, b"another text\n")
            relay.objects[file.lane.digest()] = file.lane.text()
            file.size = len(file.lane.text())
            made = super().prepare(request)
            made.live_by["a.txt"] = ["bob"]
            return made

    ann.wrap = lambda transport: Dropping(relay, "main")
    ann.write("a.txt", "one\nmine\n")
    with pytest.raises(ServerMisbehaved, match="nothing was signed"):
        ann.push()


def test_a_pull_names_whose_edits_came_along(ann: Place, bob: Place, relay: ModelRelay) -> None:
    ann.write("a.txt", "one\n")
    ann.push()
    bob.pull()
    ann.write("a.txt", "one\nlive\n")
    with ann.device() as device:
        begin(device)
        compose(device, device.scan())
        send(device)
    pulled = bob.pull()
    assert pulled.live == {"a.txt": [ann.key.id]}
