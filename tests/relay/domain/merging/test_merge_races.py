"""A merge and something else at once, in either order: one of them is first, and nothing is half done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import httpx
import pytest
from blake3 import blake3

from localstore.core.encoding import b64u, unb64u
from relay.caller import View
from tests.patience import PATIENCE
from tests.relay import merges
from tests.relay.conftest import Relay
from tests.relay.histories import Repository, _delta, create, ok
from tests.relay.merges import PAGE, apart, files, prepare, propose, put
from tests.relay.rights.waiting import Write, held
from tests.relay.world import name

OURS = {"page": put(1, b"ONE")}
THEIRS = {"page": put(9, b"NINE")}
BOTH = put(9, b"NINE", put(1, b"ONE"))


class Place:
    """A proposal whose merge is prepared and signed, and somebody else who may write."""

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        owner, self.other = relay.account(name()), relay.account(name())
        self.http, self.work = relay.client(owner), relay.client(self.other)
        self.http.timeout = self.work.timeout = httpx.Timeout(60)
        self.repo = create(self.http, owner, "thing")
        merges.grant(relay, self.repo, self.other)
        self.theirs = Repository(self.work, self.other, self.repo.body)
        ok(self.work.get(self.repo.url))  # the first use of a session is noted, which would queue too
        self.n = apart(self.repo, OURS, THEIRS)
        self.base, self.head = self.repo.head(), self.repo.head("topic")
        self.merge = self.merging(self.repo, self.n)

    def merging(self, repo: Repository, n: int) -> Write:
        body = merges.signed(repo, ok(prepare(repo, n, "squash")))
        url = f"{repo.url}/proposals/{n}/merge-finalize"
        return lambda: repo.http.post(url, json=body)

    def pushing(self, branch: str) -> Write:
        """A signed seal of the other person, on top of what the branch has now."""
        repo, key = self.theirs, self.other.key
        content = b"pushed\n"
        ok(repo.http.put(f"{repo.url}/payloads/{blake3(content).hexdigest()}", content=content))
        sent = {
            "branch": branch,
            "device_key_id": key.id,
            "expected_head": repo.head(branch),
            "seals": [{"message": "pushed", "changes": _delta({"pushed": content})}],
        }
        prepared = ok(repo.http.post(f"{repo.url}/seals/prepare", json=sent))
        done = {
            "prepare_id": prepared["prepare_id"],
            "device_key_id": key.id,
            "signatures": [b64u(key.sign(unb64u(one["bytes"]))) for one in prepared["seals"]],
        }
        return lambda: repo.http.post(f"{repo.url}/seals/finalize", json=done)

    def close(self) -> None:
        self.http.close()
        self.work.close()


@pytest.fixture
def place(relay: Relay) -> Iterator[Place]:
    made = Place(relay)
    yield made
    made.close()


def at_once(place: Place, *writes: Write) -> list[httpx.Response]:
    """The answers of requests that all passed the gate, and queue at the repository's lock in this order."""
    waiting: list[View] = []
    about = View._lock_names

    def counting(view: View) -> list[str]:
        waiting.append(view)
        return about(view)

    with ThreadPoolExecutor(len(writes)) as pool:
        with held(place.relay, place.repo.id), mock.patch.object(View, "_lock_names", counting):
            asked = []
            for write in writes:
                asked.append(pool.submit(write))
                deadline = time.monotonic() + PATIENCE
                while len(waiting) < len(asked):
                    assert time.monotonic() < deadline, "the request does not wait where it should"
                    time.sleep(0.01)
        return [one.result(PATIENCE) for one in asked]


def landed(place: Place, answer: httpx.Response) -> bool:
    """Whether the merge landed, and all of it or nothing did."""
    shown = place.repo.get(f"/proposals/{place.n}")
    page = files(place.repo)["page"]
    merged = shown["state"] == "merged"
    assert answer.is_success == merged, answer.text
    assert page == (BOTH if merged else OURS["page"])
    if merged:
        line = [one["id"] for one in place.repo.get("/commits", ref="main")["items"]]
        assert shown["merged_seal"] in line
    else:
        assert shown["merged_seal"] is None
    return merged


Rival = Callable[[Place], Write]


def _patched(json: dict[str, Any]) -> Rival:
    return lambda place: lambda: place.work.patch(f"{place.repo.url}/proposals/{place.n}", json=json)


def _review(place: Place) -> Write:
    body = {"verdict": "request_changes", "body": "wait"}
    return lambda: place.work.post(f"{place.repo.url}/proposals/{place.n}/reviews", json=body)


def _deletion(place: Place) -> Write:
    return lambda: place.work.delete(f"{place.repo.url}/refs/branch/topic")


def _archive(place: Place) -> Write:
    return lambda: place.http.patch(place.repo.url, json={"archived": True})


def _rule(place: Place) -> Write:
    return lambda: place.http.put(f"{place.repo.url}/protections/main", json={"required_approvals": 1})


# What is at once; the code of the merge's refusal if it comes second; that of the rival's, None if it lands.
RIVALS: dict[str, tuple[Rival, str, str | None]] = {
    "a push to the base": (lambda place: place.pushing("main"), "base_moved", "stale_head"),
    "a push to the head": (lambda place: place.pushing("topic"), "head_moved", None),
    "closing": (_patched({"state": "closed"}), "not_mergeable", "proposal_merged"),
    "back to a draft": (_patched({"draft": True}), "draft", "proposal_merged"),
    "a request for changes": (_review, "not_mergeable", "conflict"),
    "deletion of the branch": (_deletion, "not_mergeable", None),
    "a rule for the base": (_rule, "not_mergeable", None),
    "archiving": (_archive, "repository_archived", None),
}


@pytest.mark.parametrize("what", RIVALS)
def test_the_rival_is_first(place: Place, what: str) -> None:
    rival, code, _ = RIVALS[what]
    first, merge = at_once(place, rival(place), place.merge)
    assert first.is_success, first.text
    if place.repo.get("")["archived"]:
        ok(place.http.patch(place.repo.url, json={"archived": False}))
    if landed(place, merge):  # it worked its landing out first, and was back at the lock before the rival
        pytest.fail("the rival was first")
    assert merge.json()["code"] == code


@pytest.mark.parametrize("what", RIVALS)
def test_the_merge_is_first(place: Place, what: str) -> None:
    """At the lock: it works its landing out, so that the rival may pass it. Either is whole."""
    rival, code, refusal = RIVALS[what]
    merge, second = at_once(place, place.merge, rival(place))
    if place.repo.get("")["archived"]:
        ok(place.http.patch(place.repo.url, json={"archived": False}))
    if landed(place, merge):
        if refusal is None:
            assert second.is_success, second.text
        elif not second.is_success:
            assert second.json()["code"] in (refusal, "stale_head", "conflict"), second.text
    else:
        assert second.is_success, second.text
        assert merge.json()["code"] == code


def test_of_two_merges_of_one_proposal_one_lands(place: Place) -> None:
    other = place.merging(place.theirs, place.n)
    answers = at_once(place, place.merge, other)
    assert sorted(one.status_code for one in answers) == [200, 409]
    (lost,) = (one for one in answers if not one.is_success)
    assert lost.json()["code"] in ("proposal_merged", "base_moved")
    assert landed(place, next(one for one in answers if one.is_success))


def test_of_two_proposals_for_one_base_one_lands(place: Place) -> None:
    place.repo.branch("second", str(place.base))
    place.repo.seal({"page": put(5, b"FIVE", OURS["page"])}, branch="second")
    second = place.merging(place.theirs, propose(place.repo, "second"))
    answers = at_once(place, place.merge, second)
    assert sorted(one.status_code for one in answers) == [200, 409]
    (lost,) = (one for one in answers if not one.is_success)
    assert lost.json()["code"] == "base_moved"
    assert files(place.repo)["page"] in (BOTH, put(5, b"FIVE", OURS["page"]))


def test_one_merge_sent_many_times_lands_once(place: Place) -> None:
    answers = at_once(place, *[place.merge] * 8)
    assert [one.status_code for one in answers] == [200] * 8
    assert len({one.json()["merged_seal"] for one in answers}) == 1
    assert len(place.repo.get("/commits", ref="main")["items"]) == 3
    assert place.repo.get("/commits", ref="main")["items"][-1]["id"]
    assert PAGE != BOTH
