"""Proposals: numbers, versions, and what happens when their branches move or go."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import msgspec
import pytest
from sqlalchemy import update

from localstore.core.model import limits
from localstore.core.model.proposal import Proposal
from relay.db.schema import tables
from tests.depth import rounds
from tests.relay.conftest import Account, Relay
from tests.relay.histories import ok
from tests.relay.proposing import LONG, Proposing, code, lines, proposing


@pytest.fixture
def world(relay: Relay, account: Callable[..., Account], client: Callable[..., httpx.Client]) -> Proposing:
    return proposing(relay, account, client)


# --- numbers and creation


def test_issues_and_proposals_share_one_sequence_under_load(
    world: Proposing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "POSTS_MEMBER", 1000)
    each = rounds(30, 100)
    (seal,) = world.branch("start", b"another\n")
    for n in range(each):
        world.repo.branch(f"topic{n}", seal)

    def make(n: int) -> int:
        if n % 2:
            return int(ok(world.http.post(f"{world.repo.url}/issues", json={"title": f"t{n}"}))["number"])
        return int(world.propose(f"topic{n // 2}", title=f"t{n}")["number"])

    with ThreadPoolExecutor(20) as threads:
        assert sorted(threads.map(make, range(2 * each))) == list(range(1, 2 * each + 1))
    assert len(world.listed(limit=100)) == each


def test_what_a_proposal_is(world: Proposing) -> None:
    made = world.propose(title="More", body="It closes #2, fixes  #3 and resolves #99.", draft=True)
    for title in ("two", "three"):
        ok(world.http.post(f"{world.repo.url}/issues", json={"title": title}))
    found = world.get()
    assert (found["number"], found["state"], found["draft"], found["version"]) == (1, "open", True, 1)
    msgspec.convert(found, Proposal)  # as the client reads it
    assert (found["head"], found["base"]) == ("topic", "main")
    assert (found["head_seal"], found["base_seal"]) == (world.repo.head("topic"), world.first)
    assert found["closes"] == [2, 3]
    assert found["head_repo"]["id"] == world.repo.id
    assert (made["merge_state"], found["merge_state"]) == ("draft", "draft")
    assert ok(world.patch(draft=False))["merge_state"] == "clean"
    assert ok(world.patch(body="nothing"))["closes"] == []
    assert world.timeline() == ["proposal.create", "proposal.ready", "proposal.edit"]


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({"head": "main"}, "/base"),
        ({"head": "none"}, "/head"),
        ({"base": "none"}, "/base"),
        ({"head": "x" * 300}, "/head"),
        ({"title": " "}, "/title"),
        ({"title": "two\nlines"}, "/title"),
        ({"title": "\x1b[2J"}, "/title"),
        ({"body": "nul \0"}, "/body"),
        ({"body": "ü" * 40_000}, "/body"),
        ({"reviewers": ["nobody-here"]}, "/reviewers"),
        ({"reviewers": ["@me"]}, "/reviewers"),
        ({"assignees": ["nobody-here"]}, "/assignees"),
    ],
)
def test_a_wrong_wish_is_refused_and_takes_no_number(
    world: Proposing, asked: dict[str, Any], pointer: str
) -> None:
    answer = world.http.post(world.url, json={"head": "topic", "base": "main", "title": "t", **asked})
    assert code(answer) == (422, "invalid")
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert world.propose()["number"] == 1


def test_texts_of_strangers_stay_as_they_are(world: Proposing) -> None:
    text = "\u202eevil <script>alert(1)</script> [x](javascript:alert(1)) @a\x07"
    made = world.propose(title="\u202e title", body=text)
    assert (made["title"], made["body"]) == ("\u202e title", text)


def test_a_branch_is_proposed_once_and_only_with_news(world: Proposing) -> None:
    world.repo.branch("same", "main")
    asked = {"head": "same", "base": "main", "title": "t"}
    assert code(world.http.post(world.url, json=asked)) == (409, "nothing_proposed")
    world.propose()
    again = world.http.post(world.url, json={**asked, "head": "topic"})
    assert (code(again), again.json()["number"]) == ((409, "proposal_exists"), 1)
    ok(world.patch(state="closed"))
    assert world.propose()["number"] == 2
    assert code(world.patch(1, state="open")) == (409, "proposal_exists")


# --- versions


def test_each_head_is_a_version_and_the_change_has_an_identity(world: Proposing) -> None:
    world.propose()
    world.repo.seal({"a.txt": lines(*LONG, "more", "still more")}, branch="topic")
    one, two = world.versions()
    assert [one["n"], two["n"]] == [1, 2]
    assert two["head"] == world.repo.head("topic")
    assert {one["merge_base"], two["merge_base"]} == {world.first}
    assert one["change_id"] != two["change_id"]
    assert "proposal.push" in world.timeline()
    assert world.get()["head_seal"] == two["head"]


def test_a_rebased_change_keeps_its_id(world: Proposing) -> None:
    world.propose()
    (moved,) = world.repo.seal({"a.txt": lines("first", *LONG), "b.txt": b"1\n"})
    assert world.get()["merge_state"] == "behind"
    world.branch("again", lines("first", *LONG, "more"))
    head = world.repo.head("again")
    was = world.repo.head("topic")
    ok(world.http.patch(f"{world.repo.url}/refs/branch/topic", json={"head": head, "expected_head": was}))
    one, two = world.versions()
    assert (one["base"], two["base"]) == (world.first, moved)
    assert (one["merge_base"], two["merge_base"]) == (world.first, moved)
    assert one["change_id"] == two["change_id"]
    assert world.get()["merge_state"] == "clean"


def test_a_proposal_is_a_read_only_ref(world: Proposing) -> None:
    world.propose()
    head = world.repo.head("topic")
    compare = f"{world.repo.url}/compare"
    assert ok(world.http.get(compare, params={"base": "main", "head": "pr:1"}))["head"] == head
    assert ok(world.http.get(f"{world.repo.url}/commits", params={"ref": "pr:1"}))["items"][0]["id"] == head
    started = {"type": "branch", "name": "mine", "head": "pr:1"}
    assert ok(world.http.post(f"{world.repo.url}/refs", json=started))["head"] == head
    for name in ("pr:2", "pr:0", "pr:01", "pr:" + "9" * 18, "pr:x"):
        assert code(world.http.get(compare, params={"base": "main", "head": name})) == (404, "not_found")
    made = world.http.post(f"{world.repo.url}/refs", json={**started, "name": "pr:3"})
    assert code(made) == (422, "invalid")


# --- branches that go


def test_a_deleted_head_closes_and_the_same_head_opens_again(world: Proposing) -> None:
    world.propose()
    head = world.repo.head("topic")
    ok(world.http.get(f"{world.url}/1"))
    assert world.http.delete(f"{world.repo.url}/refs/branch/topic").status_code == 204
    assert world.get()["state"] == "closed"
    assert world.versions()[0]["head"] == head
    refused = world.patch(state="open")
    assert code(refused) == (409, "proposal_branch_gone")
    assert f"svc repo branch topic --from {head}" in refused.json()["detail"]  # type: ignore[index]
    world.repo.branch("topic", world.first)
    assert code(world.patch(state="open")) == (409, "proposal_branch_gone")  # another branch of that name
    assert world.http.delete(f"{world.repo.url}/refs/branch/topic").status_code == 204
    world.repo.branch("topic", head or "")
    assert ok(world.patch(state="open"))["state"] == "open"
    world.repo.seal({"a.txt": b"new\n"}, branch="topic")
    assert len(world.versions()) == 2


def test_what_moved_while_closed_is_a_version_when_it_opens(world: Proposing) -> None:
    world.propose()
    ok(world.patch(state="closed"))
    world.repo.seal({"a.txt": b"1\n"}, {"a.txt": b"2\n"}, branch="topic")
    assert len(world.versions()) == 1
    found = ok(world.patch(state="open"))
    assert (found["version"], found["head_seal"]) == (2, world.repo.head("topic"))


def test_a_deleted_base_closes(world: Proposing) -> None:
    world.branch("lower", b"lower\n")
    world.branch("upper", b"upper\n", start="lower")
    world.propose("lower")
    stacked = world.propose("upper", base="lower")
    assert stacked["depends_on"] == [1]
    assert world.http.delete(f"{world.repo.url}/refs/branch/lower").status_code == 204
    assert (world.get(1)["state"], world.get(2)["state"]) == ("closed", "closed")
    assert code(world.patch(2, state="open")) == (409, "proposal_branch_gone")
    assert ok(world.patch(2, base="main"))["base"] == "main"
    assert ok(world.patch(2, state="open"))["state"] == "open"


def test_what_is_based_on_a_merged_branch_goes_to_its_base(world: Proposing) -> None:
    world.branch("lower", b"lower\n")
    world.branch("upper", b"upper\n", start="lower")
    world.propose("lower")
    world.propose("upper", base="lower")
    for name in ("proposal", "subject"):
        table = tables[name]
        world.run(
            update(table).where(table.c.repo_id == world.repo.id, table.c.number == 1).values(state="merged")
        )
    assert world.http.delete(f"{world.repo.url}/refs/branch/lower").status_code == 204
    found = world.get(2)
    assert (found["state"], found["base"], found["version"]) == ("open", "main", 2)
    assert code(world.patch(1, state="open")) == (409, "proposal_merged")


def test_of_many_who_propose_the_same_one_does(world: Proposing) -> None:
    asked = {"head": "topic", "base": "main", "title": "t"}
    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(lambda _: world.http.post(world.url, json=asked).status_code, range(10)))
    assert sorted(answers) == [201, *[409] * 9]
    assert world.listed() == [1]


def test_versions_stay_whole_while_pushes_and_closing_meet(world: Proposing) -> None:
    """In either order: an open proposal has the head of its branch."""
    world.propose()

    def push(n: int) -> None:
        world.repo.seal({"a.txt": f"{n}\n".encode()}, branch="topic")

    def flip(n: int) -> None:
        ok(world.patch(state="closed" if n % 2 else "open"))

    with ThreadPoolExecutor(2) as threads:
        for n in range(12):
            done = [threads.submit(push, n), threads.submit(flip, n)]
            for one in done:
                one.result()
            found = world.get()
            if found["state"] == "open":
                assert found["head_seal"] == world.repo.head("topic")
            versions = world.versions()
            assert [one["n"] for one in versions] == list(range(1, found["version"] + 1))
            assert versions[-1]["head"] == found["head_seal"]
