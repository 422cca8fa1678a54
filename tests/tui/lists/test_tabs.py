"""The counts of tabs, also of those that were not opened."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tests.tui.test_snapshots import world
from tui.app import SvcApp

__all__ = ["project", "world"]


async def test_tabs_say_how_much_is_in_them(world: str, alice: Svc, open_app: Callable[..., SvcApp]) -> None:
    async with open_app().run_test(size=(140, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        text = await sees(pilot, "3 Issues 2 ", "4 Workflows ✗1", "5 Releases 1")
        assert "6 Security │" in text.splitlines()[1]
        await press(pilot, "4")
        await sees(pilot, "Checks of main", "4 Workflows ✗1")
        assert alice("repo", "run", "create", "lint", "--conclusion", "success").code == 0
        text = await sees(pilot, "✓ 1/1")
        assert "4 Workflows │" in text.splitlines()[1]
        await press(pilot, "3")
        await sees(pilot, "Issues open · 2", "3 Issues 2 ")
        await press(pilot, "p")
        await sees(pilot, "no open proposals", "3 Proposals │")
        await press(pilot, "p")
        await sees(pilot, "Issues open · 2", "3 Issues 2 ")


async def test_the_count_of_failed_checks_is_that_of_the_shown_seal(
    world: str, alice: Svc, open_app: Callable[..., SvcApp]
) -> None:
    first = json.loads(alice("log", "--json", "id").out)[-1]["id"]
    assert alice("repo", "tag", "create", "first", "--from", first).code == 0
    async with open_app().run_test(size=(140, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await sees(pilot, "4 Workflows ✗1")
        await press(pilot, "b", *"first", "enter")
        text = await sees(pilot, " tag first @ ")
        assert "4 Workflows │" in text.splitlines()[1]
