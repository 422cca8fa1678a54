"""A save costs what it changes, whatever the size of the folder; and the caps hold for it as for a push."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import pytest

from localstore.core.model import limits
from localstore.live.rounds import Done, Rounds
from localstore.sync.transfer.send import batch_of
from localstore.sync.working_copy import WorkingCopy
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place


def save(copy: WorkingCopy, rounds: Rounds, *paths: str) -> Done:
    """One round for the saves of these paths, with the relay's answers."""
    rounds.begin(copy, None)
    done = rounds.capture_saved(copy, paths)
    while updates := rounds.outgoing(copy):
        rounds.record_answers(copy, updates, copy.transport.updates(batch_of(copy, updates)))
    rounds.finish(copy)
    return done


def work_of(copy: WorkingCopy, rounds: Rounds, path: str) -> tuple[int, int]:
    """Calls in Python, and steps of the database, that a save takes."""
    calls = steps = 0

    def call(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and "/localstore/" in frame.f_code.co_filename

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    copy.db._sql.set_progress_handler(step, 10)
    sys.setprofile(call)
    try:
        save(copy, rounds, path)
    finally:
        sys.setprofile(None)
        copy.db._sql.set_progress_handler(None, 0)
    return calls, steps


@pytest.mark.parametrize(("path", "head"), [("d1/3.bin", b"\0"), ("d1/2.txt", b""), ("d1/new.bin", b"\0")])
def test_a_save_costs_the_same_in_a_large_folder(tmp_path: Path, path: str, head: bytes) -> None:
    taken = []
    for files in (100, 1000):
        place = Place(tmp_path, ModelRelay(), f"of{files}")
        for number in range(files // 2):
            place.write(f"d{number % 20}/{number // 20}.txt", f"text {number}\n")
            place.write(f"d{number % 20}/{number // 20 + 1}.bin", f"\0{number}")
        place.push("One")
        rounds = Rounds()
        with place.device() as copy:
            for number in (1, 2, 3):  # the first counts the bytes of the tree
                place.write(path, head + b"%d\n" % number)
                work = work_of(copy, rounds, path)
        taken.append(work)
    (few_calls, few_steps), (calls, steps) = taken
    assert calls < few_calls * 1.2
    assert steps < few_steps * 1.5


def follow(copy: WorkingCopy, rounds: Rounds) -> None:
    """Bring the record up to the branch."""
    rounds.begin(copy, None)
    rounds.bootstrap(copy)
    rounds.bring(copy)
    rounds.finish(copy)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(limits, "BLOB_TREE", 30)
    made = Place(tmp_path, ModelRelay(), "ann")
    made.write("a.bin", b"\0" * 10)
    made.write("b.bin", b"\0" * 11)
    made.push("One")
    return made


def test_what_is_saved_counts_with_all_that_the_branch_has(place: Place) -> None:
    rounds = Rounds()
    with place.device() as copy:
        place.write("c.bin", b"\0" * 12)
        (skipped,) = save(copy, rounds, "c.bin").skipped
        assert (skipped.path, skipped.reason) == ("c.bin", "over the size cap of a tree")
        assert "c.bin" not in copy.entries
        place.write("d.bin", b"\0" * 8)
        assert save(copy, rounds, "d.bin").skipped == []
        place.write("e.bin", b"\0" * 2)
        assert [one.path for one in save(copy, rounds, "e.bin").skipped] == ["e.bin"]


def test_what_a_save_replaces_or_removes_makes_room(place: Place) -> None:
    rounds = Rounds()
    with place.device() as copy:
        place.write("a.bin", b"\0" * 19)
        assert save(copy, rounds, "a.bin").skipped == []
        (place.folder / "b.bin").unlink()
        place.write("c.bin", b"\0" * 11)
        assert save(copy, rounds, "b.bin", "c.bin").skipped == []
        follow(copy, rounds)
        place.write("d.bin", b"\0" * 1)
        assert [one.path for one in save(copy, rounds, "d.bin").skipped] == ["d.bin"]
        place.write("c.bin", b"text\n")
        save(copy, rounds, "c.bin")
        follow(copy, rounds)
        assert save(copy, rounds, "d.bin").skipped == []


def test_what_is_in_flight_counts(place: Place) -> None:
    rounds = Rounds()
    with place.device() as copy:
        place.write("c.bin", b"\0" * 8)
        rounds.begin(copy, None)
        assert rounds.capture_saved(copy, ["c.bin"]).skipped == []
        place.write("d.bin", b"\0" * 2)
        assert [one.path for one in rounds.capture_saved(copy, ["d.bin"]).skipped] == ["d.bin"]


def test_files_that_others_removed_make_room(place: Place, tmp_path: Path) -> None:
    bob = Place(tmp_path, place.relay, "bob")
    bob.pull()
    rounds = Rounds()
    with place.device() as copy:
        place.write("c.bin", b"\0" * 12)
        assert save(copy, rounds, "c.bin").skipped
        (bob.folder / "b.bin").unlink()
        bob.push("Two")
        follow(copy, rounds)
        assert save(copy, rounds, "c.bin").skipped == []
