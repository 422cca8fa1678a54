"""What happened to a proposal, in words."""

from __future__ import annotations

from typing import Any

from localstore.core.model.base import Actor
from localstore.core.model.issue import Comment, Reactions
from localstore.core.model.proposal import TimelineItem
from localstore.core.model.thread import Thread
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
    for noun in ("issue", "proposal"):
        assert said(f"{noun}.assign", account_id="b") == "@bob → assigned @bob"
        assert said(f"{noun}.unassign", account_id="x") == "@bob → unassigned somebody"
        assert said(f"{noun}.label", name="bug") == "@bob ● added the label bug"
        assert said(f"{noun}.unlabel", name="bug") == "@bob ● removed the label bug"
    assert said("issue.close", proposal=4) == "@bob ✓ closed it by merging #4"


def test_the_account_that_an_event_is_about_has_its_name() -> None:
    carol = Actor(id="c", handle="carol", kind="user")
    event = TimelineItem(
        id=1,
        kind="issue.unassign",
        actor=BOB,
        at="2026-01-01T00:00:00Z",
        data={"account_id": "c"},
        person=carol,
    )
    assert [one.words for one in list_happened([event])] == ["unassigned @carol"]


def test_what_has_a_text_of_its_own_and_what_is_new_is_not_listed() -> None:
    for kind in ("comment.create", "review.create", "proposal.create", "proposal.dance"):
        assert said(kind) == ""


def test_labels_and_people_of_one_moment_are_one_line() -> None:
    carol = Actor(id="c", handle="carol", kind="user")

    def item(id: int, kind: str, second: int, actor: Actor = BOB, **data: Any) -> TimelineItem:
        at = f"2026-01-01T00:{second // 60:02}:{second % 60:02}.5Z"
        return TimelineItem(id=id, kind=kind, actor=actor, at=at, data=data)

    timeline = [
        item(1, "issue.create", 0),
        item(2, "issue.label", 0, name="bug"),
        item(3, "issue.label", 1, name="docs"),
        item(4, "issue.assign", 1, account_id="b"),
        item(5, "issue.assign", 2, account_id="c"),
        item(6, "issue.label", 3, carol, name="perf"),
        item(7, "issue.label", 80, carol, name="later"),
    ]
    assert [(event.id, event.who, event.words) for event in list_happened(timeline)] == [
        (2, "bob", "added the labels bug, docs"),
        (4, "bob", "assigned @bob, @carol"),
        (6, "carol", "added the label perf"),
        (7, "carol", "added the label later"),
    ]


def test_an_event_about_a_thread_has_its_comment() -> None:
    def comment(id: str, body: str) -> Comment:
        return Comment(id=id, author=BOB, body=body, reactions=Reactions(), created_at="", updated_at="")

    thread = Thread(
        id="t",
        author=BOB,
        path="a.py",
        side="new",
        start=3,
        end=4,
        seal_id="s",
        state="open",
        comments=[comment("1", "Why?"), comment("2", "So.")],
        suggestion=None,
        place=None,
        draft=False,
        created_at="",
        updated_at="",
    )
    events = (
        ("thread.create", "1"),
        ("thread.comment", "2"),
        ("thread.comment", "3"),
        ("thread.resolve", ""),
    )
    timeline = [
        TimelineItem(at, kind, BOB, "2026-01-01T00:00:00Z", {"thread": "t", "id": id})
        for at, (kind, id) in enumerate(events)
    ]
    happened = list_happened(timeline, None, [thread])
    assert [event.comment and event.comment.body for event in happened] == ["Why?", "So.", None, None]
    assert (happened[0].path, happened[0].words) == ("a.py", "commented on a.py:3-4")
