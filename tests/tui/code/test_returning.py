"""Where one is after coming back: from a history to the line of the file, from the source of Markdown to its
page, and from where a link has led."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from localstore.core.model.base import Actor
from localstore.core.model.history import BlameRange
from tests.svc.conftest import Svc
from tests.tui.code.test_code import opened
from tests.tui.test_app import press, project, sees, settle, soon
from tui.app import SvcApp
from tui.markdown import render_markdown
from tui.markdown.words import Row
from tui.screens.code.code import Code
from tui.screens.repo import SOON, TABS_CODE, RepoScreen
from tui.widgets.lines import Lines
from tui.widgets.source import Source

__all__ = ["project"]
Open = Callable[..., SvcApp]
GUIDE = (
    "# Guide\n\n[the code](src/main.py)\n\n"
    + "".join(f"## Part {n}\n\n{'word ' * 60}end{n}\n\n```sh\nsvc pull\n```\n\n" for n in range(1, 12))
    + "last line\n"
)


@pytest.fixture
def guide(project: str, alice: Svc) -> str:
    Path("guide.md").write_text(GUIDE)
    Path("long.py").write_text("".join(f"line_{n} = {n}\n" for n in range(1, 101)))
    assert alice("push", "-m", "A guide").code == 0
    return project


def test_each_row_of_a_page_knows_its_line() -> None:
    page = render_markdown(GUIDE, 60)
    assert page is not None and len(page.rows) == len(page.lines)
    assert page.lines == sorted(page.lines) and page.lines[-1] == GUIDE.count("\n")
    source = GUIDE.split("\n")
    for row, line in zip(page.rows, page.lines, strict=True):
        text = _text(row).strip("│ ")
        if text.startswith(("Part", "svc", "last", "the code")):
            assert text in source[line - 1], (text, line)


def _text(row: Row) -> str:
    return "".join(text for text, _ in row.parts)


async def test_a_history_gives_back_the_line_and_the_keys(guide: str, open_app: Open) -> None:
    app = open_app()
    async with app.run_test(size=(140, 30)) as pilot:
        await opened(pilot, "t", *"long", "enter")
        await sees(pilot, "line_1 = 1")
        await press(pilot, *["ctrl+d"] * 4)
        lines = app.screen.query_one("#file", Lines)
        at, top = lines.cursor, lines.top
        assert at > 30
        keys = (await settle(pilot)).splitlines()[-1]
        await press(pilot, "h")
        await sees(pilot, "history of long.py", "enter open")
        text = await press(pilot, "escape")
        assert (lines.cursor, lines.top) == (at, top)
        assert text.splitlines()[-1] == keys and "B blame" in keys
        await press(pilot, "1", "h")
        await sees(pilot, "history of project")
        await press(pilot, "escape", "2")
        await sees(pilot, f"line_{at + 1} = ")
        assert lines.cursor == at


@pytest.mark.parametrize("width", [80, 140])
async def test_v_keeps_the_place(guide: str, open_app: Open, width: int) -> None:
    app = open_app()
    async with app.run_test(size=(width, 30)) as pilot:
        await opened(pilot, "t", *"guide", "enter")
        await sees(pilot, "v source", "Part 1")
        await press(pilot, "G")
        await sees(pilot, "last line")
        lines = app.screen.query_one("#file", Lines)
        row = lines.cursor
        text = await press(pilot, "v")
        count = GUIDE.count("\n")
        assert "last line" in text and "v page" in text and f"{count} of {count}" in text
        await press(pilot, "v")
        assert lines.cursor == row
        await press(pilot, "v", *["k"] * 8, "v")
        assert 0 < row - lines.cursor < 14
        item = lines.item
        assert item is not None


@pytest.mark.parametrize("width", [80, 140])
async def test_esc_returns_to_the_link(guide: str, alice: Svc, open_app: Open, width: int) -> None:
    """In a text of Code, and from the facts of the overview."""
    assert alice("repo", "release", "create", "v1", "-n", "Good").code == 0
    app = open_app()
    async with app.run_test(size=(width, 40)) as pilot:
        await opened(pilot, "t", *"guide", "enter")
        await sees(pilot, "Part 1")
        await press(pilot, "tab")
        await sees(pilot, "enter follow the link")
        await press(pilot, "enter")
        await sees(pilot, "return 2")
        await press(pilot, "escape")
        await sees(pilot, "Part 1", "enter follow the link")
        await press(pilot, "1", "f")
        for _ in range(12):
            if "enter open the releases" in await press(pilot, "tab" if width == 80 else "j"):
                break
        await press(pilot, "enter")
        await sees(pilot, "Good")
        await press(pilot, "escape")
        await sees(pilot, "enter open the releases")


async def test_a_tab_chosen_by_its_key_is_not_a_link(guide: str, open_app: Open) -> None:
    async with open_app().run_test(size=(140, 40)) as pilot:
        await opened(pilot, "1", "f")
        for _ in range(12):
            if "enter open the rules" in await press(pilot, "j"):
                break
        await press(pilot, "enter", "5", "escape")
        await sees(pilot, "Repositories")


async def test_facts_say_what_is_hidden_failures_first(project: str, alice: Svc, open_app: Open) -> None:
    for name, outcome in (("abc", "success"), ("lint", "failure")):
        assert alice("repo", "run", "create", name, "--conclusion", outcome).code == 0
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "1")
        text = await sees(pilot, " more ─╯")
        assert re.search(r"http://127\S*…\S*project\.git", text), text
        hidden = int(re.search(r"↓ (\d+) more", text)[1])  # type: ignore[index]
        await press(pilot, "y")
        await sees(pilot, "copied: git clone http://127")
        await press(pilot, "f", "G")
        text = await sees(pilot, "2 checks ✗ lint")
        assert "↓" not in text and hidden > 0 and text.index("✗ fail") < text.index("✓ pass")


def test_the_first_visible_row_says_who_changed_it() -> None:
    who = Actor(id="a", handle="alice")
    seal = "abcdef0123456789"
    blame = BlameRange(
        start=1, end=9, seal_id=seal, who=who, device_key_id="", sealed_at="2026-01-01T00:00:00Z", message=""
    )
    rows = Source([(("x", "text"),)] * 9, [blame], 1.8e9, digits=8)
    assert "abcdef01" not in "".join(text for text, _ in rows[4].left)
    assert "abcdef01" in "".join(text for text, _ in rows.item_at_top(4).left)


async def test_bytes_say_what_they_are(project: str, alice: Svc, open_app: Open) -> None:
    Path("model.gguf").write_bytes(b"GGUF" + bytes(300))
    assert alice("push", "-m", "A model").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await opened(pilot, "t", *"model", "enter")
        await sees(
            pilot, "304 B · not text · GGUF model", "svc repo clone", "y copies its path", "47 47 55 46"
        )
        await press(pilot, "h")
        await sees(pilot, "history of model.gguf")
        await press(pilot, "escape")
        await sees(pilot, "GGUF model")
        await press(pilot, "y")
        await sees(pilot, "copied: model.gguf")


async def test_a_tab_chosen_while_a_link_opens_stays(
    guide: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link leads to a tab whose widgets come late."""
    mounted = False
    async with open_app().run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "1")
        screen = pilot.app.screen
        assert isinstance(screen, RepoScreen)
        real = Code.is_mounted
        monkeypatch.setattr(Code, "is_mounted", property(lambda view: mounted and real.__get__(view)))
        screen.follow_link("guide.md")
        await pilot.pause(3 * SOON)
        await press(pilot, "5")
        mounted = True
        await pilot.pause(3 * SOON)
        code = screen.query_one(Code)
        assert screen._origins == [] and code.path is None
        await press(pilot, "1")
        home = screen.focused
        mounted = False
        screen._open_tab(TABS_CODE, focus := code.query_one("#file"))
        await pilot.pause(3 * SOON)
        mounted = True
        await soon(pilot, lambda: screen.focused is focus and focus is not home)
