"""What the app shows of live sync on this machine: watched folders, a pause, people in the tree."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from localstore.agent.talk import PersonOnBranch
from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tui.app import SvcApp
from tui.machine import Machine

__all__ = ["project"]
Open = Callable[..., SvcApp]


async def test_the_sync_screen_shows_watched_folders_and_pauses_them(
    project: str, alice: Svc, open_app: Open
) -> None:
    folder = Path.cwd()
    assert alice("watch", "--detach").code == 0
    try:
        async with open_app().run_test(size=(200, 24)) as pilot:
            await settle(pilot)
            await press(pilot, "s")
            await sees(pilot, f"{project} main", "z pauses the folder under the cursor")
            assert "put the cursor on a watched folder" in await press(pilot, "z"), "it is elsewhere"
            await press(pilot, "j")
            await sees(pilot, f"folder    {folder}")
            await press(pilot, "z")
            screen = await sees(pilot, "paused")
            assert "○ offline" in screen
            assert paused(pilot.app)
            await press(pilot, "z")
            assert not paused(pilot.app)
    finally:
        assert alice("watch", "stop", "--all").code == 0


def paused(app: object) -> bool:
    assert isinstance(app, SvcApp)
    assert app.machine is not None
    status = app.machine.status()
    assert status is not None
    return status.folders[0].paused


class Crowded(Machine):
    """Where two people are on the branch."""

    def people(self, repo: str, branch: str) -> list[PersonOnBranch]:
        assert (repo, branch) == (self.repo, "main")
        return [
            PersonOnBranch("bob", "desk", path="src/main.py", line=2),
            PersonOnBranch("\x1b[2Jeve", "x", kind="agent", path="README.md"),
        ]

    repo = ""


async def test_the_tree_says_who_is_in_which_file(project: str, alice: Svc, open_app: Open) -> None:
    app = open_app()
    assert app.machine is not None
    app.machine.__class__ = Crowded
    Crowded.repo = project
    async with app.run_test(size=(120, 24)) as pilot:
        await settle(pilot)
        screen = await press(pilot, "enter", "2")
        lines = {line.split()[0].strip("▌"): line for line in screen.splitlines() if "@" in line}
        assert any("src/" in line and "@bob" in line for line in lines.values()), screen
        assert any("README" in line and "eve" in line for line in lines.values()), screen
        assert "\x1b" not in screen
    assert os.environ["TEST_HANDLE"] in project


def test_without_an_agent_nothing_is_started(alice: Svc, open_app: Open) -> None:
    machine = open_app().machine
    assert machine is not None
    assert machine.status() is None
    assert not (Path(os.environ["SVC_HOME"]) / "agent.lock").exists()
