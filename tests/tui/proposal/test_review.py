"""Reviewing a proposal by keys alone, and drafts that outlive the app, against a real relay."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import TextArea

from tests.svc.conftest import Svc
from tests.tui.proposal.test_proposals import other
from tests.tui.test_app import open_proposal, press, project, sees, settle, soon
from tests.tui.test_issues import NOWHERE, issue
from tests.tui.test_team_day import Device
from tui.app import SvcApp
from tui.screens.command.output import Output

__all__ = ["issue", "other", "project"]
Open = Callable[..., SvcApp]
BEFORE = "def main():\n    a = 1\n\tb = 2\n    c = 3\n    return a + c\n"
AFTER = BEFORE.replace("c = 3", "c = 4").replace("a + c", "a * c")


@pytest.fixture
def proposal(project: str, alice: Svc) -> str:
    """The repository with a proposal #1 of branch `topic` that changes two of five lines."""
    Path("src/main.py").write_text(BEFORE)
    assert alice("push", "-m", "Third").code == 0
    assert alice("repo", "branch", "topic").code == 0
    assert alice("switch", "topic").code == 0
    Path("src/main.py").write_text(AFTER)
    assert alice("push", "-m", "Fourth").code == 0
    made = alice("pr", "create", "--base", "main", "-t", "Multiply", "-b", "Because.")
    assert made.code == 0, made
    return project


@pytest.fixture
def reviewer(
    proposal: str, other: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The machine of somebody else; the name of the repository."""
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    monkeypatch.setenv("TEST_HANDLE", f"{os.environ['TEST_HANDLE']}"[:30] + "-b")
    return proposal


def threads(svc: Svc, repo: str) -> list[dict[str, object]]:
    found = json.loads(svc("repo", "api", "repos/{id}/proposals/1/threads", "-R", repo).out)
    items: list[dict[str, object]] = found["items"]
    return items


async def open_files(pilot: Pilot[None], repo: str) -> str:
    await settle(pilot)
    await press(pilot, "w")  # whoever reviews it may have no role there
    await press(pilot, *repo)
    await sees(pilot, repo)
    await press(pilot, "enter")
    await press(pilot, "3")
    await open_proposal(pilot, "p")
    await sees(pilot, "enter shows them")
    await press(pilot, "enter")
    return await sees(pilot, "a * c")


async def test_a_review_of_several_lines_goes_out_with_its_verdict(
    reviewer: str, alice: Svc, open_app: Open
) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        text = await open_files(pilot, reviewer)
        assert "a * c" in text
        assert "go out with your verdict" in await press(pilot, "p")
        await press(pilot, "slash", *"def main", "enter", "V", "j", "j")
        await press(pilot, "c")
        text = await press(pilot, *"Three lines", "ctrl+s")
        assert "╭─ waits for your review" in text
        assert "1 pending" in text
        await press(pilot, "slash", *"c = 4", "enter", "shift+down")
        await press(pilot, "shift+down")
        await press(pilot, "x")
        area = pilot.app.screen.query_one(TextArea)
        assert area.text == "    c = 4\n    return a * c"
        await press(pilot, "enter", *"# end")
        text = await press(pilot, "escape")
        assert "enter send  e go on  D discard  esc keep for later" in text
        text = await press(pilot, "enter")
        assert "+     # end" in text or "# end" in text
        assert "2 pending" in text
    mine = threads(alice, reviewer)
    assert {(one["start"], one["end"], one["draft"]) for one in mine} == {(1, 3, True), (4, 5, True)}
    async with open_app().run_test(size=(100, 30)) as pilot:
        await open_files(pilot, reviewer)
        text = await press(pilot, "escape")
        assert "2 of your comments wait" in text
        text = await press(pilot, "X")
        assert "2 comments with it" in text
        await press(pilot, *"See below", "ctrl+s")
        await press(pilot, "enter")
        text = await sees(pilot, "#1 files")
        assert "pending" not in text and "comments wait" not in text
        await press(pilot, "escape")
        text = await press(pilot, "G")
        assert "✗ requests changes" in text
        assert "See below" in text
    assert {one["draft"] for one in threads(alice, reviewer)} == {False}


async def test_lines_of_two_hunks_are_not_one_comment(proposal: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await open_files(pilot, proposal)
        await press(pilot, "tab", "g", "c")  # on the heading of a hunk
        await sees(pilot, "c again means this line")
        await press(pilot, "g", "V", "G")
        text = await sees(pilot, "select lines of one hunk ─")
        assert "c comment" not in text
        assert "select lines of one hunk  " in await press(pilot, "c")
        assert "#1 files" in await press(pilot, "escape")


async def test_the_card_leaves_the_lines_visible_and_grows_with_the_text(
    reviewer: str, open_app: Open
) -> None:
    async with open_app().run_test(size=(80, 20)) as pilot:
        await settle(pilot)
        await press(pilot, "w")
        await press(pilot, *reviewer)
        await sees(pilot, reviewer)
        await press(pilot, "enter")
        await press(pilot, "3")
        await open_proposal(pilot, "p")
        await sees(pilot, "enter shows them")
        await press(pilot, "enter", "enter")
        await sees(pilot, "a * c")
        keys = (await sees(pilot, "esc back")).rstrip().splitlines()[-1]
        assert "? keys here" in keys and "/ search" not in keys
        await press(pilot, "f", "c")  # the tree is in front of the changes
        await sees(pilot, "c again means this line", "a * c")
        await press(pilot, "G", "V", "k", "k", "k", "k", "c")  # the cursor is on the first line of them
        text = await sees(pilot, "─ comment on lines ")
        assert "a * c" in text and "c = 4" in text
        card = pilot.app.screen.query_one("#card")
        before = card.size.height
        await press(pilot, *"a", "enter", "b", "enter", "c", "enter", "d", "enter", "e")
        assert card.size.height > before
        assert "a * c" in await sees(pilot, "│ a", "│ e")


async def test_keys_and_frame_say_which_lines_are_meant(reviewer: str, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 30)) as pilot:
        await open_files(pilot, reviewer)
        await press(pilot, "slash", *"def main", "enter")
        await sees(pilot, "c comment on the line", "x suggest other lines")
        await press(pilot, "V", "j", "j")
        await sees(
            pilot, "c comment on lines 1 to 3", "x suggest other lines 1 to 3", "lines 1 to 3 selected"
        )
        await press(pilot, "escape")
        await sees(pilot, "hunk 1 of 1", "c comment on the line")
        await press(pilot, "slash", *"a + c", "enter", "escape")  # a line that was removed
        text = await sees(pilot, "c comment on the line", "esc back")
        assert "x suggest" not in text
        await press(pilot, "V")
        await sees(pilot, "c comment on line 5", "removed line 5 selected", "esc select none")


async def test_a_suggestion_is_applied(
    proposal: str, other: Callable[..., None], alice: Svc, open_app: Open
) -> None:
    other(
        "pr", "comment", "1", "--path", "src/main.py", "--line", "4", "--suggest", "    c = 5", "-b", "Five"
    )
    async with open_app().run_test(size=(100, 30)) as pilot:
        text = await open_files(pilot, proposal)
        assert "c = 5" in text
        await press(pilot, "slash", *"Five", "enter")
        assert "nothing was done" in await press(pilot, "a", "enter")
        text = await press(pilot, "a")
        assert "Make a seal on topic with the suggestion?" in " ".join(text.split())
        rows = text.splitlines()
        asked = next(at for at, row in enumerate(rows) if "Make a seal" in row)
        assert any("+     c = 5" in row for row in rows[:asked]), "what is suggested stays visible"
        text = await press(pilot, "x")
        assert "these answer it" in text and "Make a seal" in text, "another letter is no answer"
        await press(pilot, "y")
        await sees(
            pilot, "Applied", "#1 files", "+    c = 5", "─ ✓ resolved"
        )  # the lines of the new version, not of the one before
    assert alice("pull").code == 0
    assert "c = 5" in Path("src/main.py").read_text()


async def test_the_line_of_keys_is_about_the_pane_with_the_focus(proposal: str, open_app: Open) -> None:
    """Among the files, enter goes to the changes and no key is about a line; among the lines, they are."""
    async with open_app().run_test(size=(140, 30)) as pilot:
        await open_files(pilot, proposal)
        if "enter its changes" not in await settle(pilot):
            await press(pilot, "tab")
        keys = (await sees(pilot, "enter its changes")).rstrip().splitlines()[-1]
        assert "comment on the line" not in keys and "resolve" not in keys and "apply" not in keys
        await press(pilot, "enter", "j", "j")
        keys = (await sees(pilot, "c comment on the line")).rstrip().splitlines()[-1]
        assert "enter" not in keys and "x suggest other lines" in keys and "/ search" in keys
        assert "resolve" not in keys and "apply" not in keys


async def test_news_that_come_under_another_screen_are_not_lost(
    proposal: str,
    other: Callable[..., None],
    open_app: Open,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The screen on top takes the news; the one below reads them once it is on top again."""
    taken = []
    monkeypatch.setattr(Output, "news", lambda self: taken.append(self))
    async with open_app().run_test(size=(100, 30)) as pilot:
        await open_files(pilot, proposal)
        await sees(pilot, "● live")
        await press(pilot, ":", *"version", "enter")
        await sees(pilot, "done", "svc version")
        taken.clear()
        other("pr", "comment", "1", "--path", "src/main.py", "--line", "4", "-b", "Meanwhile")
        await soon(pilot, lambda: taken)
        await press(pilot, "escape")
        await sees(pilot, "Meanwhile", "1 open thread")


async def test_a_draft_waits_where_it_was_begun(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        await press(pilot, "enter")
        await press(pilot, "c", *"Half", "escape", "escape")
    async with open_app(NOWHERE).run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        await press(pilot, "enter")
        assert "Half" in await press(pilot, "c")
        assert "⋯ queued" in await press(pilot, "!", "ctrl+s")
        await press(pilot, "c")
        assert pilot.app.screen.query_one(TextArea).text == ""
    assert list((Path(os.environ["SVC_HOME"]) / "drafts").iterdir()) == []


def test_a_draft_outlives_the_app_that_is_killed(issue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")

    def opened() -> Device:
        device = Device(Path(os.environ["SVC_HOME"]), Path.cwd(), monkeypatch)
        device.types("\r")
        device.sees("8 Set")
        device.types("3")
        device.sees("Issues open · 1")
        device.types("\r")
        device.sees("It hangs")
        device.types("c")
        return device

    first = opened()
    first.types("What about the retr")
    first.sees("What about the retr")
    os.kill(first.terminal.pid, signal.SIGKILL)
    os.waitpid(first.terminal.pid, 0)
    second = opened()
    second.sees("What about the retr")
    second.types("y", "\x13")
    second.sees("What about the retry", "just now")
    second.terminal.close()
