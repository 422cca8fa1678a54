"""Reviews: who says what about which version, what stands, and what that blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from sqlalchemy import delete

from relay.db.schema import tables
from relay.domain.attention import follow
from tests.relay.conftest import Account, Relay
from tests.relay.histories import ok
from tests.relay.proposing import LONG, Proposing, code, lines, proposing


@pytest.fixture
def world(relay: Relay, account: Callable[..., Account], client: Callable[..., httpx.Client]) -> Proposing:
    """A proposal of the owner's, #1."""
    made = proposing(relay, account, client)
    made.propose()
    return made


def say(world: Proposing, http: httpx.Client, verdict: str, body: str = "", **more: Any) -> httpx.Response:
    return http.post(f"{world.url}/1/reviews", json={"verdict": verdict, "body": body, **more})


def test_a_verdict_stands_until_the_next(world: Proposing) -> None:
    who, writer = world.member("write")
    ok(say(world, writer, "request_changes", "a test is missing"))
    found = world.get()
    assert (found["merge_state"], found["blocked_by"]) == ("blocked", ["changes_requested"])
    (one,) = found["reviewers"]
    assert (one["who"]["id"], one["state"], one["stale"]) == (who.id, "changes_requested", False)
    made = ok(say(world, writer, "approve"))
    found = world.get()
    assert (found["merge_state"], found["blocked_by"]) == ("clean", [])
    assert [review["id"] for review in found["reviews"]] == [made["id"]]
    ok(say(world, writer, "comment", "well done"))
    assert world.get()["reviewers"][0]["state"] == "approved"
    all_of_them = ok(world.http.get(f"{world.url}/1/reviews"))["items"]
    assert [review["verdict"] for review in all_of_them] == ["request_changes", "approve", "comment"]


def test_nobody_judges_a_proposal_of_their_own(world: Proposing) -> None:
    for verdict in ("approve", "request_changes"):
        assert code(say(world, world.http, verdict, "text")) == (403, "own_proposal")
    ok(say(world, world.http, "comment", "text"))


def test_a_draft_is_not_approved(world: Proposing) -> None:
    _, writer = world.member("write")
    ok(world.patch(draft=True))
    assert code(say(world, writer, "approve")) == (409, "draft")
    ok(say(world, writer, "request_changes", "not yet"))
    ok(world.patch(draft=False))
    ok(say(world, writer, "approve"))


def test_only_an_open_one_is_judged(world: Proposing) -> None:
    _, writer = world.member("write")
    ok(world.patch(state="closed"))
    assert code(say(world, writer, "approve")) == (409, "conflict")
    ok(say(world, writer, "comment", "a pity"))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"verdict": "maybe"},
        {"verdict": "request_changes"},
        {"verdict": "comment", "body": " \n"},
        {"verdict": "approve", "body": "nul \0"},
        {"verdict": "approve", "body": "ü" * 40_000},
        {"verdict": "approve", "seal_id": 1},
    ],
)
def test_a_wrong_review_is_refused(world: Proposing, body: dict[str, Any]) -> None:
    _, writer = world.member("write")
    assert code(writer.post(f"{world.url}/1/reviews", json=body))[0] == 422
    assert ok(world.http.get(f"{world.url}/1/reviews"))["items"] == []


def test_a_review_of_an_older_head_is_refused(world: Proposing) -> None:
    _, writer = world.member("write")
    old = world.get()["head_seal"]
    (new,) = world.repo.seal({"a.txt": b"other\n"}, branch="topic")
    answer = say(world, writer, "approve", seal_id=old)
    assert (code(answer), answer.json()["head"]) == ((409, "head_moved"), new)
    assert ok(say(world, writer, "approve", seal_id=new))["version"] == 2


def test_a_verdict_goes_stale_with_the_change_and_survives_a_rebase(world: Proposing) -> None:
    _, writer = world.member("write")
    ok(say(world, writer, "approve"))
    world.repo.seal({"a.txt": lines("first", *LONG)})
    world.branch("again", lines("first", *LONG, "more"))
    moved = {"head": world.repo.head("again"), "expected_head": world.repo.head("topic")}
    ok(world.http.patch(f"{world.repo.url}/refs/branch/topic", json=moved))
    found = world.get()
    assert (found["version"], found["reviews"][0]["stale"]) == (2, False)
    world.repo.seal({"a.txt": lines("first", *LONG, "more", "and more")}, branch="topic")
    found = world.get()
    assert (found["version"], found["reviews"][0]["stale"]) == (3, True)
    assert found["reviewers"][0]["stale"] is True


@pytest.mark.parametrize("verdict", ["approve", "request_changes", "comment"])
def test_a_review_takes_the_request_for_it_out_of_the_inbox(world: Proposing, verdict: str) -> None:
    who, writer = world.member("write")

    def reasons() -> list[str]:
        while world.relay.run(world.relay.node.followers.handle_next(follow.NAME)):
            pass
        return [row["reason"] for row in ok(writer.get("/api/v1/inbox"))["items"]]

    ok(world.patch(add_reviewers=[who.handle]))
    assert reasons() == ["review_requested"]
    ok(say(world, writer, verdict, "text"))
    assert reasons() == []
    ok(world.patch(add_reviewers=[who.handle]))
    assert reasons() == ["review_requested"]


def test_reviewers_are_asked_and_asked_again(world: Proposing) -> None:
    who, writer = world.member("triage")
    asked = ok(world.patch(add_reviewers=[who.handle]))
    assert [one["state"] for one in asked["reviewers"]] == ["requested"]
    ok(say(world, writer, "approve"))
    assert world.get()["reviewers"][0]["state"] == "approved"
    assert ok(world.patch(add_reviewers=[who.handle]))["reviewers"][0]["state"] == "requested"
    assert ok(world.patch(remove_reviewers=[who.handle]))["reviewers"][0]["state"] == "approved"
    other, _ = world.member("read")
    ok(world.patch(add_reviewers=[other.handle]))
    assert len(ok(world.patch(remove_reviewers=[other.handle]))["reviewers"]) == 1
    kinds = world.timeline()
    asked_again = [
        (one["kind"], one["person"]["handle"])
        for one in ok(world.http.get(f"{world.repo.url}/issues/1/timeline"))["items"]
        if one["kind"] in ("review.request", "review.unrequest")
    ]
    assert asked_again[-1] == ("review.unrequest", other.handle)  # who is no reviewer any more
    assert asked_again[0] == ("review.request", who.handle)
    assert kinds.count("review.request") == 3
    assert kinds.count("review.unrequest") == 2
    for handle in ("nobody-here", world.who.handle):
        assert code(world.patch(add_reviewers=[handle])) == (422, "invalid")


def test_only_those_who_may_write_now_block(world: Proposing) -> None:
    world.publish()
    stranger = world.client(world.account())
    made = ok(say(world, stranger, "request_changes", "no"))
    assert made["counts"] is False
    found = world.get()
    assert (found["reviewers"], found["blocked_by"]) == ([], [])
    who, writer = world.member("write")
    ok(say(world, writer, "request_changes", "no"))
    assert world.get()["blocked_by"] == ["changes_requested"]
    collaborator = tables["collaborator"]
    world.run(delete(collaborator).where(collaborator.c.account_id == who.id))
    assert world.get()["blocked_by"] == []


def test_a_verdict_is_dismissed_by_a_moderator(world: Proposing) -> None:
    _, writer = world.member("write")
    _, admin = world.member("admin")
    made = ok(say(world, writer, "request_changes", "no"))
    one = f"{world.url}/1/reviews/{made['id']}"
    assert code(writer.patch(one, json={"state": "dismissed"})) == (403, "forbidden")
    first = ok(admin.patch(one, json={"state": "dismissed"}))
    assert first["dismissed_at"]
    assert ok(admin.patch(one, json={"state": "dismissed"})) == first
    found = world.get()
    assert (found["reviewers"], found["blocked_by"]) == ([], [])
    said = ok(say(world, writer, "comment", "well"))
    missing = f"{world.url}/1/reviews/{'0' * 32}"
    assert admin.patch(missing, json={"state": "dismissed"}).status_code == 404
    comment = f"{world.url}/1/reviews/{said['id']}"
    assert code(admin.patch(comment, json={"state": "dismissed"})) == (409, "conflict")


def test_reviewers_and_reviews_have_a_cap(world: Proposing, monkeypatch: pytest.MonkeyPatch) -> None:
    from localstore.core.model import limits

    monkeypatch.setattr(limits, "REVIEWERS", 1)
    one, _ = world.member("read")
    two, writer = world.member("write")
    ok(world.patch(add_reviewers=[one.handle]))
    assert code(world.patch(add_reviewers=[two.handle])) == (409, "conflict")
    assert code(say(world, writer, "approve")) == (409, "conflict")
    assert ok(world.http.get(f"{world.url}/1/reviews"))["items"] == []
    monkeypatch.setattr(limits, "REVIEWS", 1)
    ok(say(world, writer, "comment", "text"))
    assert code(say(world, writer, "comment", "text")) == (409, "conflict")


def test_a_protected_base_counts_approvals_of_the_change_as_it_is(world: Proposing) -> None:
    _, writer = world.member("write")
    ok(
        world.http.put(
            f"{world.repo.url}/protections/main", json={"require_review": True, "fresh_approvals": True}
        )
    )
    assert world.get()["blocked_by"] == ["review_required"]
    ok(say(world, writer, "approve"))
    assert (world.get()["merge_state"], world.get()["blocked_by"]) == ("clean", [])
    world.repo.seal({"a.txt": b"another change\n"}, branch="topic")
    assert world.get()["blocked_by"] == ["review_required"]
    ok(say(world, writer, "request_changes", "no"))
    assert world.get()["blocked_by"] == ["changes_requested", "review_required"]
    ok(say(world, writer, "approve"))
    assert world.get()["blocked_by"] == []
