"""Inbox, proposals, runs and settings, by keys alone, against a real relay."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from localstore.core.model.check import SealCheck
from tests.patience import PATIENCE
from tests.svc.conftest import Svc
from tests.tui.conftest import shown
from tests.tui.test_app import open_proposal, press, project, sees, settle, soon
from tests.tui.test_issues import NOWHERE, api, waiting
from tui.app import SvcApp
from tui.machine import Place
from tui.screens.proposal.words import sign_of_check

__all__ = ["project"]
Open = Callable[..., SvcApp]


@pytest.fixture
def proposal(project: str, alice: Svc) -> str:
    """The repository with a proposal #1 of branch `topic`, which has a check that passed."""
    assert alice("repo", "branch", "topic").code == 0
    assert alice("switch", "topic").code == 0
    Path("src/main.py").write_text("def main():\n    return 3\n")
    assert alice("push", "-m", "Third").code == 0
    made = alice("pr", "create", "--base", "main", "-t", "Return three", "-b", "Because it is odd.")
    assert made.code == 0, made
    return project


def head(svc: Svc) -> str:
    found: list[dict[str, str]] = json.loads(svc("log", "topic", "--json", "id").out)
    return found[0]["id"]


@pytest.fixture
def other(
    alice: Svc, proposal: str, node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Runs a command as another account, who may write here."""
    handle, mine = f"{os.environ['TEST_HANDLE']}"[:30] + "-b", os.environ["SVC_HOME"]

    def run(*words: str) -> None:
        monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
        answer = alice(*words, "-R", proposal)
        monkeypatch.setenv("SVC_HOME", mine)
        assert answer.code == 0, answer

    assert alice("repo", "visibility", "public", "--yes").code == 0
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    assert alice("login", "--device-key", "--handle", handle).code == 0
    monkeypatch.setenv("SVC_HOME", mine)
    return run


async def test_a_proposal_is_read_changed_and_merged(proposal: str, alice: Svc, open_app: Open) -> None:
    seal = head(alice)
    assert alice("repo", "run", "create", "lint", "--seal", seal, "--conclusion", "success").code == 0
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        text = await press(pilot, "p")
        assert "Proposals open · 1" in text
        assert "○ #1 " in text
        assert "✓1/1" in text
        text = await press(pilot, "enter")
        assert "main ← topic" in text
        assert "Because it is odd." in text
        assert "✓ pass" in text
        assert "src/main.py  +1 −1" in text
        text = await press(pilot, "enter")
        assert "+    return 3" in text
        await press(pilot, "G", "c")
        text = await press(pilot, *"Why", "ctrl+s")
        assert "╭─ open" in text
        assert "Why" in text
        text = await press(pilot, "x", "ctrl+u", *"return4", "ctrl+s")
        assert "+ return4" in text
        assert "─ ✓ resolved" in await press(pilot, "j", "z")
        await press(pilot, "escape")
        await press(pilot, "c")
        assert "Seen" in await press(pilot, *"Seen", "ctrl+s", "G")
        assert "proposal of their own" in await press(pilot, "A")
        assert "◌ draft" in await press(pilot, "d", "g")
        assert "is a draft" in await press(pilot, "M")
        assert "○ open" in await press(pilot, "d")
        assert "⊘ closed" in await press(pilot, "z")
        assert "○ open" in await press(pilot, "z")
        assert f"@{os.environ['TEST_HANDLE']}" in (await press(pilot, "u")).split("assigned")[1]
        await press(pilot, "t", "ctrl+u", *"Odder", "enter")
        await sees(pilot, "#1: title changed; u takes it back")
        await press(pilot, "u")
        await sees(pilot, "#1  Return three")
        assert "heart ×1" in await press(pilot, "e", *"heart", "enter")
        text = await press(pilot, "M")
        assert "✓ 1/1" in text and "✓ none" in text and "☐ delete the branch topic" in text
        before = pilot.app.screen.query_one("#card").region
        text = await press(pilot, "d")
        assert "☑ delete the branch topic" in text
        assert pilot.app.screen.query_one("#card").region == before, "the card stays in its place"
        assert f":repo branch topic --from {seal[:12]} makes it again" in text
        assert "Its own seals are then on" in await press(pilot, "j", "enter")
        text = await press(pilot, "n")
        assert "nothing was done" in text
        await press(pilot, "enter", "y")
        await sees(pilot, "Merged #1")
        assert "● merged" in await press(pilot, "escape")
        await press(pilot, "escape")
        assert "no open proposals" in await settle(pilot)
        assert "● #1 " in await press(pilot, "o", "o")
    assert json.loads(alice("pr", "view", "1", "--json", "state").out)["state"] == "merged"
    assert waiting(alice) == []


async def test_a_proposal_is_written_in_a_form(proposal: str, alice: Svc, open_app: Open) -> None:
    """Its draft is there again after esc."""
    assert alice("repo", "branch", "other", "--from", "topic").code == 0
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "p", "a")
        await sees(pilot, "branch to propose", "○ #1", "↑1")
        await press(pilot, *"other", "enter")
        await sees(pilot, "title     Third", "ctrl+s send all")
        await press(pilot, *"Odd again", "enter", "escape")  # in the place of the title of the seal
        await press(pilot, "k", "enter")
        await sees(pilot, "branch that it is for")
        await press(pilot, *"topic", "enter")
        await sees(pilot, "topic  ←  other", "title     Odd again")
        await press(pilot, "g", "j", "j", "j", "enter", "escape")
        await press(pilot, "a", *"other", "enter")
        await sees(pilot, "Odd again", "✓ yes", "topic  ←  other")
        await press(pilot, "g", "j", "enter")
        await press(pilot, *"main", "enter")
        await sees(pilot, "main  ←  other")
        await press(pilot, "S")
        await sees(pilot, "#2 Odd again", "Proposals open · 2")
    made = json.loads(alice("pr", "view", "2", "--json", "head,base,draft").out)
    assert made == {"head": "other", "base": "main", "draft": True}
    assert waiting(alice) == []


async def test_a_conflict_lists_its_files_and_the_way_out(proposal: str, alice: Svc, open_app: Open) -> None:
    assert alice("switch", "main").code == 0
    Path("src/main.py").write_text("def main():\n    return 4\n")
    assert alice("push", "-m", "Four").code == 0
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3", "p")
        text = await press(pilot, "enter")
        assert "✗ conflicts with its base" in text
        assert "✗ src/main.py" in text.split("Conflicts  with main")[1]
        assert ":pr checkout 1, then :merge main" in text
        text = await press(pilot, "M")
        assert "It cannot be merged now" in text and "✗ it conflicts with main" in text
        assert "enter check it out" in text and "squash" not in text


async def test_a_review_is_shown(
    proposal: str, other: Callable[..., None], alice: Svc, open_app: Open
) -> None:
    other("pr", "review", "1", "--request-changes", "-b", "Four is better")
    async with open_app().run_test(size=(80, 24)) as pilot:
        assert "#1" in await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        await press(pilot, "p")
        text = await press(pilot, "enter", "G")
        assert "✗ requests changes" in text
        assert "Four is better" in text


async def test_open_threads_are_counted_on_a_small_terminal(
    proposal: str, other: Callable[..., None], alice: Svc, open_app: Open
) -> None:
    for line in ("1", "2"):
        other("pr", "comment", "1", "--path", "src/main.py", "--line", line, "-b", "Why?")
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        await press(pilot, "p")
        await press(pilot, "enter")
        assert "2 open" in await sees(pilot, "threads")


async def test_a_way_to_merge_that_the_base_rules_out_cannot_be_chosen(
    proposal: str, alice: Svc, open_app: Open
) -> None:
    assert alice("switch", "main").code == 0
    Path("data.bin").write_bytes(b"other")
    assert alice("push", "-m", "Fourth").code == 0
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        await open_proposal(pilot, "p")
        await sees(pilot, "its base has moved on")
        text = await press(pilot, "M")
        assert "fast-forward  not possible: its base has moved on" in text
        assert "▌squash" in text and "move the base forward" not in text
        assert alice("repo", "protect", "set", "main", "--required-approvals", "1").code == 0
        assert alice("pr", "comment", "1", "--path", "src/main.py", "--line", "2", "-b", "Why?").code == 0
        await press(pilot, "escape", "r")
        await sees(pilot, "it needs an approval", "threads   1 open")
        text = await press(pilot, "M")
        assert "▌squash" in text and "move the base forward" not in text
        assert "threads       1 open" in text


async def test_a_stranger_reviews_and_is_told_what_needs_a_role(
    proposal: str,
    other: Callable[..., None],
    alice: Svc,
    open_app: Open,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other("pr", "comment", "1", "-b", "Why?")
    assert alice("pr", "comment", "1", "-b", "Because").code == 0
    owner = os.environ["TEST_HANDLE"]
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    monkeypatch.setenv("TEST_HANDLE", f"{owner[:30]}-b")
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        text = await press(pilot, "i", "enter")
        assert "main ← topic" in text
        needs = "this needs the role write"
        assert needs in await press(pilot, "M")
        assert needs in await press(pilot, "d")
        assert "needs the role triage" in await press(pilot, "z")
        await press(pilot, "X")
        assert "say what is to change" in await press(pilot, "ctrl+s")
        await press(pilot, "R")
        text = await press(pilot, *"Test", "ctrl+s", "G")
        assert "✗ requests changes" in text
        assert "advice" in text
        await press(pilot, "A")
        assert "✓ approved" in await press(pilot, "ctrl+s", "G")
    found = api(alice, "repos/{id}/proposals/1/reviews")
    assert isinstance(found, dict)
    assert {one["verdict"] for one in found["items"]} == {"approve", "request_changes"}


async def test_the_inbox_is_shown_opened_and_emptied(
    proposal: str, other: Callable[..., None], alice: Svc, open_app: Open
) -> None:
    other("pr", "comment", "1", "-b", "Why?")
    async with open_app().run_test(size=(80, 24)) as pilot:
        text = await settle(pilot)
        assert "Mine 1" in text
        assert "#1  Return three" in text
        assert text.index("Mine") < text.index("Repositories")
        text = await press(pilot, "i")
        assert "● yours" in text
        assert "Why?" in await press(pilot, "enter", "G")
        await press(pilot, "escape")
        assert "nothing new concerns you" in await press(pilot, "x")
    assert json.loads(alice("inbox", "--json", "item").out) == []


async def test_what_was_opened_counts_as_read_and_u_takes_it_back(
    proposal: str, other: Callable[..., None], alice: Svc, open_app: Open
) -> None:
    other("pr", "comment", "1", "-b", "Why?")
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "i")
        await sees(pilot, "● project#1 Return three", "yours  ✓ ready  @")
        await press(pilot, "enter")
        await sees(pilot, "Why?", "main ← topic")
        await press(pilot, "escape")
        text = await sees(pilot, "project#1 Return three")
        assert "● project#1" not in text
        await press(pilot, "u")
        await sees(pilot, "● project#1 Return three")
    assert json.loads(alice("inbox", "--json", "state").out) == [{"state": "unread"}]


@pytest.mark.parametrize("width", [80, 100, 140])
async def test_rows_say_what_waits(
    proposal: str,
    alice: Svc,
    other: Callable[..., None],
    open_app: Open,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    width: int,
) -> None:
    """A review of the account, and conflicts."""
    me, mine = os.environ["TEST_HANDLE"], os.environ["SVC_HOME"]
    assert alice("repo", "collaborator", "add", f"{me[:30]}-b", "--role", "write").code == 0
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    assert alice("repo", "invite", "accept", proposal).code == 0
    monkeypatch.setenv("SVC_HOME", mine)
    assert alice("repo", "branch", "second", "--from", "topic").code == 0
    other("pr", "create", "--head", "second", "--base", "main", "-t", "Theirs", "-b", "x")
    other("pr", "edit", "2", "--add-reviewer", me)
    other("pr", "comment", "1", "-b", "Why?")
    async with open_app().run_test(size=(width, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "G", "enter", "3", "p")
        review = "◆ review" if width < 90 else "◆ your review"
        text = await sees(pilot, "Proposals open · 2", review, "#2 Theirs")
        assert "3 Proposals 2" in text or "3 Prop 2" in text
        assert text.count(review) == 1
        assert alice("switch", "main").code == 0
        Path("src/main.py").write_text("def main():\n    return 9\n")
        assert alice("push", "-m", "Nine").code == 0
        await press(pilot, "r")
        text = await sees(pilot, "✗ conflicts", review)
        await press(pilot, "enter")
        await sees(pilot, "Theirs", "A approve")
        await press(pilot, "escape", "j", "enter")
        text = await sees(pilot, "Return three", "M merge")
        assert "A approve" not in text
        assert "✗ it conflicts with main" in await press(pilot, "M")


def test_a_check_of_which_no_run_was_reported_is_missing() -> None:
    def check(run: str | None) -> SealCheck:
        return SealCheck("lint", "pending", True, 0, None, None, "0" * 64, None, None, run)

    assert sign_of_check(check(None))[0] == "· missing"
    assert "queued" in sign_of_check(check("1"))[0]


async def test_all_of_the_inbox_is_marked_without_the_server_and_sent_later(
    proposal: str, other: Callable[..., None], alice: Svc, open_app: Open
) -> None:
    other("pr", "comment", "1", "-b", "Why?")
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
    async with open_app(NOWHERE).run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "Mark 1 as done?" in await press(pilot, "i", "X")
        assert "⋯ queued  mark 1 row of the inbox as done" in await press(pilot, "y")
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "nothing new" in await press(pilot, "i")


async def test_what_needs_me_stays_when_all_is_done_and_u_brings_back(
    proposal: str, other: Callable[..., None], alice: Svc, open_app: Open
) -> None:
    assert alice("issue", "create", "-t", "Stalls").code == 0
    other("pr", "comment", "1", "-b", "Why?")
    other("issue", "comment", "2", "-b", f"@{os.environ['TEST_HANDLE']}, can you look?")
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "i")
        text = await sees(pilot, "mention", "yours")
        assert "Mark 1 as done? 1 that needs you stays." in await press(pilot, "X")
        text = await press(pilot, "n")
        assert "nothing was done" in text and "yours" in text
        await press(pilot, "X")
        text = await press(pilot, "y")
        assert "1 done; 1 that needs you stays; u undoes it" in text
        assert "mention" in text and "yours" not in text
        assert "each of these waits for you" in await press(pilot, "X")
        text = await press(pilot, "u")
        assert "#1 is back" in text and "● project#1 Return three" in text and "yours  ✓ ready  @" in text
        assert "nothing was marked" in await press(pilot, "u")
        await press(pilot, "g")
        await press(pilot, "x")
        text = await press(pilot, "u")
        assert "mention" in text and "yours" in text
        await press(pilot, "x", "x")
        await sees(pilot, "nothing new concerns you")
        assert "#1 is back; u undoes the one before" in await press(pilot, "u")
        text = await press(pilot, "u")
        assert "#2 is back" in text and "yours" in text
        assert "▌● project#2" in text, "the cursor is on what came back"
        await press(pilot, "x", "escape")
        app = pilot.app
        assert isinstance(app, SvcApp)
        await soon(pilot, lambda: "Repositories" in shown(app) and "mention" not in shown(app))
    rows = json.loads(alice("inbox", "--json", "state").out)
    assert rows == [{"state": "unread"}]


async def test_runs_are_shown_repeated_and_cancelled(proposal: str, alice: Svc, open_app: Open) -> None:
    assert alice("switch", "main").code == 0
    seal = json.loads(alice("log", "main", "--json", "id").out)[0]["id"]
    words = ["repo", "run", "create", "lint", "--seal", seal]
    assert alice(*words, "--conclusion", "failure", "--summary", "Two lines too long").code == 0
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        text = await press(pilot, "4")
        assert "✗ lint" in text
        assert " Runs 1 " not in text and "Other runs" not in text, (
            "a check that is above is not listed again"
        )
        assert "✗ fail" in text
        assert "Two lines too long" in text
        assert "is completed" in await press(pilot, "x")
        text = await press(pilot, "u")
        assert "◌ queued" in text
        assert "attempt 2" in text
        await press(pilot, "g", "enter")
        assert "⊘ cancel" in await press(pilot, "x")
        assert "asked for attempt 3 of lint" in await press(pilot, "u")
        await sees(pilot, "attempt   3")
        await press(pilot, "x")
        await sees(pilot, "⊘ cancel", "asked to cancel lint")
    found = api(alice, "repos/{id}/runs")
    assert isinstance(found, dict)
    assert [one["conclusion"] for one in found["items"]] == ["cancelled", "cancelled", "failure"]


async def test_esc_leaves_the_prompt_and_nothing_else(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "8")
        assert "handle of whom" in await press(pilot, "a")
        text = await press(pilot, "escape")
        assert "handle of whom" not in text
        assert "8 Set" in text
        assert "Notes on parsing" in text
        assert "trunk" not in await press(pilot, "j", "enter")
        assert "Notes on parsing" in await press(pilot, "escape")


async def test_a_repository_is_deleted_by_its_name(project: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "8")
        await press(pilot, "G", "enter")
        await press(pilot, *project, "enter")
        await sees(pilot, "Deleted")
    assert json.loads(alice("repo", "list", "--json", "full_name").out) == []


async def test_a_branch_is_proposed_and_checked_out(project: str, alice: Svc, open_app: Open) -> None:
    assert alice("repo", "branch", "topic").code == 0
    assert alice("switch", "topic").code == 0
    Path("new").write_text("1\n")
    assert alice("push", "-m", "New").code == 0
    assert alice("switch", "main").code == 0
    repo = json.loads(alice("repo", "view", "--json", "id").out)["id"]
    async with open_app(place=Place(Path.cwd(), repo, project, "main")).run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        await press(pilot, "p", "a")
        await press(pilot, "enter")
        text = await press(pilot, *"Bring", "enter", "ctrl+s")
        assert "○ #1 " in text
        assert "Bring" in text
        await press(pilot, "enter")
        text = await press(pilot, "o")
        assert "On branch topic" in text, text
        await press(pilot, "escape", "escape", "escape")
        assert f"{project}  topic @" in await press(pilot, "enter")
    assert Path("new").exists()


async def test_the_folders_branch_is_opened(project: str, alice: Svc, open_app: Open) -> None:
    assert alice("repo", "branch", "topic").code == 0
    assert alice("switch", "topic").code == 0
    repo = json.loads(alice("repo", "view", "--json", "id").out)["id"]
    async with open_app(place=Place(Path.cwd(), repo, project, "topic")).run_test(size=(120, 24)) as pilot:
        assert "on topic" in await settle(pilot)
        assert f"{project}  topic @" in await press(pilot, "enter")


async def test_a_deleted_branch_of_the_folder_is_not_opened(project: str, alice: Svc, open_app: Open) -> None:
    repo = json.loads(alice("repo", "view", "--json", "id").out)["id"]
    async with open_app(place=Place(Path.cwd(), repo, project, "gone")).run_test(size=(120, 24)) as pilot:
        await settle(pilot)
        assert f"{project}  main @" in await press(pilot, "enter")


async def test_what_another_does_is_shown_as_it_happens(
    proposal: str, other: Callable[..., None], alice: Svc, open_app: Open
) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        await press(pilot, "p")
        await press(pilot, "enter")
        assert "● live" in await seen(pilot, "● live")
        other("pr", "comment", "1", "-b", "Why?")
        assert "Why?" in await seen(pilot, "Why?")
        await press(pilot, "escape")
        await press(pilot, "p")
        assert "no open issues" in await settle(pilot)
        other("issue", "create", "-t", "Broken", "-b", "")
        assert "Broken" in await seen(pilot, "Broken")


async def test_the_light_goes_out_when_the_socket_ends(
    proposal: str, alice: Svc, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        assert "● live" in await seen(pilot, "● live")
        assert isinstance(pilot.app, SvcApp)
        app, lights = pilot.app, list[str]()
        told = app.news._set_state

        def state(name: str) -> None:  # "online" lasts no longer than the next try takes
            told(name)
            lights.append(app.news.state)

        monkeypatch.setattr(app.news, "_set_state", state)
        socket = app.news.following._socket
        assert socket is not None
        socket._socket._protocol.fail(1011, "gone")
        socket._socket._rouse()
        await soon(pilot, lambda: "live" in lights)
        assert lights[0] in ("online", "offline")
        assert "● live" in await seen(pilot, "● live")


async def seen(pilot: Pilot[None], words: str) -> str:
    """The screen once the words are on it, or as it is after ten seconds."""
    until = time.monotonic() + PATIENCE
    text = await settle(pilot)
    while words not in text and time.monotonic() < until:
        await asyncio.sleep(0.05)
        text = await settle(pilot)
    return text


async def test_who_reviews_is_chosen_among_the_people_of_the_repository(
    proposal: str,
    alice: Svc,
    other: Callable[..., None],
    open_app: Open,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ben, mine = f"{os.environ['TEST_HANDLE'][:30]}-b", os.environ["SVC_HOME"]
    assert alice("repo", "collaborator", "add", ben, "--role", "write").code == 0
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    assert alice("repo", "invite", "accept", proposal).code == 0
    monkeypatch.setenv("SVC_HOME", mine)
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "Because it is odd", "● live")
        await press(pilot, "v")
        await sees(pilot, "who reviews #1", f"☐ @{ben}")
        await press(pilot, "space", "enter")
        await sees(pilot, f"? @{ben}  requested")
        await press(pilot, "v")
        await sees(pilot, f"☑ @{ben}")
        await press(pilot, "space", "enter")
        await soon(pilot, lambda: "requested" not in shown(pilot.app))
        await press(pilot, "v", *"nobody", "enter")
        await sees(pilot, "nobody")
