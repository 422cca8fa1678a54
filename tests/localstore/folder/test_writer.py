"""The exchange, a save that slips into it, and recovery after a death at every step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localstore.core.encoding import digest
from localstore.errors import DiskError
from localstore.folder.files import Files
from localstore.sync.working_copy import WorkingCopy
from tests.localstore.histories import Killed
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

STEPS = ("create", "exchange", "move", "read_up_to", "remove", "stat")


class Counting(Files):
    """Runs `act` before the call number `at` of the file operations."""

    def __init__(self, root: Path, at: int, act: Any) -> None:
        super().__init__(root)
        self._at, self._act, self.calls = at, act, 0

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name in STEPS:
            self.calls += 1
            if self.calls == self._at:
                self._act()
        return found


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Place, Place]]:
    relay = ModelRelay()
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    ann.write("a.txt", "one\ntwo\n")
    ann.write("b.bin", b"\0one")
    ann.write("gone.txt", "old\n")
    ann.push()
    bob.pull()
    ann.write("a.txt", "one\ntwo\nann\n")
    ann.write("b.bin", b"\0two")
    ann.write("d/new.txt", "new\n")
    (ann.folder / "gone.txt").unlink()
    ann.push()
    yield ann, bob


def pull_with(place: Place, at: int, act: Any) -> int:
    from svc.flows.pull import pull

    with place.device() as device:
        device.files.close()
        device.files = files = Counting(place.folder, at, act)
        pull(device, "merge")
        return files.calls


def kill() -> None:
    raise Killed


def test_killed_at_every_file_operation_the_next_pull_finishes(
    pair: tuple[Place, Place], tmp_path: Path
) -> None:
    ann, bob = pair
    killed = 0
    for at in range(1, 400):
        try:
            pull_with(bob, at, kill)
            break
        except Killed:
            killed += 1
    assert killed > 20
    assert bob.files() == ann.files()
    assert bob.push().seal is None


@pytest.mark.parametrize("at", range(1, 46))
def test_a_save_at_any_moment_of_a_pull_is_kept(pair: tuple[Place, Place], at: int) -> None:
    ann, bob = pair

    def save() -> None:
        bob.write("a.txt", "BOB\n" + (bob.folder / "a.txt").read_text())
        bob.write("gone.txt", "bob's\n")

    assert pull_with(bob, at, save) >= at
    bob.pull("merge")
    bob.push()
    assert bob.read("a.txt") == b"BOB\none\ntwo\nann\n"
    files = bob.files()  # where others' deletion came first, his save stands beside it
    assert b"bob's\n" in [content for path, content in files.items() if path.startswith("gone")]
    assert files == ann.relay.tree("main")


def test_a_full_disk_changes_nothing_and_says_so(pair: tuple[Place, Place]) -> None:
    _, bob = pair
    before = bob.files()

    def full() -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(DiskError, match=r"No space left on device: .*free some space"):
        pull_with(bob, _first_create(bob), full)
    assert bob.files().items() >= {"a.txt": before["a.txt"], "b.bin": before["b.bin"]}.items()
    bob.pull("merge")
    assert bob.read("b.bin") == b"\0two"
    assert not [path for path in bob.files() if path.endswith(".tmp")]


def _first_create(place: Place) -> int:
    """Which operation of a pull is its first write of a file; found by a pull that stops right there."""
    from svc.flows.pull import pull

    class Stop(Files):
        calls = 0

        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            if name in STEPS:
                type(self).calls += 1
                if name == "create":
                    raise Killed
            return found

    device: WorkingCopy
    with place.device() as device:
        device.files.close()
        device.files = Stop(place.folder)
        with pytest.raises(Killed):
            pull(device, "merge")
    return Stop.calls


def test_the_digest_of_what_was_written_is_what_was_announced(pair: tuple[Place, Place]) -> None:
    _, bob = pair
    bob.pull()
    with bob.device() as device:
        for path, entry in device.entries.items():
            assert entry.shadow == entry.want == digest(bob.read(path))
