"""The cursor of every text that is typed can be seen: in every theme, in 16 colours, with NO_COLOR."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.color import ColorSystem
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import TextArea

from tests.patience import PATIENCE
from tests.svc.conftest import Svc
from tests.tui.test_app import settle
from tui.app import SvcApp
from tui.display.looks import Cell, Looks, _codes
from tui.theme import THEMES
from tui.widgets.frame import Prompt
from tui.widgets.written import TextEditor, Use

Open = Callable[..., SvcApp]
SYSTEMS = {"standard": ColorSystem.STANDARD, "256": ColorSystem.EIGHT_BIT, "truecolor": ColorSystem.TRUECOLOR}


def cells(app: SvcApp, widget: Widget, system: str) -> list[Cell]:
    """The first row of a widget as the terminal shows it."""
    region = widget.region
    row = app.screen._compositor.render_strips()[region.y]
    return Looks(SYSTEMS[system]).cells(row)[region.x : region.right]


def stands_out(row: list[Cell], at: int) -> None:
    """The cursor at column `at` is its neighbour reversed, and nothing else is."""
    beside, cursor = _codes(row[at - 1].look), _codes(row[at].look)
    assert beside is not None and cursor is not None
    assert "7" not in beside
    assert cursor == {**beside, "7": "7"}


def everywhere(app: SvcApp, widget: Widget, at: int) -> None:
    for system in SYSTEMS:
        stands_out(cells(app, widget, system), at)


LABEL = " / "  # before what is typed into a filter


async def opened(pilot: Pilot[None], kind: type[Widget]) -> Widget:
    """The widget of a kind, once it has the focus."""
    for _ in range(int(PATIENCE * 20)):
        await settle(pilot)
        if isinstance(pilot.app.focused, kind):
            return pilot.app.focused
    raise AssertionError(f"{kind} has no focus")


@pytest.mark.parametrize("no_color", [False, True])
async def test_cursors(no_color: bool, alice: Svc, open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1" if no_color else "")
    app = open_app()
    use = Use(*[lambda *_: None] * len(Use._fields))  # type: ignore[list-item]
    async with app.run_test(size=(80, 24)) as pilot:
        for theme in THEMES:
            app.wear(theme)
            await settle(pilot)
            await pilot.press("slash", "a", "b")
            prompt = await opened(pilot, Prompt)
            everywhere(app, prompt, len(LABEL) + 2)
            await pilot.press("left")
            await settle(pilot)
            everywhere(app, prompt, len(LABEL) + 1)
            await pilot.press("escape", "escape")

            app.write_text("text", "ab", lambda text: None, lambda text: None)
            area = await opened(pilot, TextArea)
            everywhere(app, area, 2)
            await pilot.press("left")
            await settle(pilot)
            everywhere(app, area, 1)
            app.pop_screen()
            await settle(pilot)

            written = TextEditor("a.txt", use)
            await app.screen.mount(written)
            written.begin("ab")
            written.focus()
            await pilot.press("right")
            await settle(pilot)
            everywhere(app, written, written.gutter_width + 1)
            await written.remove()
