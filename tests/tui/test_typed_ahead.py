"""Keys that come faster than screens open: they go to what the keys before them opened, in order."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.pilot import Pilot

from tests.svc.conftest import Svc
from tests.tui.test_app import NAMES, press, project, sees, settle
from tests.tui.test_issues import issue, waiting
from tui.app import SvcApp

__all__ = ["issue", "project"]
Open = Callable[..., SvcApp]


def burst(pilot: Pilot[None], *keys: str) -> None:
    """All at once, as a terminal hands over what was typed while the app was busy."""
    for key in keys:
        pilot.app.post_message(events.Key(NAMES.get(key, key), key if len(key) == 1 else None))


async def test_a_text_typed_at_once_is_in_the_prompt_and_runs_nothing(
    issue: str, alice: Svc, open_app: Open
) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        await press(pilot, "enter")
        burst(pilot, "c", *"zzx quit")
        await sees(pilot, "zzx quit")
        await press(pilot, "escape")
    assert waiting(alice) == []


async def test_a_name_typed_at_once_is_searched(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "2")
        burst(pilot, "t", *"main")
        await sees(pilot, "src/main.py")
        assert "README.md" not in await settle(pilot)


async def test_a_line_typed_at_once_is_the_command_line(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        burst(pilot, ":", *"issue view 1")
        await sees(pilot, "issue view 1")


async def test_going_back_at_once_leaves_two_screens(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        home = len(pilot.app.screen_stack)
        await press(pilot, "enter")
        await press(pilot, "3")
        await press(pilot, "enter")
        burst(pilot, "escape", "escape")
        await settle(pilot)
        await settle(pilot)
        assert len(pilot.app.screen_stack) == home
