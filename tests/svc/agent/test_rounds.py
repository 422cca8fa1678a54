"""Rounds of a watched folder: saves of one that failed are not forgotten, and where a person is seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from localstore.agent.talk import FolderEvent
from localstore.core.errors import ServerUnreachable
from localstore.home import Home
from localstore.sync.owning import RoundOwner
from svc.agent.editing import OpenTexts
from svc.agent.line import Line
from svc.agent.rounds import FolderRounds
from svc.agent.state import FolderState
from svc.flows.common import begin
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import LINK, Place
from tests.localstore.test_folding import folded_clone


@pytest.fixture
def state(tmp_path: Path) -> FolderState:
    return FolderState(tmp_path, 1, LINK, cast("RoundOwner", None), lambda said: None)


@pytest.fixture
def rounds(state: FolderState) -> FolderRounds:
    return FolderRounds(state, OpenTexts(state), lambda line: None)


def test_what_was_saved_is_looked_at_again_after_a_failure(state: FolderState, rounds: FolderRounds) -> None:
    state.saves.record_closed("a.txt", 0.0)
    state.saves.record_changed_below("sub/", 0.0)
    due = state.saves.pop_due(time.monotonic(), lambda path: False, 10)
    assert due == (["a.txt"], {"sub/"})
    with pytest.raises(ServerUnreachable), rounds._requeue_saves(*due):
        raise ServerUnreachable
    assert state.saves.pop_due(time.monotonic() + 1, lambda path: False, 10) == due


def test_what_was_brought_or_answered_is_sent_again_after_a_failure(
    state: FolderState, rounds: FolderRounds
) -> None:
    with pytest.raises(ServerUnreachable), rounds._resend_later(["a.txt"]):
        raise ServerUnreachable
    assert state.due.paths_to_resend == {"a.txt"}


def test_what_the_disk_cannot_hold_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = Place(tmp_path, ModelRelay(), "ann")
    for name in ("A.txt", "a.txt"):
        ann.write(name, f"{name}\n")
    ann.push()
    folder, said = tmp_path / "folding", list[FolderEvent]()
    folded_clone(ann, folder, monkeypatch)
    bound = ann.relay.transport("main", ann.key), ann.key
    owning = RoundOwner(folder, Home(tmp_path / "folding-home"), lambda repo: bound)
    state = FolderState(folder, 1, LINK, owning, said.append)
    rounds = FolderRounds(state, OpenTexts(state), lambda line: None)
    for _ in range(2):
        with owning.round() as copy:
            state.work.begin(copy, state.turn)
            rounds._pull(copy)
    owning.close()
    skipped = [(one.path, one.detail) for one in said if one.event == "skipped"]
    assert skipped == [("a.txt", "this file system takes it for A.txt")]


def test_a_person_is_seen_at_the_file_and_not_at_a_temporary_one(tmp_path: Path) -> None:
    """As with `sed -i`, which writes a file beside the old one and renames it."""
    ann = Place(tmp_path, ModelRelay(), "ann")
    ann.write("a.txt", "one\ntwo\n")
    ann.write(".gitignore", "secrets\n")
    ann.push()
    bound = ann.relay.transport("main", ann.key), ann.key
    owning = RoundOwner(ann.folder, ann.home, lambda repo: bound)
    state = FolderState(ann.folder, 1, LINK, owning, lambda said: None)
    rounds = FolderRounds(state, OpenTexts(state), lambda line: None)
    ann.write("a.txt", "one\n2\n")
    ann.write("secrets", "ignored\n")
    state.saves.record_closed("a.txt", 0.0)
    state.saves.record_closed("secrets", 0.0)
    state.saves.record_vanished("sedAb12Cd", 0.0)
    rounds.run()
    assert state.last_save == ("a.txt", 2)
    state.last_save = None
    ann.write("new.txt", "new\n")
    state.saves.record_vanished("sedEf34Gh", 0.0)
    rounds.run()
    assert state.last_save is None
    state.saves.record_closed("new.txt", 0.0)
    rounds.run()
    owning.close()
    assert state.last_save == ("new.txt", 0)


TEXT = "".join(f"line {number}\n" for number in range(40))


@contextmanager
def beside(ann: Place) -> Iterator[Callable[[], None]]:
    """A context with a function that does the rounds of an agent in ann's folder, until nothing is due."""
    bound = ann.relay.transport("main", ann.key), ann.key
    owning = RoundOwner(ann.folder, ann.home, lambda repo: bound)
    state = FolderState(ann.folder, 1, LINK, owning, lambda said: None)
    rounds = FolderRounds(state, OpenTexts(state), lambda line: None)
    state.connection.light = "polling"
    state.connection.line = cast("Line", object())  # what is sent goes by requests

    def work() -> None:
        for _ in range(5):
            rounds.run()
            rounds.post()

    work()
    yield work
    owning.close()


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Place, Place]:
    relay = ModelRelay()
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    ann.write("a.txt", TEXT)
    ann.push()
    bob.pull()
    return ann, bob


def test_what_a_command_saw_first_and_did_not_send_is_sent(pair: tuple[Place, Place]) -> None:
    ann, bob = pair
    with beside(ann) as work:
        bob.write("a.txt", TEXT.replace("line 3\n", "theirs\n"))
        bob.push()
        (ann.folder / "a.txt").rename(ann.folder / "b.txt")
        ann.pull("merge")  # before the agent hears of the rename
        work()
    assert sorted(ann.relay.tree("main")) == ["b.txt"]


def test_what_a_command_received_and_did_not_write_is_written(pair: tuple[Place, Place]) -> None:
    ann, bob = pair
    with beside(ann) as work:
        bob.write("new.txt", "new\n")
        bob.write("a.txt", TEXT.replace("line 3\n", "theirs\n"))
        bob.push()
        with ann.device() as copy:
            begin(copy)  # as a push that is refused afterwards
        work()
    assert ann.files() == bob.files()
