"""Conflicts in which one side has no file stay recorded: in live sync, and whenever the process that moved a
file aside was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstore.record.conflicts import RecordedConflict
from svc.flows.merge.resolve import conflicts
from svc.flows.pull import pull
from tests.localstore.histories import Killed
from tests.localstore.life import Life
from tests.localstore.live.test_rounds import Side
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

START = {
    "gone.txt": b"gone\n",
    "gone.bin": b"\0gone",
    "lib/a.py": b"a = 1\n",
    "page": b"page\n",
    "both": b"both\n",
}
COPIES = {
    "gone.txt": b"mine\n",
    "gone.bin": b"\0mine",
    "lib/a.py": b"a = 2\n",
    "page": b"my page\n",
    "both": b"x\n",
}
"""Path in conflict → what its copy has, or the one file in it."""


def places(root: Path) -> tuple[Place, Place]:
    """Two folders of one branch."""
    root.mkdir()
    relay = ModelRelay()
    ann, bob = Place(root, relay, "ann"), Place(root, relay, "bob")
    for path, data in START.items():
        ann.write(path, data)
    ann.push()
    bob.pull()
    return ann, bob


def change_theirs(ann: Place) -> list[str]:
    """Make the changes of one side. Returns the paths."""
    for path in ("gone.txt", "gone.bin", "lib/a.py", "page"):
        (ann.folder / path).unlink()
    (ann.folder / "lib").rmdir()
    ann.write("lib", "a file\n")
    ann.write("page/index", "theirs\n")
    ann.write("both", "theirs\n")
    return ["gone.txt", "gone.bin", "lib/a.py", "lib", "page", "page/index", "both"]


def change_mine(bob: Place) -> None:
    (bob.folder / "both").unlink()
    bob.write("both/x.txt", COPIES["both"])
    for path in ("gone.txt", "gone.bin", "lib/a.py", "page"):
        bob.write(path, COPIES[path])


def open_conflicts(place: Place) -> dict[str, bytes]:
    """Path in conflict → what its copy has."""
    with place.device() as device:
        standing, over = conflicts(device)
    assert over == []
    contents = {one.path: content(place, one) for one in standing}
    assert len(contents) == len(standing)
    return contents


def content(place: Place, conflict: RecordedConflict) -> bytes:
    kept = place.folder / conflict.kept_as
    return (next(kept.iterdir()) if kept.is_dir() else kept).read_bytes()


def pull_dying(place: Place, life: Life) -> None:
    with place.device() as device, life.over(device):
        pull(device, "merge")


@pytest.mark.parametrize("part", range(4))
def test_no_kill_makes_a_conflict_forgotten(tmp_path: Path, part: int) -> None:
    for end in range(1 + part, 1000, 4):
        ann, bob = places(tmp_path / str(end))
        change_theirs(ann)
        ann.push()
        change_mine(bob)
        try:
            pull_dying(bob, Life(end))
            assert end > 40
            break
        except Killed:
            bob.pull("merge")
        assert open_conflicts(bob) == COPIES, end
    assert open_conflicts(bob) == COPIES


def test_kills_one_after_the_other_make_no_conflict_forgotten(tmp_path: Path) -> None:
    ann, bob = places(tmp_path / "one")
    change_theirs(ann)
    ann.push()
    change_mine(bob)
    for end in range(1, 1000):
        try:
            pull_dying(bob, Life(end))
            break
        except Killed:
            continue
    assert end > 1, "nothing was killed"
    assert open_conflicts(bob) == COPIES


def test_live_sync_records_them_too(tmp_path: Path) -> None:
    places_ = places(tmp_path / "one")
    ann, bob = map(Side, places_)
    paths = change_theirs(ann.place)
    ann.run(lambda copy: ann.rounds.capture_saved(copy, paths))
    change_mine(bob.place)
    done = bob.bring()
    announced = {one.path: one.kept_as for one in done.conflicts}
    assert announced.keys() == COPIES.keys()
    assert len(done.conflicts) == len(COPIES)
    assert all((bob.place.folder / kept_as).exists() for kept_as in announced.values())
    assert open_conflicts(bob.place) == COPIES
    for side in (ann, bob):
        side.rounds.close()
