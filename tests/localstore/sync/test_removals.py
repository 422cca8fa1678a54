"""Removals of most of a branch are asked about before they are sent, by a push and by live sync."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from localstore.core.errors import ConfirmationNeeded
from svc.flows.push import PushResult, push
from svc.flows.restore import restore
from tests.localstore.live.test_rounds import Side
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

HELD = {f"d{number % 5}/{number}.txt": b"same\n" for number in range(100)}


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


def _refuse(removed: int, tree: int) -> None:
    raise ConfirmationNeeded(f"{removed} of {tree}")


def _asked(place: Place, no_delete: bool = False) -> PushResult:
    with place.device() as copy:
        return push(copy, "Two", no_delete=no_delete, agreed=_refuse)


def _remove(place: Place, count: int) -> list[str]:
    gone = sorted(HELD)[:count]
    for path in gone:
        (place.folder / path).unlink()
    return gone


def test_an_emptied_folder_is_not_pushed_unasked(ann: Place, relay: ModelRelay) -> None:
    _remove(ann, 51)
    ann.write("new.txt", "new\n")
    with pytest.raises(ConfirmationNeeded, match="51 of 100"):
        _asked(ann)
    assert relay.tree("main") == HELD  # nothing was sent, the new file neither
    assert ann.push(dry_run=True).removed == sorted(HELD)[:51]
    assert _asked(ann, no_delete=True).removed == []
    assert ann.push("Two").removed == sorted(HELD)[:51]


def test_half_of_it_is_nobodys_question(ann: Place) -> None:
    _remove(ann, 50)
    assert len(_asked(ann).removed) == 50


def test_a_renamed_folder_is_nobodys_question(ann: Place) -> None:
    for number in range(5):
        (ann.folder / f"d{number}").rename(ann.folder / f"e{number}")
    assert len(_asked(ann).removed) == 100


def test_a_small_branch_is_nobodys_question(relay: ModelRelay, tmp_path: Path) -> None:
    ann = Place(tmp_path, relay, "ann")
    for number in range(99):
        ann.write(f"{number}.txt", f"{number}\n")
    ann.push("One")
    for number in range(99):
        (ann.folder / f"{number}.txt").unlink()
    assert len(_asked(ann).removed) == 99


def test_what_the_branch_keeps_is_not_counted(ann: Place, tmp_path: Path) -> None:
    for number in range(5):
        (ann.folder / f"d{number}").rename(tmp_path / f"disk{number}")
        (ann.folder / f"d{number}").symlink_to(tmp_path / f"disk{number}")
    assert _asked(ann).removed == []


def test_live_sync_holds_them_until_a_push(ann: Place, relay: ModelRelay) -> None:
    live = Side(ann)
    gone = _remove(ann, 60)
    live.run(lambda copy: live.rounds.capture_saved(copy, gone[:50]))
    assert len(relay.tree("main")) == 50
    live.run(lambda copy: live.rounds.capture_saved(copy, gone[50:]))
    assert len(relay.tree("main")) == 50  # two parts of one removal are one
    assert live.rounds.removals.held == set(gone[50:])
    assert live.rounds.removals.words.startswith(
        "60 of 100 files are gone here, and 10 removals are not sent"
    )
    live.save("new.txt", "new\n")
    assert relay.tree("main")["new.txt"] == b"new\n"
    assert len(relay.tree("main")) == 51
    ann.push("Two")
    live.run(lambda copy: live.rounds.saved_below(copy, [""]))
    assert (live.rounds.removals.held, live.rounds.removals.words) == (set(), "")
    assert len(relay.tree("main")) == 41


def test_live_sync_sends_none_of_a_removal_that_it_sees_whole(ann: Place, relay: ModelRelay) -> None:
    live = Side(ann)
    for number in range(3):
        shutil.rmtree(ann.folder / f"d{number}")
    live.run(lambda copy: live.rounds.saved_below(copy, ["d0/", "d1/", "d2/"]))
    assert relay.tree("main") == HELD
    again = Side(ann)  # an agent that was started anew
    again.run(lambda copy: again.rounds.saved_below(copy, [""]))
    assert relay.tree("main") == HELD
    assert len(again.rounds.removals.held) == 60


def test_what_is_taken_back_is_held_no_longer(ann: Place, relay: ModelRelay) -> None:
    live = Side(ann)
    gone = _remove(ann, 60)
    live.run(lambda copy: live.rounds.capture_saved(copy, gone))
    assert (len(live.rounds.removals.held), relay.tree("main")) == (60, HELD)
    with ann.device() as copy:
        restore(copy, gone[:20])
    live.run(lambda copy: live.rounds.capture_saved(copy, gone[:20]))
    assert live.rounds.removals.held == set()
    assert sorted(HELD.keys() - relay.tree("main").keys()) == sorted(gone[20:])


def test_live_sync_sends_a_renamed_folder(ann: Place, relay: ModelRelay) -> None:
    live = Side(ann)
    for number in range(3):
        (ann.folder / f"d{number}").rename(ann.folder / f"e{number}")
    folders = [f"{name}{number}/" for number in range(3) for name in "de"]
    live.run(lambda copy: live.rounds.saved_below(copy, folders))
    assert len(relay.tree("main")) == 100
    assert live.rounds.removals.held == set()
