"""The talk of a proposal: what happened in order of time, its threads on lines, and suggestions."""

from __future__ import annotations

import os
from collections.abc import Callable

from tests.svc.conftest import Svc
from tests.tui.proposal.test_proposals import other, proposal
from tests.tui.test_app import open_proposal, press, project, sees, settle
from tui.app import SvcApp
from tui.screens.proposal.files import Files

__all__ = ["other", "project", "proposal"]
Open = Callable[..., SvcApp]


async def test_what_happened_stands_among_the_comments(proposal: str, alice: Svc, open_app: Open) -> None:
    me = f"@{os.environ['TEST_HANDLE']}"
    for words in (("close", "1"), ("comment", "1", "-b", "Not yet."), ("reopen", "1")):
        assert alice("pr", *words).code == 0
    assert alice("pr", "comment", "1", "--path", "src/main.py", "--line", "2", "-b", "Why?").code == 0
    assert alice("pr", "merge", "1", "--squash").code == 0
    async with open_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "p", "o", "o")
        await sees(pilot, "● #1 ")
        await press(pilot, "enter")
        text = await sees(pilot, "Not yet.", "by squash")
        words = [
            "⊘ closed it",
            "Not yet.",
            "○ opened it again",
            "commented on src/main.py:2",
            "● merged it as ",
        ]
        places = [text.index(word) for word in words]
        assert places == sorted(places)
        assert f"── {me} ● merged it as " in text
        await press(pilot, "G", "enter")  # the files, which what happened leads to as well
        await sees(pilot, "return 3")


async def test_a_thread_that_is_gone_to_is_visible_as_a_whole(
    proposal: str, alice: Svc, open_app: Open
) -> None:
    body = "".join(f"- point {number}\n" for number in range(8))
    assert alice("pr", "comment", "1", "--path", "src/main.py", "--line", "2", "-b", body).code == 0
    async with open_app().run_test(size=(120, 14)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await press(pilot, "enter")
        assert "point 7" not in await sees(pilot, "point 0")
        await press(pilot, "right_square_bracket")
        await sees(pilot, "point 0", "point 7")


async def test_threads_are_walked_resolved_and_unfolded(proposal: str, alice: Svc, open_app: Open) -> None:
    for line, text in (("1", "First?"), ("2", "Second?")):
        assert alice("pr", "comment", "1", "--path", "src/main.py", "--line", line, "-b", text).code == 0
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await press(pilot, "enter")
        text = await sees(pilot, "First?", "Second?", "] next thread")
        assert "z resolve" not in text
        text = await press(pilot, "right_square_bracket", "right_square_bracket")
        assert "z resolve" in text
        screen = pilot.app.screen
        assert isinstance(screen, Files)
        answer = next(action for action in screen.ACTIONS if action.id == "comment")
        assert screen.command_of(answer) == "svc pr comment {n} --thread {thread} -b TEXT"
        assert screen.facts()["thread"]
        await press(pilot, "z")
        text = await sees(pilot, "─ ✓ resolved", "enter unfold", "z reopen")  # the cursor is still on it
        assert "First?" in text
        await press(pilot, "enter")
        await sees(pilot, "╭─ ✓ resolved", "enter fold", "Second?")
        await press(pilot, "enter")
        await sees(pilot, "enter unfold")
        await press(pilot, "left_square_bracket", "z")
        await sees(pilot, "resolved  @", "enter unfold")
        await press(pilot, "z")
        await sees(pilot, "1 open thread", "╭─ open", "z resolve")


async def test_a_suggestion_is_written_over_the_changes_below_the_lines_that_it_replaces(
    proposal: str, open_app: Open
) -> None:
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await press(pilot, "enter")
        await sees(pilot, "return 3")
        await press(pilot, "G")
        text = await press(pilot, "x")
        assert "− " in text and "return 3" in text.split("in the place of line")[1]
        assert text.splitlines()[-6].startswith("│ ")  # the files stay in view
        assert "nothing is suggested yet" in await press(pilot, "ctrl+s")
        await press(pilot, "4", "ctrl+s")
        await sees(pilot, "suggests", "return 34")
