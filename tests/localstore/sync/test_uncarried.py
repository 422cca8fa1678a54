"""What svc cannot carry leaves what the branch holds as it was: for push, pull and live sync."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from localstore.folder.scan_result import Skipped
from localstore.sync.compose import compose
from svc.flows.status import status
from tests.localstore.live.test_rounds import Side
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

OVER = bytes(17 * 1024 * 1024)
HELD = {"data/1": b"1\n", "data/2": b"\x002", "kept.txt": b"kept\n"}
Becomes = Callable[[Path], None]


@pytest.fixture
def relay() -> ModelRelay:
    return ModelRelay()


@pytest.fixture
def ann(relay: ModelRelay, tmp_path: Path) -> Place:
    ann = Place(tmp_path, relay, "ann")
    for path, data in HELD.items():
        ann.write(path, data)
    ann.push("One")
    return ann


def _link(data: Path) -> None:
    data.rename(data.parent.parent / "disk")
    data.symlink_to(data.parent.parent / "disk")


def _socket(data: Path) -> None:
    shutil.rmtree(data)
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(data.parent)  # the name of a socket may have 108 bytes
        try:
            made.bind(data.name)
        finally:
            os.chdir(here)


def _pipe(data: Path) -> None:
    shutil.rmtree(data)
    os.mkfifo(data)


def _over_the_cap(data: Path) -> None:
    shutil.rmtree(data)
    data.write_bytes(OVER)


def _not_utf8(data: Path) -> None:
    data.rename(data.with_name("d\udce9t\udce9"))


def _unsafe(data: Path) -> None:
    data.rename(data.with_name("da\x01ta"))


def _other_repository(data: Path) -> None:
    shutil.rmtree(data)
    (data / ".git").mkdir(parents=True)


BECOMES = (_link, _socket, _pipe, _over_the_cap, _not_utf8, _unsafe, _other_repository)


@pytest.mark.parametrize("becomes", BECOMES)
def test_a_push_leaves_what_a_folder_held(ann: Place, relay: ModelRelay, becomes: Becomes) -> None:
    becomes(ann.folder / "data")
    ann.write("new.txt", "new\n")
    pushed = ann.push("Two")
    assert pushed.removed == []
    assert relay.sealed_tree(pushed.seal) == {**HELD, "new.txt": b"new\n"}
    assert _kept(pushed.skipped) == {"data/1", "data/2"}
    again = ann.push("Three")
    assert (again.seal, again.removed, _kept(again.skipped)) == (None, [], {"data/1", "data/2"})
    with ann.device() as copy:
        looked = status(copy, offline=True)
    assert (looked.removed, _kept(looked.skipped)) == ([], {"data/1", "data/2"})


@pytest.mark.parametrize("becomes", BECOMES)
def test_a_live_folder_leaves_what_it_held(ann: Place, relay: ModelRelay, becomes: Becomes) -> None:
    live = Side(ann)
    becomes(ann.folder / "data")
    below = live.run(lambda copy: live.rounds.saved_below(copy, ["data/"]))
    paths = ["data/1", "data/2", "data", *_names(ann.folder)]
    saved = live.run(lambda copy: live.rounds.capture_saved(copy, [one for one in paths if one != ".svc"]))
    assert relay.tree("main") == HELD
    assert _kept(below.skipped) == _kept(saved.skipped) == {"data/1", "data/2"}
    walked = live.run(lambda copy: live.rounds.saved_below(copy, [""]))
    assert relay.tree("main") == HELD
    assert _kept(walked.skipped) == {"data/1", "data/2"}


@pytest.mark.parametrize("becomes", BECOMES)
def test_a_pull_leaves_it_there(ann: Place, relay: ModelRelay, tmp_path: Path, becomes: Becomes) -> None:
    bob = Place(tmp_path, relay, "bob")
    bob.pull()
    becomes(ann.folder / "data")
    before = _names(ann.folder)
    bob.write("data/1", "by bob\n")
    bob.write("data/3", "3\n")
    bob.write("kept.txt", "by bob\n")
    bob.push("Two")
    ann.pull("merge")
    assert ann.read("kept.txt") == b"by bob\n"
    if becomes is _link:
        assert _names(tmp_path / "disk") == ["1", "2"]
    if becomes in (_link, _socket, _pipe, _other_repository):
        assert _names(ann.folder) == before
    ann.push("Three")
    assert relay.tree("main") == {**HELD, "data/1": b"by bob\n", "data/3": b"3\n", "kept.txt": b"by bob\n"}


@pytest.mark.parametrize("becomes", BECOMES)
def test_a_file_of_the_name_is_left_too(ann: Place, relay: ModelRelay, becomes: Becomes) -> None:
    held = ann.folder / "kept.txt"
    if becomes in (_not_utf8, _unsafe, _link):
        becomes(held)
    else:
        held.unlink()
        held.mkdir()
        becomes(held)
    pushed = ann.push("Two")
    assert (pushed.removed, relay.tree("main")) == ([], HELD)
    assert _kept(pushed.skipped) <= {"kept.txt"}


def test_live_does_not_write_where_a_link_is(ann: Place, relay: ModelRelay, tmp_path: Path) -> None:
    bob = Place(tmp_path, relay, "bob")
    bob.pull()
    live = Side(ann)
    _link(ann.folder / "data")
    bob.write("data/1", "by bob\n")
    bob.push("Two")
    live.bring()
    assert (ann.folder / "data").is_symlink()
    assert (tmp_path / "disk/1").read_bytes() == b"1\n"
    assert relay.tree("main")["data/1"] == b"by bob\n"


def test_a_folder_that_comes_back_is_as_before(ann: Place, relay: ModelRelay, tmp_path: Path) -> None:
    _link(ann.folder / "data")
    ann.push("Two")
    (ann.folder / "data").unlink()
    (tmp_path / "disk").rename(ann.folder / "data")
    ann.write("data/1", "edited\n")
    pushed = ann.push("Three")
    assert (pushed.sent, pushed.removed) == (["data/1"], [])
    (ann.folder / "data/2").unlink()
    assert ann.push("Four").removed == ["data/2"]


def test_what_was_renamed_under_a_lowered_cap_stays(ann: Place) -> None:
    (ann.folder / "data/2").rename(ann.folder / "moved.bin")
    with ann.device() as copy:
        copy.file_cap = 1
        composed = compose(copy, copy.scan())
    assert (composed.removed, composed.kept) == ([], {"moved.bin": ["data/2"]})


def test_an_equal_file_that_is_really_removed_goes(ann: Place, relay: ModelRelay) -> None:
    """A badly named file of other bytes holds nothing back."""
    (ann.folder / "da\x01ta").write_bytes(b"9\n")  # as long as data/1
    shutil.rmtree(ann.folder / "data")
    assert ann.push("Two").removed == ["data/1", "data/2"]


def test_a_file_renamed_to_a_good_name_moves_beside_an_equal_one_of_a_bad_name(
    ann: Place, relay: ModelRelay
) -> None:
    (ann.folder / "da\x01ta").write_bytes(HELD["data/1"])
    (ann.folder / "data/1").rename(ann.folder / "data/one")
    pushed = ann.push("Two")
    assert (pushed.removed, _kept(pushed.skipped)) == (["data/1"], set())
    assert relay.tree("main") == {"data/2": HELD["data/2"], "data/one": HELD["data/1"], "kept.txt": b"kept\n"}
    with ann.device() as copy:
        assert status(copy, offline=True).removed == []


def _names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def _kept(skipped: list[Skipped]) -> set[str]:
    return {path for item in skipped for path in item.keeps}
