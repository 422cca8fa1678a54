"""Acting on the row of a list, marking several of a list, and where the cursor stands."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.svc.conftest import Svc
from tests.tui.proposal.test_proposals import other, proposal
from tests.tui.test_app import press, project, sees, settle
from tests.tui.test_issues import api, issue, waiting
from tui.actions import Action
from tui.app import SvcApp
from tui.screens.talk import acts
from tui.screens.talk.acts import About, Acts
from tui.widgets.lines import Lines

__all__ = ["issue", "other", "project", "proposal"]
Open = Callable[..., SvcApp]


def of(alice: Svc, command: str, members: str) -> dict[str, object]:
    """The members of issue or proposal 1."""
    found: dict[str, object] = json.loads(alice(command, "view", "1", "--json", members).out)
    return found


def named(values: object, member: str) -> list[str]:
    assert isinstance(values, list)
    return [value[member] if isinstance(value, dict) else value for value in values]


async def test_an_issue_is_acted_on_in_its_list(issue: str, alice: Svc, open_app: Open) -> None:
    me = os.environ["TEST_HANDLE"]
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        text = await press(pilot, "enter", "3")
        assert "enter open  c comment  l labels  z close  U assign people  a new" in text
        await press(pilot, "c", *"Seen")
        await sees(pilot, "comment on #1", "Seen")
        await press(pilot, "ctrl+s", "l", " ", "enter")
        await press(pilot, "u", "t", "!", "enter")
        await sees(pilot, "Retry stalls!", "Seen", f"@{me[:12]}")
        await press(pilot, "z")
        await sees(pilot, "no open issues", "#1: closed now; u reopens #1")
        await press(pilot, "u")
        await sees(pilot, "Issues open · 1", "Retry stalls!", "#1: open now")
        await press(pilot, "z")
        await sees(pilot, "no open issues", "#1: closed now; u reopens #1")
        await press(pilot, "c")
        await sees(pilot, "there is nothing under the cursor")
    found = of(alice, "issue", "title,state,labels,assignees")
    assert (found["title"], found["state"]) == ("Retry stalls!", "closed")
    assert named(found["labels"], "name") == ["bug"]
    assert named(found["assignees"], "handle") == [me]


@pytest.mark.parametrize("kind", ["issue", "pr"])
async def test_what_was_closed_comes_back(kind: str, proposal: str, alice: Svc, open_app: Open) -> None:
    if kind == "issue":
        for title in ("Second", "Third", "Fourth"):
            assert alice("issue", "create", "-t", title).code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", *([] if kind == "issue" else ["p"]))
        await sees(pilot, "open · 3" if kind == "issue" else "open · 1")
        number = str(pilot.app.screen.query_one("#issues", Lines).key)
        await press(pilot, "z")
        await sees(pilot, f"#{number}: closed now; u reopens #{number}")
        await press(pilot, "o")
        await sees(pilot, f"▌⊘ #{number} " if kind == "pr" else f"▌✓ #{number} ")
        await press(pilot, "z")
        await sees(pilot, f"#{number}: open now; u closes #{number}")
        await press(pilot, "u")
        await sees(pilot, f"#{number}: closed now", f"#{number} ")
    assert of(alice, kind, "state")["state"] == "closed" if kind == "pr" else True


def test_the_help_names_the_command_that_the_label_stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while a change of the state waits to be sent."""
    about = About("issue", SimpleNamespace(id="r"), 1, SimpleNamespace(state="open"))  # type: ignore[arg-type]

    class OfOne(Acts):
        front = SimpleNamespace(svc=None)  # type: ignore[assignment]
        chosen = about

    close = Action("close", ("z",), "close", "svc issue close {n}")
    for waits, label in (("", "close"), ("closed", "reopen")):
        monkeypatch.setattr(acts, "waiting_state", lambda *about, waits=waits: waits)
        of_one = OfOne()
        assert (of_one.act_label(close), of_one.act_command(close)) == (label, f"svc issue {label} {{n}}")


async def test_a_proposal_is_acted_on_in_its_list(proposal: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "p")
        await sees(pilot, "Proposals open · 1")
        assert "M (merge) is for what enter opens" in await press(pilot, "M")
        await press(pilot, "c", *"Read", "ctrl+s")
        await sees(pilot, "Read")
        await press(pilot, "z")
        await sees(pilot, "no open proposals")
    assert of(alice, "pr", "state")["state"] == "closed"


async def test_who_may_not_close_an_issue_is_told_so_in_the_list(
    proposal: str,
    other: Callable[..., None],
    alice: Svc,
    open_app: Open,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its author may."""
    other("issue", "create", "-t", "Theirs")
    assert alice("issue", "create", "-t", "Ours").code == 0
    owner = os.environ["TEST_HANDLE"]
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    monkeypatch.setenv("TEST_HANDLE", f"{owner[:30]}-b")
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "w")
        await sees(pilot, proposal[:20])  # the card shortens long names
        await press(pilot, *"project", "enter", "3")
        await sees(pilot, "▌○ #3 Ours", "#2 Theirs")
        assert "needs the role triage" in await press(pilot, "z")
        await press(pilot, "j", "z")
        await sees(pilot, "▌○ #3 Ours", "Issues open · 1")


async def test_a_key_without_an_action_says_so(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await sees(pilot, "Repositories")
        assert "z does nothing here; ? lists what does" in await press(pilot, "z")
        await press(pilot, "enter", "3")
        assert "T (edit the text) is for what enter opens" in await press(pilot, "T")
        assert "enter open" in await press(pilot, "j")


async def test_several_labels_are_marked_at_once(issue: str, alice: Svc, open_app: Open) -> None:
    assert alice("label", "create", "docs").code == 0
    assert alice("label", "create", "slow").code == 0
    assert alice("issue", "label", "add", "1", "slow").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "l")
        await sees(pilot, "☐ ● bug", "☐ ● docs", "☑ ● slow", "space on or off  enter apply")
        await press(pilot, " ", "down", " ", "down", " ")
        await sees(pilot, "☑ ● bug", "☑ ● docs", "☐ ● slow")
        await press(pilot, "enter")
        await sees(pilot, "● bug", "● docs")
        await press(pilot, "l", "enter")
        await sees(pilot, "nothing was changed")
        await press(pilot, "l", *"slow", "enter")  # the only one that was searched for
        await sees(pilot, "● slow")
    assert sorted(named(of(alice, "issue", "labels")["labels"], "name")) == ["bug", "docs", "slow"]
    assert waiting(alice) == []


async def test_the_cursor_stands_on_what_was_made(issue: str, alice: Svc, open_app: Open) -> None:
    for number in range(30):
        api(alice, "repos/{id}/issues", "-X", "POST", "-f", f"title=Number {number}", "-f", "body=x")
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "Number 29")
        await press(pilot, "G", "a")
        await press(pilot, *"Brand new", "enter", "ctrl+s")
        await sees(pilot, "▌○ #32 Brand new")
        await press(pilot, "5", "a")
        await press(pilot, *"v1", "enter", "ctrl+s")
        await sees(pilot, "Created release v1", "▌v1")


async def test_home_begins_with_what_needs_me(
    proposal: str, other: Callable[..., None], alice: Svc, open_app: Open
) -> None:
    """At every size the first row of it is in view, and has the cursor."""
    other("pr", "comment", "1", "-b", f"Why, @{os.environ['TEST_HANDLE']}?")
    for number in range(4):
        assert alice("repo", "create", f"more-{number}").code == 0
    for size in ((80, 24), (100, 30), (140, 12)):
        async with open_app().run_test(size=size) as pilot:
            await sees(pilot, "Repositories 5")
            text = await sees(pilot, "Needs me")
            lines = pilot.app.screen.query_one("#repos", Lines)
            assert lines.top == 0, text
            assert lines.cursor == 1, text


async def test_what_comes_above_the_cursor_of_home_is_in_view(
    proposal: str, other: Callable[..., None], open_app: Open
) -> None:
    me = os.environ["TEST_HANDLE"]
    other("pr", "comment", "1", "-b", f"Why, @{me}?")
    async with open_app().run_test(size=(80, 24)) as pilot:
        await sees(pilot, "Needs me 1", "Repositories 1")
        await press(pilot, "j", "k")
        other("issue", "create", "-t", "Look", "-b", f"Here, @{me}.")
        await press(pilot, "r")
        await sees(pilot, "Needs me 2", "Look")
        lines = pilot.app.screen.query_one("#repos", Lines)
        assert (lines.top, lines.cursor) == (0, 2)
