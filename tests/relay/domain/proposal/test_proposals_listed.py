"""Proposals: who may what, what talk hangs on them, and lists of them."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from sqlalchemy import update

from localstore.core.model import limits
from relay.db.schema import tables
from tests.relay.conftest import Account, Relay
from tests.relay.histories import compared, ok
from tests.relay.proposing import Proposing, code, proposing
from tests.relay.watching.statements import statements_of_requests


@pytest.fixture
def world(relay: Relay, account: Callable[..., Account], client: Callable[..., httpx.Client]) -> Proposing:
    return proposing(relay, account, client)


# --- rights


def test_who_may_what(world: Proposing) -> None:
    world.publish()
    stranger = world.client(world.account())
    made = world.propose(http=stranger)
    assert made["author"]["id"] != world.who.id
    ok(world.patch(http=stranger, title="mine", draft=True, state="closed"))
    other = world.client(world.account())
    _, triage = world.member("triage")
    _, writer = world.member("write")
    _, reader = world.member("read")
    for who in (other, reader):
        for body in ({"title": "x"}, {"state": "open"}, {"draft": False}, {"add_labels": ["x"]}):
            assert code(world.patch(http=who, **body)) == (403, "forbidden"), body
    assert code(world.patch(http=stranger, add_assignees=["@me"])) == (403, "forbidden")
    assert code(world.patch(http=triage, title="x")) == (403, "forbidden")
    assert code(world.patch(http=triage, draft=False)) == (403, "forbidden")
    ok(world.patch(http=triage, state="open"))
    ok(world.patch(http=writer, draft=False))
    assert world.client().get(f"{world.url}/1").status_code == 200


def test_hidden_and_missing_are_the_same(world: Proposing) -> None:
    world.propose()
    stranger = world.client(world.account())
    nowhere = "/api/v1/repos/0190a1b2c3d47e8f9a0b/proposals"
    for method, path, body in (
        ("GET", "", None),
        ("GET", "/1", None),
        ("GET", "/1/versions", None),
        ("GET", "/1/reviews", None),
        ("POST", "", {"head": "topic", "base": "main", "title": "t"}),
        ("PATCH", "/1", {"state": "closed"}),
        ("POST", "/1/reviews", {"verdict": "approve"}),
    ):
        hidden = stranger.request(method, world.url + path, json=body)
        missing = stranger.request(method, nowhere + path, json=body)
        assert hidden.status_code == 404
        assert compared(hidden)[1] == compared(missing)[1], (method, path)


def test_an_issue_is_no_proposal_and_the_reverse(world: Proposing) -> None:
    ok(world.http.post(f"{world.repo.url}/issues", json={"title": "t"}))
    world.propose()
    assert world.http.get(f"{world.url}/1").status_code == 404
    assert world.http.get(f"{world.repo.url}/issues/2").status_code == 404
    assert world.listed() == [2]
    assert [one["number"] for one in ok(world.http.get(f"{world.repo.url}/issues"))["items"]] == [1]


def test_comments_reactions_and_labels(world: Proposing) -> None:
    world.propose()
    talk = f"{world.repo.url}/issues/1"
    made = ok(world.http.post(f"{talk}/comments", json={"body": "a word"}))
    ok(world.http.put(f"{talk}/reactions/heart"))
    ok(world.http.put(f"{talk}/comments/{made['id']}/reactions/eyes"))
    labelled = ok(world.http.put(f"{world.url}/1/labels/bug?create=1"))
    assert [one["name"] for one in labelled["labels"]] == ["bug"]
    found = world.get()
    assert (found["comments"], found["reactions"]["heart"]) == (1, 1)
    assert world.listed(label="BUG") == [1]
    assert ok(world.http.delete(f"{world.url}/1/labels/bug"))["labels"] == []
    kinds = ["proposal.create", "comment.create", "reaction.add", "reaction.add"]
    assert world.timeline() == [*kinds, "proposal.label", "proposal.unlabel"]


def test_filters(world: Proposing) -> None:
    world.branch("other", b"other\n")
    world.branch("third", b"third\n")
    who, writer = world.member("write")
    world.propose(title="Add ONE thing", reviewers=[who.handle])
    world.propose("other", http=writer, draft=True, title="50% done")
    world.propose("third", base="other")
    ok(world.patch(3, state="closed"))
    for query, expected in (
        ({}, [2, 1]),
        ({"state": "closed"}, [3]),
        ({"state": "merged"}, []),
        ({"state": "all"}, [3, 2, 1]),
        ({"author": "@me"}, [1]),
        ({"author": who.handle}, [2]),
        ({"author": "nobody-here"}, []),
        ({"reviewer": who.handle}, [1]),
        ({"draft": "true"}, [2]),
        ({"draft": "false"}, [1]),
        ({"head": "other"}, [2]),
        ({"base": "other", "state": "all"}, [3]),
        ({"search": "one THING"}, [1]),
        ({"search": "%"}, []),
        ({"involves": "@me", "state": "all"}, [3, 1]),
        ({"state": "all", "limit": 2}, [3, 2]),
    ):
        assert world.listed(**query) == expected, query
    assert world.listed(writer, reviewer="@me") == [1]


def test_a_filter_finds_all_states_in_their_order(world: Proposing) -> None:
    for n in range(1, 8):
        world.branch(f"b{n}", b"%d\n" % n)
        world.propose(f"b{n}", draft=n != 4, title=f"number {n}")
        if n % 3 == 0:
            ok(world.patch(n, state="closed"))
    for query, expected in (
        ({"draft": "true"}, [7, 6, 5, 3, 2, 1]),
        ({"base": "main"}, [7, 6, 5, 4, 3, 2, 1]),
        ({"involves": "@me", "draft": "true"}, [7, 6, 5, 3, 2, 1]),
        ({"search": "number", "draft": "true"}, [7, 6, 5, 3, 2, 1]),
        ({"head": "b3"}, [3]),
    ):
        assert world.listed(**query, state="all") == expected, query
        paged: list[int] = []
        cursor: dict[str, str] = {}
        while True:
            page = ok(world.repo.http.get(world.url, params={**query, "state": "all", "limit": 2, **cursor}))
            paged += [one["number"] for one in page["items"]]
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert paged == expected, query


def test_a_list_is_a_fixed_number_of_statements(world: Proposing) -> None:
    world.propose()
    with statements_of_requests(world.relay) as one:
        world.listed(state="all")
    for n in range(8):
        world.branch(f"b{n}", f"{n}\n".encode())
        world.propose(f"b{n}", body="closes #1")
    with statements_of_requests(world.relay) as nine:
        world.listed(state="all")
    assert one == nine
    assert 4 <= len(one) <= 18


def test_an_archived_repository_takes_none(world: Proposing) -> None:
    world.propose()
    repo = tables["repo"]
    world.run(update(repo).where(repo.c.id == world.repo.id).values(state="archived"))
    answer = world.http.post(world.url, json={"head": "topic", "base": "main", "title": "t"})
    assert code(answer)[0] == 409
    assert code(world.patch(state="closed"))[0] == 409
    assert world.get()["state"] == "open"


@pytest.mark.usefixtures("rate_limits")
def test_strangers_post_so_much_in_a_minute(world: Proposing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "POSTS_STRANGER", 2)
    world.publish()
    stranger = world.client(world.account())
    world.propose(http=stranger)
    say = {"verdict": "comment", "body": "a word"}
    ok(stranger.post(f"{world.url}/1/reviews", json=say))
    assert code(stranger.post(f"{world.url}/1/reviews", json=say)) == (429, "rate_limited")
