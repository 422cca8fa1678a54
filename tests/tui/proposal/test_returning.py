"""Coming back to a proposal: what is new, and who acts next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from localstore.core.model.proposal import Proposal
from tests.svc.conftest import Svc
from tests.tui.conftest import shown
from tests.tui.proposal.test_proposals import other, proposal
from tests.tui.test_app import press, project, sees, settle
from tui.app import SvcApp
from tui.screens.proposal.next_step import next_step

__all__ = ["other", "project", "proposal"]
Open = Callable[..., SvcApp]
KEYS = {
    "changed_since": "V",
    "open": "enter",
    "approve": "A",
    "changes": "X",
    "draft": "d",
    "reviewer": "v",
    "merge": "M",
}
ANN, BOB = {"id": "1", "handle": "ann"}, {"id": "2", "handle": "bob"}


async def test_what_is_new_since_the_last_visit_is_marked(
    proposal: str, other: Callable[..., None], alice: Svc, open_app: Open
) -> None:
    assert alice("pr", "comment", "1", "-b", "Mine").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "p", "enter")
        await sees(pilot, "Mine")
        assert "since you read it" not in shown(pilot.app), "never read before"
        await press(pilot, "escape")
        other("pr", "comment", "1", "-b", "Theirs")
        other("pr", "review", "1", "--request-changes", "-b", "A test please")
        await press(pilot, "r", "enter")
        await sees(pilot, "new       2 comments since you read it last; enter goes there")
        await sees(pilot, "━━ new: 2 comments", "Theirs", "A test please", "next      you: M merges it")
        await sees(pilot, "▌new       2 comments", "enter what is new")  # where the cursor begins
        await press(pilot, "enter", "escape", "enter")
        await sees(pilot, "Theirs")
        assert "since you read it" not in shown(pilot.app), "it was read"


async def test_what_was_pushed_since_the_review_is_one_key_away(
    proposal: str, alice: Svc, open_app: Open
) -> None:
    assert alice("pr", "review", "1", "--comment", "-b", "Four?").code == 0
    Path("src/main.py").write_text("def main():\n    return 4\n")
    assert alice("push", "-m", "Four").code == 0
    async with open_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "p", "enter")
        await sees(pilot, "Four?", "version 2", "Versions 2", "V changed since your review")
        await press(pilot, "V")
        await sees(pilot, "src/main.py", "return 4", "return 3")
        await press(pilot, "escape", "slash", *", version 2", "enter")
        await sees(pilot, "enter what changed")
        await press(pilot, "enter")
        await sees(pilot, "src/main.py", "return 4", "return 3")
        await press(pilot, "escape", "1")
        await sees(pilot, "1 Overview")
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "p", "enter")
        await sees(pilot, "#1")
        await press(pilot, "slash", *", version 2", "enter")
        await sees(pilot, "enter what changed")
        await press(pilot, "enter")
        await sees(pilot, "return 4")


def of_ann(**values: Any) -> Proposal:
    text: dict[str, Any] = {
        "number": 1,
        "title": "T",
        "body": "",
        "state": "open",
        "draft": False,
        "author": ANN,
        "head": "h",
        "base": "b",
        "head_repo": None,
        "head_seal": "s",
        "base_seal": "s",
        "merge_base": None,
        "version": 1,
        "assignees": [],
        "labels": [],
        "reactions": {},
        "comments": 0,
        "reviewers": [],
        "reviews": [],
        "checks": {},
        "threads": {},
        "merge_state": "clean",
        "blocked_by": [],
        "depends_on": [],
        "closes": [],
        "created_at": "",
        "updated_at": "",
    }
    return msgspec.convert({**text, **values}, Proposal)


@pytest.mark.parametrize(
    ("values", "account", "words"),
    [
        ({"state": "closed"}, "ann", ""),
        ({"draft": True}, "ann", "you: d says that it is ready"),
        ({"draft": True}, "bob", "@ann says when it is ready"),
        ({"merge_state": "conflicts"}, "bob", "@ann resolves the conflicts"),
        ({"reviewers": [{"who": BOB, "state": "requested"}]}, "ann", "@bob reviews it"),
        (
            {"reviewers": [{"who": BOB, "state": "requested"}]},
            "bob",
            "you: review it: enter shows the files, A approves, X asks for changes",
        ),
        (
            {"reviewers": [{"who": BOB, "state": "changes_requested"}]},
            "ann",
            "you: change what @bob asks for, push, and ask again with v",
        ),
        (
            {"blocked_by": ["review_required"]},
            "ann",
            "you: ask somebody for a review with v; nobody is asked",
        ),
        (
            {"blocked_by": ["review_required"]},
            "bob",
            "you may: enter shows the files, A approves; nobody is asked",
        ),
        ({"blocked_by": ["review_required"]}, "cyd", "whoever may approve reviews it; nobody is asked"),
        ({}, "ann", "you: M merges it"),
    ],
)
def test_who_acts_next(values: dict[str, Any], account: str, words: str) -> None:
    parts = next_step(of_ann(**values), account, KEYS.__getitem__, merges=True, approves=account != "cyd")
    assert "".join(text for text, _ in parts) == words


def test_a_stale_review_names_the_key_to_what_changed_since() -> None:
    stale = of_ann(reviewers=[{"who": BOB, "state": "approved", "stale": True}])
    parts = next_step(stale, "bob", KEYS.__getitem__, merges=True, shows_since=True)
    words = "V shows what changed since your review, A approves, X asks for changes"
    assert "".join(text for text, _ in parts) == f"you: review it again, because it has changed: {words}"
