"""Copying, in tmux and without it; and rows around a line that is followed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which

import pytest
from textual.app import App, ComposeResult

from tests.tui.test_app import press, project, settle
from tui.app import SvcApp
from tui.widgets.lines import Item, Lines

__all__ = ["project"]


@pytest.fixture
def tmux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Asks a tmux of its own; this process stands in it."""
    if which("tmux") is None:
        pytest.skip("there is no tmux")
    address = tmp_path / "tmux.sock"
    monkeypatch.delenv("TMUX", raising=False)

    def ask(*words: str) -> str:
        return subprocess.run(["tmux", "-S", str(address), *words], capture_output=True, text=True).stdout

    ask("-f", "/dev/null", "new-session", "-d", "sleep 600")
    monkeypatch.setenv("TMUX", f"{address},1,0")
    yield ask
    ask("kill-server")


async def copied(open_app: Callable[..., SvcApp]) -> str:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "t")
        await press(pilot, *"main", "enter")
        return await press(pilot, "y")


async def test_copied_text_is_a_buffer_of_tmux(
    project: str, open_app: Callable[..., SvcApp], tmux: Callable[..., str]
) -> None:
    assert "copied" in await copied(open_app)
    assert tmux("show-buffer") == "def main():"


async def test_it_says_so_if_tmux_does_not_take_it(
    project: str, open_app: Callable[..., SvcApp], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX", f"{os.devnull}/gone,1,0")
    text = await copied(open_app)
    assert "tmux did not take it" in text
    assert "set -g set-clipboard on" in text


class Shown(App[None]):
    def compose(self) -> ComposeResult:
        lines = Lines()
        yield lines

    def on_mount(self) -> None:
        self.query_one(Lines).show([Item(at, ((str(at), "text"),)) for at in range(100)])


async def test_a_line_that_is_gone_to_has_others_around_it() -> None:
    app = Shown()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        lines = app.query_one(Lines)
        for index, first, last in ((60, 55, 66), (30, 24, 36), (99, 98, 99), (0, 0, 1)):
            lines.go_within(index)
            assert lines.cursor == index
            assert lines.top <= first and lines.top + lines.size.height > last
        lines.go_within(50)
        top = lines.top
        lines.go_within(45)
        assert lines.top == top
