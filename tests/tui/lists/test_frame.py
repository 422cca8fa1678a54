"""The line of keys, and long lines of a command's output, at 80 columns."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tui.app import SvcApp
from tui.text import hang, wrap

__all__ = ["project"]
Open = Callable[..., SvcApp]


def test_a_long_line_goes_on_below_its_first_word() -> None:
    assert hang("  one two three", 20) == ["  one two three"]
    assert hang("  one two three", 9) == ["  one two", "  three"]
    assert hang("svc: \x1b[31m漢字漢字", 8) == ["svc:", "\\x1b[31m", "漢字漢字"]


def test_lines_keep_their_indentation() -> None:
    code = "def f():\n    if x:\n\treturn 1\n\n- one\n  - two"
    assert wrap(code, 40) == ["def f():", "    if x:", "    return 1", "", "- one", "  - two"]
    assert wrap("    one two three\nfour", 12) == ["    one two", "    three", "four"]
    assert wrap("      ", 4) == ["  "]


async def test_the_key_that_lists_all_keys_is_never_cut(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        for tab in "2358":
            keys = (await press(pilot, tab)).splitlines()[-1]
            assert keys.rstrip().endswith("? keys here")
            assert "…" not in keys
        await pilot.resize_terminal(200, 50)
        await pilot.pause()
        await settle(pilot)
        assert "b branch, tag or seal  esc back" in (await press(pilot, "2")).splitlines()[-1]


@pytest.mark.parametrize(
    ("width", "first", "last"),
    [
        (60, "1 Over│2 Code│", "│8 Set"),
        (80, "  1 Over │ 2 Code │", "│ 8 Set"),
        (120, "  1 Overview │", "│ 8 Settings"),
    ],
)
async def test_no_tab_is_cut(project: str, open_app: Open, width: int, first: str, last: str) -> None:
    async with open_app().run_test(size=(width, 24)) as pilot:
        await settle(pilot)
        tabs = (await press(pilot, "enter")).splitlines()[1].rstrip()
        assert tabs.startswith(first) and tabs.endswith(last), tabs


async def test_tabs_tell_how_many(project: str, alice: Svc, open_app: Open) -> None:
    assert alice("issue", "create", "-t", "Stalls").code == 0
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "3 Issues 1")
        assert "3 Issues 1" in await press(pilot, "o", "o")
        assert "│ 3 Prop │" in await press(pilot, "p")


async def test_what_a_refused_command_advises_is_not_cut(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "colon", *"repo tag create --from nothing-of-this-name-is-here-at-all v1")
        await press(pilot, "enter")
        text = await sees(pilot, "nothing-of-this-name-is-here-at-all", ":log")
        words = " ".join(text.replace("│", " ").split())  # without the frame
        assert "see :repo branch, :repo tag list, :log" in words
