"""What the app asks before it acts: a card over the screen, red for what nothing brings back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.color import Color

from tests.tui.settings.test_settings import opened, to, typed
from tests.tui.test_app import press, project
from tui.app import SvcApp
from tui.theme import css_colour
from tui.widgets.question import Question

__all__ = ["project"]
Open = Callable[..., SvcApp]
SIZES = [(80, 24), (100, 30), (140, 40)]


def frame_of(app: SvcApp) -> Color:
    return app.screen.query_one(Question).styles.border_top[1]


@pytest.mark.parametrize("size", SIZES)
async def test_a_question_is_a_card(project: str, open_app: Open, size: tuple[int, int]) -> None:
    app = open_app()
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        await to(pilot, "Lifecycle", "archive", "")
        text = await press(pilot, "enter")
        assert "Refuse every write until unarchived?" in text and "Lifecycle" in text
        row = next(line for line in text.splitlines() if "y yes" in line)
        assert "│  y yes   n no   esc leave" in row, row
        assert frame_of(app) == Color.parse(css_colour(app.colours, "accent"))
        await pilot.resize_terminal(size[0] - 10, size[1])
        text = await press(pilot, "n")
        assert "nothing was done" in text and "Refuse every write" not in text
        assert not app.screen.query(Question)


@pytest.mark.parametrize("size", SIZES)
async def test_delete_asks_in_red(project: str, open_app: Open, size: tuple[int, int]) -> None:
    app = open_app()
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        await to(pilot, "Lifecycle", "delete", "")
        text = await press(pilot, "enter")
        assert "will be deleted" in text
        assert "its name:" in text and "Lifecycle" in text
        assert frame_of(app) == Color.parse(css_colour(app.colours, "bad"))
        assert "that is not its name; nothing was deleted" in await typed(pilot, "project")
        assert not app.screen.query(Question)


async def test_a_typed_line_begins_with_what_it_is_for(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await opened(pilot)
        assert (await press(pilot, "slash")).splitlines()[-1].startswith(" / text of the rows to list")
        await press(pilot, "escape")
        await to(pilot, "General", "field", "description")
        text = await press(pilot, "enter", *"Pools")
        last = text.splitlines()[-1]
        assert last.startswith(" description: ") and last.endswith("Pools"), last
        assert "type a part of OWNER/NAME" in await press(pilot, "escape", "w")
