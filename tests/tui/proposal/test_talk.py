"""The talk of a proposal: what happened in order of time, its threads on lines, and suggestions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

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


async def test_suggested_lines_stand_in_the_talk_and_digits_lead_to_tabs(
    proposal: str, alice: Svc, open_app: Open
) -> None:
    words = ("--path", "src/main.py", "--line", "2", "--suggest", "    return 4\n    # four")
    assert alice("pr", "comment", "1", *words).code == 0
    async with open_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "I suggest other lines", "+     return 4", "+     # four")
        await press(pilot, "5")
        await sees(pilot, "no releases")
        await press(pilot, "escape")
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "I suggest other lines")
        await press(pilot, "enter")
        await sees(pilot, "0 seen")
        await press(pilot, "5")
        await sees(pilot, "no releases")


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


def thread_ids(alice: Svc) -> list[str]:
    """The ids of the threads of proposal 1, the first one first."""
    data = json.loads(alice("pr", "view", "1", "--comments", "--json", "line_threads").out)
    return [thread["id"] for thread in data["line_threads"]]


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
        assert "z resolve" in text and "open thread 2 of 2" in text
        screen = pilot.app.screen
        assert isinstance(screen, Files)
        answer = next(action for action in screen.ACTIONS if action.id == "comment")
        assert screen.command_of(answer) == "svc pr comment {n} --thread {thread} -b TEXT"
        assert screen.facts()["thread"]
        await press(pilot, "z")
        text = await sees(pilot, "─ ✓ resolved", "enter unfold", "z reopen")  # the cursor is still on it
        assert "First?" in text and "resolved thread 1 of 1" in text
        await press(pilot, "enter")
        await sees(pilot, "╭─ ✓ resolved", "enter fold", "Second?")
        await press(pilot, "enter")
        await sees(pilot, "enter unfold")
        await press(pilot, "left_square_bracket", "z")
        await sees(pilot, "resolved  @", "enter unfold")
        await press(pilot, "z")
        await sees(pilot, "1 open thread", "╭─ open", "z resolve")


@pytest.mark.parametrize("size", [(80, 24), (120, 30)])
async def test_open_threads_come_first(
    proposal: str, alice: Svc, open_app: Open, size: tuple[int, int]
) -> None:
    Path("src/app.py").write_text("one = 1\ntwo = 2\nthree = 3\n")
    assert alice("push", "-m", "Another file").code == 0
    for path, line, text in (
        ("src/app.py", "1", "Done?"),
        ("src/app.py", "2", "Why two?"),
        ("src/main.py", "2", "Why three?"),
    ):
        assert alice("pr", "comment", "1", "--path", path, "--line", line, "-b", text).code == 0
    assert alice("pr", "resolve", "1", thread_ids(alice)[0]).code == 0
    async with open_app().run_test(size=size) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await press(pilot, "enter")
        await sees(pilot, "one = 1", "Why two?", "] next thread")
        await press(pilot, "right_square_bracket")
        await sees(pilot, "open thread 1 of 2", "Why two?", "z resolve")
        await press(pilot, "right_square_bracket")
        await sees(pilot, "open thread 2 of 2", "Why three?", "return 3")
        await press(pilot, "right_square_bracket")
        await sees(pilot, "the first of 2 open threads again", "open thread 1 of 2")
        await press(pilot, "left_square_bracket")
        await sees(pilot, "the last of 2 open threads again", "return 3")
        await press(pilot, "right_parenthesis")
        await sees(pilot, "resolved thread 1 of 1", "z reopen", "one = 1")
        await press(pilot, "right_parenthesis")
        await sees(pilot, "this is the only resolved thread")


async def test_a_thread_stays_visible_as_a_whole_while_it_grows(
    proposal: str, alice: Svc, open_app: Open
) -> None:
    assert alice("pr", "comment", "1", "--path", "src/main.py", "--line", "2", "-b", "Why?").code == 0
    thread = thread_ids(alice)[0]
    async with open_app().run_test(size=(120, 14)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await press(pilot, "enter")
        await sees(pilot, "Why?")
        await press(pilot, "right_square_bracket")
        await sees(pilot, "open thread 1 of 1")
        body = "".join(f"- point {number}\n" for number in range(4))
        assert alice("pr", "comment", "1", "--thread", thread, "-b", body).code == 0
        await press(pilot, "r")
        await sees(pilot, "Why?", "point 0", "point 3", "╰──")


async def test_the_files_begin_with_a_text_and_with_the_thread_that_was_chosen(
    proposal: str, alice: Svc, open_app: Open
) -> None:
    Path("a.bin").write_bytes(bytes(range(256)))
    Path("src/app.py").write_text("".join(f"line_{number} = 1\n" for number in range(60)))
    assert alice("push", "-m", "Bytes and lines").code == 0
    body = "Is this line needed?\n\nI think it is not."
    assert alice("pr", "comment", "1", "--path", "src/app.py", "--line", "50", "-b", body).code == 0
    async with open_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        text = await sees(pilot, "commented on src/app.py:50", "+ line_49 = 1", "Is this line needed? …")
        assert "I think it is not" not in text
        await press(pilot, "enter")
        await sees(pilot, "A a.bin", "line_0 = 1")  # not the bytes, although they come first
        await press(pilot, "escape", "slash", *"commented", "enter")
        await sees(pilot, "enter its thread")
        await press(pilot, "enter")
        await sees(pilot, "line_49 = 1", "I think it is not.", "open thread 1 of 1", "z resolve")


async def test_labels_and_people_stand_in_the_talk(proposal: str, alice: Svc, open_app: Open) -> None:
    me = os.environ["TEST_HANDLE"]
    assert alice("issue", "create", "-t", "An issue", "-b", "x").code == 0
    for noun, number in (("pr", "1"), ("issue", "2")):
        assert alice(noun, "label", "add", number, "bug", "docs", "--create").code == 0
        assert alice(noun, "edit", number, "--add-assignee", "@me").code == 0
    async with open_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, f"@{me} ● added the labels bug, docs", f"@{me} → assigned @{me}")
        await press(pilot, "escape", "p")
        await sees(pilot, "An issue")
        await press(pilot, "enter")
        await sees(pilot, f"@{me} ● added the labels bug, docs", f"@{me} → assigned @{me}")


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
        await sees(pilot, "suggests", "-     return 3 ", "+     return 34")
