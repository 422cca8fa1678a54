"""What happened to a proposal, in words."""

from __future__ import annotations

from typing import Any

from localstore.core.model.base import Actor
from localstore.core.model.proposal import TimelineItem
from svc.flows.happened import list_happened

BOB = Actor(id="b", handle="bob", kind="person")


def said(kind: str, actor: Actor | None = BOB, **data: Any) -> str:
    """What is said of one event, as `@who sign words`; "" if it is not listed."""
    happened = list_happened([TimelineItem(1, kind, actor, "2026-01-01T00:00:00Z", data)])
    return " ".join(f"{f'@{one.who} ' if one.who else ''}{one.sign} {one.words}" for one in happened)


def test_each_event_says_who_did_what() -> None:
    seal = "dcc544ead76e73511e9c"
    assert said("proposal.merge", seal=seal, strategy="fast_forward") == (
        "@bob ● merged it as dcc544ea by fast-forward"
    )
    assert said("proposal.close") == "@bob ⊘ closed it"
    assert said("proposal.close", reason="head_deleted") == "@bob ⊘ closed it: its branch was deleted"
    assert said("proposal.reopen") == "@bob ○ opened it again"
    assert said("proposal.push", head=seal, version=3) == "@bob ↑ pushed dcc544ea, version 3"
    assert said("proposal.auto_merge", strategy="squash") == "@bob ◷ signed its merge in advance by squash"
    assert said("proposal.auto_drop", None, reason="base_moved") == (
        "◷ the signed merge was dropped: its base has moved on"
    )
    assert said("proposal.auto_drop", None, reason="a_new_one").endswith("dropped: a new one")
    assert said("review.request", account_id="x") == "@bob ◇ asked somebody for a review"
    assert said("review.unrequest", account_id="b") == "@bob ◇ no longer asks @bob for a review"
    assert said("thread.resolve", thread="t") == "@bob ✓ resolved a thread"
    assert said("thread.create", thread="t") == "@bob ◇ commented on a line"
    assert said("issue.close", proposal=4) == "@bob ✓ closed it by merging #4"


def test_what_has_a_text_of_its_own_and_what_is_new_is_not_listed() -> None:
    for kind in ("comment.create", "review.create", "proposal.create", "proposal.dance"):
        assert said(kind) == ""
