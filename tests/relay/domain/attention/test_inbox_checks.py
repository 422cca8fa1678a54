"""The reason check_failed: who hears of a failed check of a proposal, and how often."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from relay.domain.attention import follow
from tests.relay.histories import ok
from tests.relay.proposing import LONG, Proposing, lines, proposing


@pytest.fixture
def world(relay: Any, account: Any, client: Any) -> Proposing:
    return proposing(relay, account, client)


def inbox(world: Proposing, http: httpx.Client) -> list[tuple[str, int | None]]:
    while world.relay.run(world.relay.node.followers.handle_next(follow.NAME)):
        pass
    items = ok(http.get("/api/v1/inbox"))["items"]
    return [(one["reason"], one["subject"]["number"]) for one in items]


def done(http: httpx.Client) -> None:
    ok(http.patch("/api/v1/inbox", json={"state": "done"}))


def reports(world: Proposing, conclusion: str, name: str = "ci/test", seal: str | None = None) -> None:
    run = {"name": name, "seal_id": seal or world.repo.head("topic"), "conclusion": conclusion}
    ok(world.repo.http.post(f"{world.repo.url}/runs", json={**run, "status": "completed"}))


def test_the_author_hears_once_for_each_head_and_check(world: Proposing) -> None:
    _, author = world.member("write")
    world.propose(http=author)
    for fine in ("success", "neutral", "cancelled", "skipped"):
        reports(world, fine, name=fine)
    assert inbox(world, author) == []
    reports(world, "failure")
    assert inbox(world, author) == [("check_failed", 1)]
    done(author)
    reports(world, "failure")
    assert inbox(world, author) == []
    reports(world, "success")
    reports(world, "timed_out")
    assert inbox(world, author) == []
    reports(world, "timed_out", name="lint")
    assert inbox(world, author) == [("check_failed", 1)]
    done(author)
    world.repo.seal({"a.txt": lines(*LONG, "still")}, branch="topic")
    assert inbox(world, author) == []
    reports(world, "failure")
    assert inbox(world, author) == [("check_failed", 1)]


def test_an_update_that_fails_a_run_counts(world: Proposing) -> None:
    _, author = world.member("write")
    world.propose(http=author)
    body = {"name": "ci/test", "seal_id": world.repo.head("topic")}
    run = ok(world.repo.http.post(f"{world.repo.url}/runs", json=body))
    assert inbox(world, author) == []
    ok(world.repo.http.patch(f"{world.repo.url}/runs/{run['id']}", json={"conclusion": "failure"}))
    assert inbox(world, author) == [("check_failed", 1)]


def test_what_nobody_proposes_any_more_fails_in_silence(world: Proposing) -> None:
    _, author = world.member("write")
    world.propose(http=author)
    old = world.repo.head("topic")
    world.repo.seal({"a.txt": lines(*LONG, "still")}, branch="topic")
    reports(world, "failure", seal=old)
    assert inbox(world, author) == []
    ok(world.patch(state="closed"))
    reports(world, "failure")
    assert inbox(world, author) == [("author", 1)]  # closed


def test_who_reported_it_knows_already(world: Proposing) -> None:
    world.propose()
    reports(world, "failure")
    assert ("check_failed", 1) not in inbox(world, world.repo.http)
