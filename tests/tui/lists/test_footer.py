"""The line of keys names only what a key does there, and esc never ends the app."""

from __future__ import annotations

from collections.abc import Callable

from tests.tui.test_app import press, project, settle
from tests.tui.test_issues import issue
from tui.app import SvcApp

__all__ = ["issue", "project"]
Open = Callable[..., SvcApp]


def footer(text: str) -> str:
    return text.rstrip().split("\n")[-1]


async def test_esc_on_home_says_how_to_quit_and_q_quits(project: str, open_app: Open) -> None:
    app = open_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "q quit" in footer(await press(pilot, "enter", "escape"))
        text = await press(pilot, "escape", "escape", "escape")
        assert app.is_running
        assert "q quits" in footer(text)
        await pilot.press("q")
        await pilot.pause()
        assert not app.is_running


async def test_keys_that_would_be_typed_are_not_offered(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for opens in ("t", "w", "slash"):
            text = await press(pilot, *(["enter", opens] if opens == "t" else [opens]))
            assert "esc leave" in text and ("enter choose" in text or opens == "slash")
            assert "/ filter" not in text and "? keys here" not in text
            text = await press(pilot, "escape")
            assert "? keys here" in footer(text)


async def test_enter_is_offered_where_it_opens_something(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(140, 24)) as pilot:
        await settle(pilot)
        assert "enter open" in footer(await press(pilot, "enter"))
        assert "enter open" not in footer(await press(pilot, "1"))
        assert "enter open" in footer(await press(pilot, "3"))
        text = await press(pilot, "enter")
        assert "c comment" in footer(text)
        assert "enter open" not in footer(text)


async def test_empty_lists_name_the_key(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "no releases; a makes one" in await press(pilot, "enter", "5")
        assert "no rules; 8 opens Settings" in await press(pilot, "6")
