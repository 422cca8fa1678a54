"""Coming back to a proposal: what is new, and who acts next."""

from __future__ import annotations

from collections.abc import Callable
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
KEYS = {"open": "enter", "approve": "A", "changes": "X", "draft": "d", "reviewer": "v", "merge": "M"}
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
        await press(pilot, "slash", *"2 comments", "enter")
        await sees(pilot, "enter what is new")
        await press(pilot, "enter", "escape", "escape", "enter")
        await sees(pilot, "Theirs")
        assert "since you read it" not in shown(pilot.app), "it was read"


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
        ({}, "ann", "you: M merges it"),
    ],
)
def test_who_acts_next(values: dict[str, Any], account: str, words: str) -> None:
    parts = next_step(of_ann(**values), account, KEYS.__getitem__, merges=True)
    assert "".join(text for text, _ in parts) == words
