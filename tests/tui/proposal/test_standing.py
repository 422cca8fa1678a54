"""What the rows of lists say of a proposal: the first thing that it waits for."""

from __future__ import annotations

from typing import Any

import pytest

from localstore.core.model.inbox import InboxItem, InboxRepo, InboxSubject
from tui.listed import Counts, ListedProposal, OpenThreads, Person, Signed, Verdict
from tui.screens.lists.inbox import Space, row, section_of
from tui.screens.proposal.words import counts_beside, standing_of, waits_for
from tui.widgets.lines import text_of


def listed(**fields: Any) -> ListedProposal:
    """An open proposal that nothing blocks, with these fields."""
    values: dict[str, Any] = {
        "number": 1,
        "title": "Return three",
        "state": "open",
        "draft": False,
        "author": Person("ana"),
        "assignees": (),
        "labels": (),
        "head": "topic",
        "base": "main",
        "reviewers": (),
        "checks": Counts(),
        "comments": 0,
        "merge_state": "clean",
        "updated_at": "2026-01-01T00:00:00Z",
        "blocked_by": (),
    }
    return ListedProposal(**{**values, **fields})


def asked(handle: str, state: Any = "requested") -> Verdict:
    return Verdict(Person(handle), state)


BLOCKED = {"merge_state": "blocked"}
NEEDS_REVIEW = {**BLOCKED, "blocked_by": ("review_required",)}


@pytest.mark.parametrize(
    ("fields", "words", "short"),
    [
        ({}, "✓ ready", "✓ ready"),
        ({"merge_state": "behind"}, "✓ ready", "✓ ready"),
        ({"draft": True, "merge_state": "draft"}, "◌ draft", "◌ draft"),
        ({"merge_state": "conflicts", "reviewers": (asked("me"),)}, "✗ conflicts", "✗ conflicts"),
        ({**NEEDS_REVIEW, "reviewers": (asked("me"),)}, "◆ your review", "◆ review"),
        ({**NEEDS_REVIEW, "reviewers": (asked("bob"), asked("eve"))}, "◇ review @bob +1", "◇ @bob +1"),
        ({"reviewers": (asked("bob"),)}, "◇ review @bob", "◇ @bob"),
        (NEEDS_REVIEW, "◇ needs review", "◇ review"),
        ({"reviewers": (asked("bob", "changes_requested"),)}, "✗ changes asked", "✗ changes"),
        ({**NEEDS_REVIEW, "checks": Counts(3, 1, 2)}, "✗ 2 checks failed", "✗ 2 failed"),
        ({"checks": Counts(3, 1, 0, 2)}, "◐ checks 1/3", "◐ 1/3"),
        ({**BLOCKED, "blocked_by": ("checks_required",)}, "◐ checks", "◐ checks"),
        (
            {**BLOCKED, "blocked_by": ("unresolved_threads",), "threads": OpenThreads(2)},
            "◇ 2 open threads",
            "◇ threads",
        ),
        ({**BLOCKED, "blocked_by": ("lock_writes",)}, "⊘ locked", "⊘ locked"),
        ({**BLOCKED, "blocked_by": ("a_new_code",)}, "◇ a new code", "◇ waits"),
    ],
)
def test_a_row_says_the_first_thing_that_a_proposal_waits_for(
    fields: dict[str, Any], words: str, short: str
) -> None:
    standing = standing_of(listed(**fields), "me")
    assert standing is not None
    assert (standing.words, standing.short) == (words, short)


@pytest.mark.parametrize("fields", [{"merge_state": "unknown"}, {"blocked_by": None}, {"state": "merged"}])
def test_a_row_says_nothing_that_is_not_known(fields: dict[str, Any]) -> None:
    assert standing_of(listed(**fields), "me") is None


def test_a_signed_merge_and_counts_stand_beside_what_is_waited_for() -> None:
    proposal = listed(**NEEDS_REVIEW, checks=Counts(2, 1, 1), auto_merge=Signed("squash"))
    assert [words for words, _ in waits_for(proposal, "me")] == [
        "✗ 1 check failed",
        "◷ then merges",
    ]
    assert [words for words, _ in waits_for(proposal, "me", short=True)] == ["✗ 1 failed", "◷"]
    assert counts_beside(proposal, "me") == []  # the failed check is said already
    approved = listed(checks=Counts(2, 2), reviewers=(asked("bob", "approved"),))
    assert [words for words, _ in counts_beside(approved, "me")] == ["✓ 2/2", "✓ 1 approval"]


def of_inbox(reason: Any, event: str = "", **subject: Any) -> InboxItem:
    values = {"kind": "proposal", "number": 1, "title": "Return three", "state": "open", **subject}
    repo = InboxRepo("r", "ana/calc")
    return InboxItem("r.1", repo, InboxSubject(**values), reason, True, False, "2026-01-01T00:00:00Z", event)


@pytest.mark.parametrize("space", [Space(), Space(narrow=True), Space(two_lines=True)])
def test_the_inbox_says_how_a_proposal_stands_now(space: Space) -> None:
    """A merge that was dropped is not called ready, and a check that passes by now does not fail."""

    def said(item: InboxItem, proposal: ListedProposal | None = None) -> str:
        return text_of(row(item, 1e9, space, proposal=proposal)._replace(text=""))

    dropped = of_inbox("ready_to_merge", "proposal.auto_drop")
    assert "◷ dropped" in said(dropped) and "ready" not in said(dropped)
    assert section_of(dropped, listed(**NEEDS_REVIEW)) == "Needs me"
    signed = listed(**NEEDS_REVIEW, auto_merge=Signed("squash"))
    assert "dropped" not in said(dropped, signed).replace("was dropped", "")
    assert section_of(dropped, signed) == "Mine"
    failed = of_inbox("check_failed")
    assert "✗ failed" in said(failed)
    assert "✓ ready" in said(failed, listed()) and "failed" not in said(failed, listed())
    assert (section_of(failed), section_of(failed, listed())) == ("Needs me", "Mine")
    assert "✗ changes" in said(of_inbox("author"), listed(reviewers=(asked("bob", "changes_requested"),)))
    watched = of_inbox("participant")
    again = listed(reviewers=(Verdict(Person("bob"), "changes_requested", stale=True),))
    assert section_of(watched, again, "bob") == "Needs me"
    assert section_of(watched, again, "cyd") == "Watching"
    assert "● merged" in said(of_inbox("review_requested", state="closed", merged=True))
    assert "● merged" in said(of_inbox("author", state="closed", merged=True))
    assert "⊘ closed" in said(of_inbox("author", state="closed"))
