"""The preview beside the list of issues and proposals."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.color import Color
from textual.pilot import Pilot

from tests.patience import PATIENCE
from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tui import contents
from tui.app import SvcApp
from tui.contents import Read
from tui.screens import split
from tui.screens.repo import RepoScreen
from tui.widgets.lines import Lines

__all__ = ["project"]
Open = Callable[..., SvcApp]


@pytest.fixture
def listed(project: str, alice: Svc) -> str:
    """Two issues, the older one with a comment, and a proposal."""
    assert alice("issue", "create", "-t", "Stalls at night", "-b", "It **hangs**, see #2.").code == 0
    assert alice("issue", "comment", "1", "-b", "- so it does").code == 0
    assert alice("issue", "create", "-t", "Crash at start", "-b", "# Why\n\nbecause").code == 0
    assert alice("repo", "branch", "topic").code == 0
    assert alice("switch", "topic").code == 0
    Path("data.bin").write_bytes(b"other")
    assert alice("push", "-m", "Third").code == 0
    assert alice("pr", "create", "-t", "Other data", "-b", "> because").code == 0
    assert alice("switch", "main").code == 0
    return project


async def issues(pilot: Pilot[None]) -> str:
    await settle(pilot)
    await press(pilot, "enter")
    return await press(pilot, "3")


async def test_the_row_under_the_cursor_is_previewed(listed: str, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 30)) as pilot:
        await issues(pilot)
        text = await sees(pilot, "╭─ Issues open · 2", "1 of 2", "─ #2 ─", "because")
        assert "# Why" not in text
        await press(pilot, "j")
        text = await sees(pilot, "2 of 2", "─ #1 ─", "It hangs, see #2.", "• so it does")
        assert "because" not in text
        await press(pilot, "p")
        await sees(pilot, "Proposals open · 1", "─ #3 ─", "main ← topic", "▎ because")
        await press(pilot, "enter")
        await sees(pilot, "Versions 1")


async def test_there_is_no_preview_where_it_has_no_room_or_is_hidden(listed: str, open_app: Open) -> None:
    async with open_app().run_test(size=(99, 30)) as pilot:
        text = await issues(pilot)
        assert "╭" not in text and "because" not in text
        assert "room for a preview" in await press(pilot, "P")
        await pilot.resize_terminal(120, 30)
        await sees(pilot, "╭─ Issues open · 2", "because")
        text = await press(pilot, "P")
        assert "╭" not in text and "because" not in text
        await press(pilot, "P")
        await sees(pilot, "╭─ Issues open · 2", "because")


async def test_the_preview_is_walked_zoomed_and_left(listed: str, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 30)) as pilot:
        await issues(pilot)
        await press(pilot, "j")
        await sees(pilot, "It hangs")
        await press(pilot, "Z")
        text = await sees(pilot, "It hangs")
        assert "Issues open" not in text
        await press(pilot, "escape")
        await sees(pilot, "╭─ Issues open · 2", "It hangs")
        await press(pilot, "tab", "tab", "enter")
        await sees(pilot, "#2  Crash at start")
        await press(pilot, "escape")
        await sees(pilot, "╭─ Issues open · 2")
        await press(pilot, "escape", "escape")
        await sees(pilot, "Repositories")


async def test_the_list_is_made_wider_and_narrower(listed: str, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 30)) as pilot:
        await issues(pilot)
        text = await sees(pilot, "─ #2 ─")

        def edge(text: str) -> int:
            return next(row.index("╮") for row in text.splitlines() if "╮" in row)

        before = edge(text)
        assert edge(await press(pilot, "less_than_sign")) < before
        assert edge(await press(pilot, "greater_than_sign", "greater_than_sign")) > before
        for _ in range(12):
            text = await press(pilot, "greater_than_sign")
        assert edge(text) < 100


async def test_rows_that_are_passed_over_are_not_asked_for(
    listed: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split, "REST", 30.0)
    async with open_app().run_test(size=(120, 30)) as pilot:
        await issues(pilot)
        await press(pilot, "j", "k", "j")
        text = await settle(pilot)
        assert "2 of 2" in text and "It hangs" not in text
        assert isinstance(pilot.app, SvcApp)
        screen = pilot.app.screen
        assert isinstance(screen, RepoScreen)
        for number in (1, 2):
            assert pilot.app.client.read_cached(contents.issue(screen.repo.id, number)) is None


async def test_a_preview_takes_nothing_from_the_screen_that_opens_over_it(
    listed: str, open_app: Open
) -> None:
    """Its cursor rests long enough just when the row is opened: both read the same proposal."""
    async with open_app().run_test(size=(120, 30)) as pilot:
        app = pilot.app
        assert isinstance(app, SvcApp)
        await issues(pilot)
        await press(pilot, "p")
        await sees(pilot, "Proposals open · 1", "▎ because")
        go, fetch = threading.Event(), app.client.fetch

        def held(read: Read[Any]) -> tuple[Any, float]:
            go.wait(PATIENCE)
            return fetch(read)

        app.client.fetch = held  # type: ignore[method-assign]
        app.client.read_cached = lambda read: None  # type: ignore[method-assign]
        below = app.screen
        await pilot.press("enter")
        while app.screen is below:
            await pilot.pause(0.02)
        for view in below.query(split.Split):
            view._again()
        go.set()
        await sees(pilot, "Versions 1")


async def test_wide_rows_have_two_lines_and_labels_their_colour(
    listed: str, alice: Svc, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    assert alice("label", "create", "crash", "--color", "d73a4a").code == 0
    assert alice("issue", "edit", "1", "--add-label", "crash").code == 0
    async with open_app().run_test(size=(140, 30)) as pilot:
        await issues(pilot)
        text = await sees(pilot, "● crash", "because")
        rows = text.splitlines()
        at = next(place for place, row in enumerate(rows) if "#1 Stalls at night" in row)
        assert "● crash  @" in rows[at + 1]
        lines = pilot.app.screen.query_one("#issues", Lines)
        dots = [seg.style for y in range(8) for seg in lines.render_line(y) if seg.text == "● "]
        assert [style.color for style in dots if style is not None] == [Color.parse("#d73a4a")]
        await press(pilot, "j")
        await sees(pilot, "2 of 2", "It hangs")
        await press(pilot, "enter")
        await sees(pilot, "opened", "labels", "● crash", "It hangs")


async def test_narrow_rows_say_things_in_short(listed: str, alice: Svc, open_app: Open) -> None:
    long = "needs somebody with a slow line"
    for name in ("crash", "night", long):
        assert alice("label", "create", name).code == 0
    assert alice("issue", "edit", "1", "--add-label", f"crash,night,{long}").code == 0
    async with open_app().run_test(size=(80, 24)) as pilot:
        text = await issues(pilot)
        assert "○ #1 Stalls at night" in text and "+1" in text and "ago" not in text


async def test_a_share_of_the_width_is_kept_for_each_list(listed: str, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 30)) as pilot:
        await issues(pilot)

        def edge(text: str) -> int:
            return next(row.index("╮") for row in text.splitlines() if "╮" in row)

        wide = edge(await press(pilot, "greater_than_sign"))
        assert edge(await press(pilot, "4")) < wide
        assert edge(await press(pilot, "3")) == wide


async def test_runs_releases_and_branches_are_previewed(listed: str, alice: Svc, open_app: Open) -> None:
    assert alice("repo", "run", "create", "lint", "--conclusion", "failure", "--summary", "**Two**").code == 0
    assert alice("repo", "run", "create", "docs", "--status", "in_progress").code == 0
    assert alice("repo", "run", "create", "fuzz", "--status", "queued").code == 0
    assert alice("repo", "run", "create", "old", "--conclusion", "cancelled").code == 0
    assert alice("repo", "run", "create", "rest", "--conclusion", "skipped").code == 0
    assert alice("repo", "release", "create", "v1", "-n", "## Fixed\n\n- it").code == 0
    async with open_app().run_test(size=(120, 40)) as pilot:
        await issues(pilot)
        await press(pilot, "4")
        await sees(pilot, "╭─ Workflows 5", "✗ fail", "◐ running", "◌ queued", "⊘ cancel", "– skip")
        text = await press(pilot, "g")
        assert "Workflows ✗1" in text and "✗ lint +1" not in text, "one of them was only cancelled"
        text = await sees(pilot, "─ lint ─", "branch    main", "Two")
        assert "**Two**" not in text
        await press(pilot, "5")
        await sees(pilot, "╭─ Releases 1", "─ v1 ─", "• it", "5 Releases 1")
        await press(pilot, "b")
        await sees(pilot, "╭─ branches and tags", "● main  default", "│ main", "Second")


async def test_the_file_and_the_seal_under_the_cursor_are_previewed(listed: str, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 40)) as pilot:
        await issues(pilot)
        await press(pilot, "2")
        await sees(pilot, "src/", "main.py", "1 file")
        await press(pilot, "G")
        await sees(pilot, "256 B")
        await press(pilot, "k")
        await sees(pilot, "Read me.")
        await pilot.resize_terminal(80, 24)
        assert "data.bin" in await settle(pilot), "a previewed file covers no tree"
        await pilot.resize_terminal(120, 40)
        await press(pilot, "g", "h")
        await sees(pilot, "Second", "First", "return 2")


async def test_home_previews_a_repository(listed: str, alice: Svc, open_app: Open) -> None:
    assert alice("repo", "run", "create", "lint", "--conclusion", "failure").code == 0
    async with open_app().run_test(size=(120, 40)) as pilot:
        await sees(pilot, "Repositories 1", "Notes on parsing", "Second", "Read me.", "main  ✗ lint")


async def test_home_previews_the_row_under_the_cursor_after_coming_back(
    listed: str, alice: Svc, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cursor moves, and enter opens the row before it has rested there."""
    assert alice("repo", "create", "other", "-d", "Another one").code == 0
    monkeypatch.setattr("tui.app.TICK", 3600.0)
    monkeypatch.setattr("tui.screens.home.EVERY", 3600.0)
    async with open_app().run_test(size=(144, 40)) as pilot:
        await sees(pilot, "Repositories 2", "private app  main")
        monkeypatch.setattr(split, "REST", 3600.0)
        await press(pilot, "j", "enter")
        await sees(pilot, "README.md")
        monkeypatch.setattr(split, "REST", 0.01)
        await press(pilot, "escape")
        await sees(pilot, "2 of 2", "Notes on parsing", "Read me.")


async def test_a_preview_shows_what_happens_to_its_row(listed: str, alice: Svc, open_app: Open) -> None:
    """On Home, and in a tab: what is said elsewhere comes without a key."""
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await sees(pilot, "● live", "Second")
        Path("README.md").write_text("# Project\n\nWrite me.\n")
        assert alice("push", "-m", "Fourth").code == 0
        await sees(pilot, "Fourth", "Write me.")
        await issues(pilot)
        await sees(pilot, "─ #2 ─", "because")
        assert alice("issue", "comment", "2", "-b", "Not here").code == 0
        await sees(pilot, "Not here")


async def test_a_preview_shows_the_beginning_of_what_is_long(listed: str, alice: Svc, open_app: Open) -> None:
    words = "word " * 5000
    assert alice("issue", "create", "-t", "Long", "-b", words).code == 0
    for number in range(10):
        assert alice("issue", "comment", "4", "-b", f"comment{number} {words}").code == 0
    async with open_app().run_test(size=(120, 500)) as pilot:
        await issues(pilot)
        text = await sees(pilot, "─ #4 ─", "6 earlier comments: enter", "comment6", "comment9")
        assert "comment5 " not in text
        assert text.count("… the rest: enter") == 5
        assert text.count("word ") < 2000
