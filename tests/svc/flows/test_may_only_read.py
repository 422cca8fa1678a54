"""Somebody who could write may only read now: the role was lowered, the repository archived, or a session
ended and the repository is public. What nobody has sealed yet stays in the folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localstore.errors import LocalEdits
from localstore.sync.compose import compose
from localstore.sync.open_merge import OpenMerge, keep, open_merge
from localstore.sync.transfer.send import send
from localstore.sync.working_copy import WorkingCopy
from svc.flows.common import begin, changed_since_last_seal
from svc.flows.pull import Mode, pull
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

TEXT = "".join(f"line {number}\n" for number in range(12))


@pytest.fixture
def relay() -> ModelRelay:
    return ModelRelay()


@pytest.fixture
def ann(relay: ModelRelay, tmp_path: Path) -> Place:
    """Ann's edits are on the branch, and in no seal."""
    place = Place(tmp_path, relay, "ann")
    for path in ("a.txt", "gone.txt", "same.txt"):
        place.write(path, TEXT)
    place.write("b.bin", b"\0one")
    place.push()
    place.write("a.txt", TEXT.replace("line 3", "line three"))
    place.write("b.bin", b"\0two")
    place.write("new.txt", "new\n")
    (place.folder / "gone.txt").unlink()
    send_live(place)
    send_live(place)  # reads the frontier that has them
    return place


def send_live(place: Place) -> None:
    with place.device() as copy:
        begin(copy)
        compose(copy, copy.scan())
        send(copy)


@contextmanager
def reading(place: Place) -> Iterator[WorkingCopy]:
    with place.device() as copy:
        copy.key = None
        yield copy


def test_a_pull_names_the_edits_and_leaves_them(ann: Place) -> None:
    mine = ann.files()
    with reading(ann) as copy, pytest.raises(LocalEdits) as refused:
        pull(copy)
    assert refused.value.extra["paths"] == ["a.txt", "b.bin", "gone.txt"]
    assert ann.files() == mine


def test_a_merge_keeps_them_as_edits_of_the_last_seal(ann: Place) -> None:
    mine = ann.files()
    for _ in range(2):
        with reading(ann) as copy:
            assert pull(copy, "merge").changed == []
            assert changed_since_last_seal(copy, copy.scan()) == ["a.txt", "b.bin", "gone.txt"]
    assert ann.files() == mine


def test_a_pull_by_force_puts_them_into_the_trash(ann: Place) -> None:
    with reading(ann) as copy:
        done = pull(copy, "force")
    assert done.trash is not None
    assert (done.trash / "a.txt").read_text() == TEXT.replace("line 3", "line three")
    assert (done.trash / "b.bin").read_bytes() == b"\0two"
    assert ann.read("a.txt") == TEXT.encode()
    assert ann.read("b.bin") == b"\0one"
    assert ann.read("new.txt") == b"new\n"


@pytest.mark.parametrize("meanwhile", ["plain", "merge"])
def test_whoever_may_write_again_has_what_the_branch_has(
    relay: ModelRelay, ann: Place, meanwhile: Mode
) -> None:
    mine = ann.files()
    with reading(ann) as copy:
        try:
            pull(copy, meanwhile)
        except LocalEdits:
            assert meanwhile == "plain"
    assert ann.pull().conflicts == []
    assert ann.files() == mine == relay.tree("main")
    ann.push()
    assert relay.sealed_tree(relay.branches["main"].head) == mine


def test_edits_of_others_that_came_meanwhile_come_with_the_role(
    relay: ModelRelay, ann: Place, tmp_path: Path
) -> None:
    bob = Place(tmp_path, relay, "bob")
    bob.pull()
    with reading(ann) as copy:
        pull(copy, "merge")
    bob.write("a.txt", bob.read("a.txt").replace(b"line 9", b"line nine"))
    bob.write("bob.txt", "bob\n")
    bob.push()
    assert ann.pull("merge").conflicts == []
    assert ann.files() == bob.files() == relay.tree("main")


def test_a_seal_of_them_comes_as_a_seal(relay: ModelRelay, ann: Place, tmp_path: Path) -> None:
    bob = Place(tmp_path, relay, "bob")
    bob.pull()
    bob.push()
    mine = ann.files()
    with reading(ann) as copy:
        done = pull(copy)
    assert done.conflicts == []
    assert ann.files() == mine
    with reading(ann) as copy:
        assert changed_since_last_seal(copy, copy.scan()) == []


def test_the_kind_of_the_repository_stays_known(ann: Place) -> None:
    """It says which sizes of files a push takes, and `svc status` names those over it."""
    with ann.device() as copy:
        copy.db.put("repo_kind", "dataset")
    with reading(ann) as copy:
        pull(copy, "merge")
        assert copy.repo_kind == "dataset"


def test_an_open_merge_stays_open(ann: Place) -> None:
    with ann.device() as copy:
        assert copy.last_seal is not None
        keep(copy, OpenMerge(copy.last_seal, "topic", copy.last_seal, copy.branch_id, whole=True))
    with reading(ann) as copy:
        pull(copy, "merge")
    with ann.device() as copy:
        begin(copy)
        assert open_merge(copy) is not None


@pytest.mark.parametrize("mode", ["plain", "merge", "force"])
def test_a_dry_run_changes_nothing(ann: Place, mode: Mode) -> None:
    mine, state = ann.files(), ann.read(".svc/state.json")
    with reading(ann) as copy:
        try:
            pull(copy, mode, dry_run=True)
        except LocalEdits:
            assert mode == "plain"
        assert copy.branch_id
        assert not copy.db.text("read_head")
    assert (ann.files(), ann.read(".svc/state.json")) == (mine, state)
