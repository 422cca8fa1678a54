"""Writing a text: a card over what it is about, one key that says what becomes of it, and its draft."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tests.tui.test_issues import issue, open_issue, waiting
from tests.tui.test_typed_ahead import burst
from tui.app import SvcApp
from tui.screens.write import Write

__all__ = ["issue", "project"]
Open = Callable[..., SvcApp]


def comments(alice: Svc, repo: str) -> list[str]:
    found = json.loads(alice("repo", "api", "repos/{id}/issues/1/comments", "-R", repo).out)
    return [comment["body"] for comment in found["items"]]


async def test_a_comment_is_written_over_what_it_is_about(issue: str, alice: Svc, open_app: Open) -> None:
    long = "a line that is far too long for one row of the card, so that it goes on in the next one, as far"
    async with open_app().run_test(size=(100, 24)) as pilot:
        await open_issue(pilot)
        await press(pilot, "c")
        await sees(pilot, "It hangs", "comment on #1", "ctrl+s send  esc leave")
        await press(pilot, *"First", "enter", *long)
        await sees(pilot, "First", "a line that is", "as far")
        assert "nothing is written" not in await press(pilot, "ctrl+s")
        await sees(pilot, "just now", "it goes on in the next one")
    assert comments(alice, issue) == [f"First\n{long}"]


async def test_one_key_says_what_becomes_of_a_text(issue: str, alice: Svc, open_app: Open) -> None:
    drafts = Path(os.environ["SVC_HOME"]) / "drafts"
    async with open_app().run_test(size=(100, 24)) as pilot:
        await open_issue(pilot)
        await press(pilot, "c")
        assert "nothing is written yet" in await press(pilot, "ctrl+s")
        await press(pilot, *"Half", "escape")
        await sees(pilot, "send it?", "enter send  e go on  D discard  esc keep for later")
        await press(pilot, "x")
        await sees(pilot, "send it?", "enter send  e go on  D discard  esc keep for later")
        await press(pilot, "e", *" of it")
        await sees(pilot, "Half of it", "ctrl+s send")
        await press(pilot, "escape", "escape")
        await sees(pilot, "kept as a draft for later")
        assert [file.read_text() for file in drafts.iterdir()] == ["Half of it"]
        await press(pilot, "c", "escape")
        await sees(pilot, "send it?", "D discard")
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, Write)
        await press(pilot, "c", "!", "escape", "D")
        await sees(pilot, "discarded")
        assert list(drafts.iterdir()) == []
        await press(pilot, "c", *"Whole", "escape", "enter")
        await sees(pilot, "Whole", "just now")
    assert comments(alice, issue) == ["Whole"]


async def test_what_follows_a_text_in_one_piece_is_a_command_again(
    issue: str, alice: Svc, open_app: Open
) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await open_issue(pilot)
        burst(pilot, "c", *"Said", "ctrl+s", "z")
        await sees(pilot, "Said", "✓ closed")
        burst(pilot, "c", *"Kept", "escape", "escape", "z")
        await sees(pilot, "○ open")
    assert comments(alice, issue) == ["Said"]
    assert waiting(alice) == []


async def test_the_text_of_a_form_goes_back_to_it_or_is_sent(issue: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "a")
        await press(pilot, *"Pool", "enter")
        await sees(pilot, "text of the issue", "ctrl+s send the issue  esc back to the form")
        await press(pilot, *"It leaks", "escape")
        await sees(pilot, "title     Pool", "1 line", "It leaks")
        await press(pilot, "enter", "enter", *"always", "ctrl+s")
        await sees(pilot, "#2 Pool")
    assert json.loads(alice("issue", "view", "2", "--json", "body").out)["body"] == "It leaks\nalways"


async def test_people_and_numbers_are_completed(issue: str, alice: Svc, open_app: Open) -> None:
    me = os.environ["TEST_HANDLE"]
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "enter")
        await sees(pilot, "It hangs")
        await press(pilot, "c", *"see ", "number_sign", *"stalls")
        await sees(pilot, "#1 Retry stalls", "tab complete")
        await press(pilot, "tab", "at", *me[:3])
        await sees(pilot, f"@{me}", "tab complete")
        await press(pilot, "tab", "ctrl+s")
        await sees(pilot, "just now")
    assert comments(alice, issue) == [f"see #1 @{me}"]


async def test_a_comment_is_edited_below_it_and_shown_when_it_is_sent(
    issue: str, alice: Svc, open_app: Open
) -> None:
    """The card stays at the bottom, the comment is scrolled above it, and a new comment is seen whole."""
    for number in range(6):
        assert alice("issue", "comment", "1", "-b", f"Comment {number}\n\n- one\n- two").code == 0
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "enter")
        text = await sees(pilot, "Comment 0")
        assert "C edit the comment" not in text
        await press(pilot, "G")
        await sees(pilot, "Comment 5", "C edit the comment")
        await press(pilot, "C")
        text = await sees(pilot, "edit the comment on #1")
        rows = text.split("\n")
        assert "● live" in rows[0] and "#1" in rows[0], "the title stays"
        card = next(at for at, row in enumerate(rows) if "edit the comment on #1" in row)
        assert any("• two" in row for row in rows[:card]), "the comment is above the card"
        await press(pilot, "escape", "g", "c", *"Sixth", "enter", *"seventh", "ctrl+s")
        await sees(pilot, "just now", "Sixth", "seventh", "C edit the comment")
