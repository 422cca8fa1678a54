"""The display layer beneath the app: after every update both ways of drawing show the same cells."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyte
import pytest
from rich.color import ColorSystem
from textual._compositor import CompositorUpdate

from tests.depth import rounds
from tests.tui.test_app import press, project, settle
from tui.app import SvcApp
from tui.display import Looks, Screen, painted

__all__ = ["project"]

KEYS = [
    *(
        "j",
        "k",
        "g",
        "G",
        "1",
        "2",
        "h",
        "B",
        "t",
        "n",
        "a",
        "left",
        "right",
        "tab",
        "slash",
        "question_mark",
    ),
    *(
        "enter",
        "enter",
        "escape",
        "escape",
        "ctrl+d",
        "ctrl+u",
        "left_square_bracket",
        "right_square_bracket",
    ),
]


class Twice:
    """What an app's updates show, drawn as Textual does and as we do."""

    def __init__(self, app: SvcApp, width: int, height: int) -> None:
        self.stock, self.lean = pyte.Screen(width, height), pyte.Screen(width, height)
        self._streams = pyte.Stream(self.stock), pyte.Stream(self.lean)
        self._shown, self._looks = Screen(width, height), Looks(ColorSystem.TRUECOLOR)
        self._app = app
        self.updates = 0

    def draw(self, update: CompositorUpdate) -> None:
        self._streams[0].feed(update.render_segments(self._app.console).replace("\n", "\r\n"))
        self._streams[1].feed(self._shown.update(painted(update, self._looks)))
        self.updates += 1
        for y in range(self.stock.lines):
            stock, lean = (
                [screen.buffer[y][x] for x in range(screen.columns)] for screen in (self.stock, self.lean)
            )
            assert stock == lean, (y, self.stock.display[y], self.lean.display[y])


@pytest.mark.parametrize("size", [(80, 24), (130, 40)])
@pytest.mark.parametrize("seed", range(rounds(1, 3)))
async def test_both_show_the_same(
    project: str, open_app: Callable[..., SvcApp], size: tuple[int, int], seed: int, monkeypatch: Any
) -> None:
    app = open_app()
    both = Twice(app, *size)
    display = app._display

    def twice(screen: Any, renderable: Any) -> None:
        if isinstance(renderable, CompositorUpdate):
            both.draw(renderable)
        display(screen, renderable)

    monkeypatch.setattr(app, "_display", twice)
    rng = random.Random(seed)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        for _ in range(40):
            await pilot.press(rng.choice(KEYS))
            if len(app.screen_stack) < 2 or not app.is_running:
                break
        await settle(pilot)
    assert both.updates > 10
