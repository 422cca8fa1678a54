"""Choosing a branch to propose, and the form of the proposal, in cards over the list."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.svc.conftest import Svc
from tests.tui.lists.test_pushed import other
from tests.tui.proposal.test_proposals import proposal
from tests.tui.test_app import press, project, sees, settle
from tests.tui.test_issues import NOWHERE, waiting
from tests.tui.test_typed_ahead import burst
from tui.app import SvcApp
from tui.screens.talk.new_proposal import title_and_text
from tui.screens.talk.reviewers import Written, reviewer_rows, written_by
from tui.widgets.frame import Prompt
from tui.widgets.lines import Lines

__all__ = ["other", "project", "proposal"]
Open = Callable[..., SvcApp]


@pytest.fixture
def branches(proposal: str, alice: Svc) -> str:
    """The repository with an older and a newer branch to propose, besides `topic`, which is proposed, `done`,
    which is merged, and `empty`, which has nothing that `main` lacks."""
    sealed = {"older": ("Fourth",), "newer": ("Fifth\n\nOdd.", "Sixth\n\nEven."), "done": ("Last",)}
    for number, (name, messages) in enumerate(sealed.items()):
        assert alice("switch", "main").code == 0
        assert alice("repo", "branch", name).code == 0
        assert alice("switch", name).code == 0
        for message in messages:
            Path(f"{number}.txt").write_text(message)
            assert alice("push", "-m", message).code == 0
    assert alice("pr", "create", "--base", "main", "-t", "Last", "-b", "").code == 0
    assert alice("pr", "merge", "2", "--squash", "--yes").code == 0
    assert alice("switch", "main").code == 0
    assert alice("repo", "branch", "empty", "--from", "main").code == 0
    return proposal


async def test_free_branches_come_first_and_others_say_why_not(
    branches: str, alice: Svc, open_app: Open
) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "p", "a")
        text = await sees(pilot, "Not proposed yet 2", "Proposed 1", "Nothing to propose 2", "▌newer")
        order, lines = ("newer ", "older ", "topic ", "empty ", "done "), text.splitlines()
        rows = [next(row for row in lines if name in row[:20]) for name in order]
        places = [lines.index(row) for row in rows]
        assert places == sorted(places), text
        for row, said in zip(rows, ("↑2", "↑1", "○ #1", "nothing new", "merged #2"), strict=True):
            assert said in row
        await sees(pilot, "│ newer", "Sixth", "Fifth")  # the preview
        await press(pilot, *"done", "enter")
        await sees(pilot, "done is merged in #2; push to it", "branch to propose")
        await press(pilot, "ctrl+u", *"empty", "enter")
        await sees(pilot, "main has every seal of empty; push to it", "branch to propose")
        await press(pilot, "ctrl+u", *"topic", "enter")
        await sees(pilot, "title     Third", "main  ←  topic  #1 is open")
        await press(pilot, "ctrl+s")
        await sees(pilot, "#1 proposes topic for main already", "title     Third")
    assert waiting(alice) == []


async def test_title_and_text_begin_with_the_seals_and_the_title_is_typed_in_its_row(
    branches: str, alice: Svc, open_app: Open
) -> None:
    app = open_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "p", "a")
        await sees(pilot, "Not proposed yet 2", "▌newer")
        await press(pilot, "enter")
        await sees(pilot, "─ New proposal · ", "title     Sixth", "text      2 lines", "• Fifth", "• Sixth")
        prompt, form = app.screen.query_one(Prompt), app.screen.query_one("#form", Lines)
        assert prompt.region.y == form.content_region.y and prompt.region.x == form.content_region.x
        await pilot.resize_terminal(120, 40)
        await settle(pilot)
        assert prompt.region.y == form.content_region.y and prompt.region.width == form.content_region.width
        await press(pilot, "ctrl+u")
        burst(pilot, *"Even", "ctrl+s", "r")
        text = await sees(pilot, "Even", "Proposals open · 2", "#3 opened: Even")
        assert any("▌" in row and "#3 Even" in row for row in text.splitlines()), text
    made = json.loads(alice("pr", "view", "3", "--json", "head,title,body").out)
    assert made == {"head": "newer", "title": "Even", "body": "- Fifth\n- Sixth"}
    assert waiting(alice) == []


async def test_enter_before_the_answers_waits_for_them(branches: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "p")
        burst(pilot, "a", *"done", "enter")
        await sees(pilot, "done is merged in #2; push to it", "branch to propose")


async def test_without_the_server_the_form_opens_with_what_is_known(
    branches: str, alice: Svc, open_app: Open
) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "p", "a")
        await sees(pilot, "Not proposed yet 2", "▌newer")
    async with open_app(NOWHERE).run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "p", "a")
        await sees(pilot, "Not proposed yet 2", "▌newer")
        await press(pilot, *"older", "enter")
        await sees(pilot, "title     ", "main  ←  older")
        await press(pilot, *" later", "enter", "escape", "S")
        await sees(pilot, "⋯ queued")


async def test_reviewers_are_chosen_among_the_people_of_the_repository(
    branches: str, other: Callable[..., None], open_app: Open
) -> None:
    me = os.environ["TEST_HANDLE"]
    async with open_app().run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "p", "a")
        await sees(pilot, "Not proposed yet 2", "▌newer")
        await press(pilot, "enter", "enter", "escape")
        await sees(pilot, "reviewers none")
        await press(pilot, "j", "j", "enter")
        text = await sees(pilot, f"☐ @{me[:30]}-ben")
        assert f"☐ @{me}\n" not in text and f"☐ @{me} " not in text  # nobody reviews their own
        await press(pilot, "space", "enter")
        await sees(pilot, f"reviewers @{me[:30]}-ben")


def test_reviewers_come_with_a_reason_and_those_who_wrote_most_first() -> None:
    roles = {"ann": "read", "bob": "write", "cleo": "triage", "di": "write"}
    rows = reviewer_rows(roles, roles, Written({"cleo": 7, "di": 30, "eve": 3}, 40), 2)
    words = {handle: " ".join("".join(text for text, _ in parts).split()) for handle, parts in rows.items()}
    assert words == {
        "di": "@di write wrote 30 of 40 lines of these files",
        "cleo": "@cleo triage wrote 7 of 40 lines of these files",
        "ann": "@ann read approval only advises",
        "bob": "@bob write",
    }
    assert list(words) == ["di", "cleo", "ann", "bob"]


async def test_who_wrote_files_is_read_from_the_base(proposal: str, alice: Svc, open_app: Open) -> None:
    repo_id = alice("repo", "view", "--jq", ".id").out.strip()
    head = alice("log", "main", "--jq", ".[0].id").out.strip()
    app = open_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        written, _ = app.client.fetch(written_by(repo_id, head, ["src/main.py", "never.py"]))
    assert list(written.by) == [os.environ["TEST_HANDLE"]]
    assert written.by[os.environ["TEST_HANDLE"]] == written.lines > 0


async def test_the_form_shows_the_seals_and_files_of_the_proposal(branches: str, open_app: Open) -> None:
    async with open_app().run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "p", "a")
        await sees(pilot, "Not proposed yet 2", "▌newer")
        await press(pilot, "enter")
        await sees(pilot, "Seals 2", " Sixth", " Fifth", "Files 1", "A 1.txt  +3")
        await pilot.resize_terminal(100, 40)
        await sees(pilot, "as others will see it", "Seals 2", "Files 1", "A 1.txt")


async def test_a_new_proposal_is_shown_wherever_its_form_was_opened(branches: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "1")
        await press(pilot, "colon", *"pr create", "enter")
        await sees(pilot, "Not proposed yet 2", "▌newer")
        await press(pilot, "enter")
        await sees(pilot, "title     Sixth")
        await press(pilot, "ctrl+s")
        text = await sees(pilot, "#3 opened: Sixth", "Proposals open · 2")
        assert any("▌" in row and "#3 Sixth" in row for row in text.splitlines()), text


def test_title_and_text_of_seals() -> None:
    assert title_and_text([]) == ("", "")
    assert title_and_text(["One\n\nIt is odd."]) == ("One", "It is odd.")
    assert title_and_text(["Two\n\nEven.", "One\n\nOdd."]) == ("Two", "- One\n- Two")
    assert title_and_text(["\nThree\n\nOdd.\n"]) == ("Three", "Odd.")
