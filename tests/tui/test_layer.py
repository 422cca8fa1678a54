"""The display layer beneath the app: after every update both ways of drawing show the same cells."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pyte
import pytest
from rich.cells import cell_len
from rich.color import ColorSystem
from textual._compositor import CompositorUpdate

from tests.depth import rounds
from tests.svc.conftest import Svc
from tests.tui.proposal.test_proposals import proposal
from tests.tui.test_app import press, project, settle
from tui.app import SvcApp
from tui.display.lean import read_cells
from tui.display.looks import Looks
from tui.display.screen import Screen

__all__ = ["project", "proposal"]

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
        self._streams[1].feed(self._shown.update(read_cells(update, self._looks)))
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
    await walk(open_app(), size, seed, KEYS, ("enter",), monkeypatch)


NEWER = [
    *"jkgGpivWJKms345678}{",
    *("enter", "enter", "escape", "escape", "ctrl+d", "ctrl+u", "tab", "slash", "question_mark", "left"),
]


async def test_the_newer_screens_show_the_same(
    busy: str, open_app: Callable[..., SvcApp], monkeypatch: Any
) -> None:
    for seed in range(rounds(1, 6)):
        for first in ("3", "8"):
            await walk(open_app(), (80, 24), seed, NEWER, ("enter", first), monkeypatch)


@pytest.mark.parametrize("size", [(200, 50), (40, 10)])
async def test_a_resize_on_every_screen(
    busy: str, open_app: Callable[..., SvcApp], size: tuple[int, int]
) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        visits = [
            (),
            ("i",),
            ("escape", "a"),
            ("escape", "s"),
            ("escape", "enter"),
            *((n,) for n in "1345678"),
        ]
        for keys in [*visits, ("3", "p"), ("enter",), ("enter",)]:
            await press(pilot, *keys)
            for width, height in (size, (80, 24)):
                await pilot.resize_terminal(width, height)
                lines = (await settle(pilot)).split("\n")
                assert (len(lines), max(map(cell_len, lines)) <= width) == (height, True), keys


@pytest.fixture
def busy(proposal: str, alice: Svc) -> str:
    """A repository with something for every tab."""
    assert alice("switch", "main").code == 0
    seal = json.loads(alice("log", "main", "--json", "id").out)[0]["id"]
    words = ["repo", "run", "create", "lint", "--seal", seal]
    assert alice(*words, "--conclusion", "failure", "--summary", "Two 行 too long").code == 0
    assert alice("issue", "create", "-t", "Stalls 👩‍👩‍👧 e\u0301 עברית", "-b", "It\nhangs").code == 0
    assert alice("repo", "release", "create", "v1", "data.bin", "--notes", "First").code == 0
    return proposal


async def walk(
    app: SvcApp, size: tuple[int, int], seed: int, keys: list[str], first: tuple[str, ...], monkeypatch: Any
) -> None:
    """Press keys at random after the first ones; each update has to show the same both ways."""
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
        await press(pilot, *first)
        for _ in range(40):
            await pilot.press(rng.choice(keys))
            if len(app.screen_stack) < 2 or not app.is_running:
                break
        await settle(pilot)
    assert both.updates > 10
