"""Texts that exist are changed: of an issue, a comment, a note on lines, and a release."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from tests.svc.conftest import Svc
from tests.tui.proposal.test_proposals import other, proposal
from tests.tui.test_app import open_proposal, press, project, sees, settle
from tests.tui.test_issues import issue, open_issue
from tui.app import SvcApp

__all__ = ["issue", "other", "project", "proposal"]
Open = Callable[..., SvcApp]


async def test_the_text_of_an_issue_is_changed_in_the_form_of_new_ones(
    issue: str, alice: Svc, open_app: Open
) -> None:
    """Its draft is there again after esc, and goes when it is sent."""
    async with open_app().run_test(size=(120, 30)) as pilot:
        await open_issue(pilot)
        await sees(pilot, "It hangs")
        await press(pilot, "T")
        await sees(pilot, "╭─ Edit issue #1 · ", "· nothing is changed yet ─", "It hangs", "2 lines")
        await press(pilot, "g", "enter")
        await press(pilot, *"Again", "enter")
        await sees(pilot, "Retry stallsAgain  ~ changed", "· changed: title ─")
        await press(pilot, "escape", "T")
        await sees(pilot, "Retry stallsAgain", "changed: title")
        await press(pilot, "G", "enter")
        await press(pilot, "enter", *"Really", "escape")
        await sees(pilot, "changed: title and text", "Really")
        await press(pilot, "S")
        await sees(pilot, "#1", "Retry stallsAgain", "Really")
        await press(pilot, "T")
        await sees(pilot, "nothing is changed yet")
        await press(pilot, "S")
        await sees(pilot, "nothing is changed")
    body = json.loads(alice("issue", "view", "1", "--json", "body").out)["body"]
    assert body == "It hangs\nfor an hour.\nReally"


async def test_what_others_changed_meanwhile_is_not_overwritten_unseen(
    issue: str, alice: Svc, open_app: Open
) -> None:
    async with open_app().run_test(size=(120, 30)) as pilot:
        await open_issue(pilot)
        await sees(pilot, "It hangs")
        await press(pilot, "T", "g", "enter")
        await press(pilot, *"Again", "enter")
        await sees(pilot, "changed: title")
        await press(pilot, "escape")
        assert alice("issue", "edit", "1", "-b", "Another text").code == 0
        await press(pilot, "r")
        await sees(pilot, "Another text")
        await press(pilot, "T")
        await sees(pilot, "others changed it since you began")
        await press(pilot, "S")
        await sees(pilot, "Replace theirs?")
        await press(pilot, "n")
        await sees(pilot, "nothing was done")
    assert json.loads(alice("issue", "view", "1", "--json", "body").out)["body"] == "Another text"


async def test_a_comment_is_changed_and_that_of_others_is_not(
    proposal: str, other: Callable[..., None], alice: Svc, open_app: Open
) -> None:
    assert alice("pr", "comment", "1", "-b", "Mine").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "Because it is odd.", "Mine")
        await press(pilot, "g", "C")
        await sees(pilot, "put the cursor on a comment")
        await press(pilot, "G", "C")
        await sees(pilot, "edit the comment on #1", "ctrl+s send")
        await press(pilot, *"Too", "ctrl+s")
        await sees(pilot, "MineToo", " · edited")


async def test_a_note_on_lines_is_changed(proposal: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "Because it is odd.")
        await press(pilot, "enter")
        await sees(pilot, "+    return 3")
        await press(pilot, "G", "c")
        await press(pilot, *"Why", "ctrl+s")
        await sees(pilot, "╭─ open", "│ Why")
        await press(pilot, "e")
        await sees(pilot, "put the cursor on a comment")
        await press(pilot, "G", "e")
        await sees(pilot, "edit the comment on #1", "ctrl+s send")
        await press(pilot, *"Not", "ctrl+s")
        await sees(pilot, "│ WhyNot")


async def test_the_notes_of_a_release_are_changed(project: str, alice: Svc, open_app: Open) -> None:
    assert alice("repo", "release", "create", "v1", "-n", "Fixed").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "5")
        await sees(pilot, "v1")
        await press(pilot, "enter", "e")
        await sees(pilot, "notes of v1", "ctrl+s send")
        await press(pilot, *"More", "ctrl+s")
        await sees(pilot, "FixedMore")
    assert json.loads(alice("repo", "release", "view", "v1", "--json", "notes").out)["notes"] == "FixedMore"
    assert list((Path(os.environ["SVC_HOME"]) / "drafts").glob("*.md")) == []
