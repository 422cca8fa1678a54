"""Saves of a round that failed are not forgotten."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

import pytest

from localstore.core.errors import ServerUnreachable
from localstore.sync.owning import Rounds
from svc.agent.editing import OpenTexts
from svc.agent.rounds import FolderRounds
from svc.agent.state import FolderState
from tests.localstore.place import LINK


@pytest.fixture
def state(tmp_path: Path) -> FolderState:
    return FolderState(tmp_path, 1, LINK, cast("Rounds", None), lambda said: None)


@pytest.fixture
def rounds(state: FolderState) -> FolderRounds:
    return FolderRounds(state, OpenTexts(state), lambda line: None)


def test_what_was_saved_is_looked_at_again_after_a_failure(state: FolderState, rounds: FolderRounds) -> None:
    state.saves.closed("a.txt", 0.0)
    state.saves.changed_below("sub/", 0.0)
    due = state.saves.pop_due(time.monotonic(), lambda path: False, 10)
    assert due == (["a.txt"], {"sub/"})
    with pytest.raises(ServerUnreachable), rounds._heard_again(*due):
        raise ServerUnreachable
    assert state.saves.pop_due(time.monotonic() + 1, lambda path: False, 10) == due


def test_what_was_brought_or_answered_is_sent_again_after_a_failure(
    state: FolderState, rounds: FolderRounds
) -> None:
    with pytest.raises(ServerUnreachable), rounds._sent_again(["a.txt"]):
        raise ServerUnreachable
    assert state.again == {"a.txt"}
