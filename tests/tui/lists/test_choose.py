"""Choosing from a list that is filtered, and a command whose screen is left."""

from __future__ import annotations

from collections.abc import Callable

from tests.svc.conftest import Svc
from tests.tui.conftest import shown
from tests.tui.test_app import project, settle
from tui.app import SvcApp
from tui.screens.choose import Choose
from tui.widgets.lines import Item

__all__ = ["project"]


async def test_arrows_move_while_a_list_is_filtered(open_app: Callable[..., SvcApp], alice: Svc) -> None:
    app, chosen = open_app(), list[str]()
    items = [Item(name, ((name, "text"),)) for name in ("forward", "squash", "rebase")]
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.push_screen(Choose("merge: how", items, chosen.append))
        await pilot.pause()
        await pilot.press("j", "enter")
        await pilot.pause()
        assert "nothing here has j" in shown(app)
        assert chosen == []
        await pilot.press("backspace", "down", "down", "up", "enter")
        await pilot.pause()
        assert chosen == ["squash"]


async def test_a_command_goes_on_when_its_screen_is_left(
    project: str, open_app: Callable[..., SvcApp], alice: Svc
) -> None:
    app = open_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.run_line(f"repo tag create v9 -R {project}")
        await pilot.press("i")
        await settle(pilot)
    assert "v9" in alice("repo", "tag", "list", "-R", project).out
