"""What a folder of the agent holds open."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from svc.agent.folder import WatchedFolder
from tests.svc.conftest import Svc


def held(home: Path) -> int:
    """How often this process has the state folder open."""
    opened = Path("/proc/self/fd")
    return sum(os.path.realpath(one) == str(home) for one in opened.iterdir())


def test_a_command_lets_go_of_the_state_folder(alice: Svc) -> None:
    before = held(Path(os.environ["SVC_HOME"]).resolve())
    assert alice("repo", "list").code == 0
    assert held(Path(os.environ["SVC_HOME"]).resolve()) == before


@pytest.fixture
def folder(alice: Svc) -> WatchedFolder:
    """A linked folder as the agent watches it, whose thread has ended: its steps are called by hand."""
    assert alice("repo", "create", "work").code == 0
    assert alice("repo", "init", f"{os.environ['TEST_HANDLE']}/work").code == 0
    deaf: Any = lambda *_: None  # noqa: E731
    folder = WatchedFolder(Path.cwd(), 1, deaf, deaf, deaf, deaf, paused=True)
    folder.stop()
    folder.join(30)
    return folder


def test_where_a_session_ended_a_folder_does_not_open_ever_more(folder: WatchedFolder) -> None:
    """It reads session and link again before each further try."""
    home = Path(os.environ["SVC_HOME"]).resolve()
    before = held(home)
    for _ in range(5):
        folder._new_place()
    assert held(home) <= before + 1


def test_a_save_that_waits_for_the_next_try_keeps_no_processor_busy(folder: WatchedFolder) -> None:
    """As after the repository was hidden from its user."""
    now = time.monotonic()
    folder._state.saves.record_closed("a.txt", now - 5)
    assert folder._seconds_until_due() == 0
    folder._state.due.not_before = folder._look_at = now + 30
    assert folder._seconds_until_due() > 20


def test_what_a_command_recorded_is_looked_at_without_an_event(alice: Svc, folder: WatchedFolder) -> None:
    state = folder._state
    with state.owning.round():
        state.due.needs_pull = False
    for expected in (False, True):
        folder._look_at = 0.0
        folder._take_messages(0.0)
        assert state.due.needs_pull is expected
        Path("a.txt").write_text("new\n")
        assert alice("status").code == 0
    state.owning.close()
