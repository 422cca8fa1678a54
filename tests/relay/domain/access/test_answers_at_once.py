"""Accept and decline at once give one outcome: invitations, transfers, requests for access, memberships."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import pytest

from tests.patience import until
from tests.relay.conftest import Account
from tests.relay.histories import create, ok

ROUNDS = 3


@dataclass
class Offer:
    """`by` decides at `url` with one of two words; `taken` says whether the first one had its effect."""

    by: httpx.Client
    url: str
    words: tuple[str, str]
    taken: Callable[[], bool]


def _invitation(ann: httpx.Client, owner: Account, bob: httpx.Client, handle: str) -> Offer:
    repo = create(ann, owner, f"r{secrets.token_hex(4)}")
    one = ok(ann.post(f"{repo.url}/invites", json={"handle": handle, "role": "write"}))["id"]
    return Offer(bob, f"/api/v1/invites/{one}", ("accept", "decline"), lambda: bob.get(repo.url).is_success)


def _transfer(ann: httpx.Client, owner: Account, bob: httpx.Client, handle: str) -> Offer:
    repo = create(ann, owner, f"r{secrets.token_hex(4)}")
    one = ok(ann.post(f"{repo.url}/transfers", json={"to": handle}))["id"]
    return Offer(bob, f"/api/v1/transfers/{one}", ("accept", "decline"), lambda: bob.get(repo.url).is_success)


def _request(ann: httpx.Client, owner: Account, bob: httpx.Client, handle: str) -> Offer:
    repo = create(ann, owner, f"r{secrets.token_hex(4)}")
    ok(bob.post("/api/v1/access-requests", json={"repo": repo.body["full_name"]}))
    found = until(lambda: ok(ann.get(f"{repo.url}/access-requests"))["items"], "the request is there")
    url = f"/api/v1/access-requests/{found[0]['id']}"
    return Offer(ann, url, ("grant", "decline"), lambda: bob.get(repo.url).is_success)


def _membership(ann: httpx.Client, owner: Account, bob: httpx.Client, handle: str) -> Offer:
    org = ok(ann.post("/api/v1/orgs", json={"handle": f"o{secrets.token_hex(5)}"}))["handle"]
    one = ok(ann.post(f"/api/v1/orgs/{org}/invites", json={"handle": handle}))["id"]
    there = f"/api/v1/orgs/{org}"
    return Offer(bob, f"/api/v1/org-invites/{one}", ("accept", "decline"), lambda: bob.get(there).is_success)


@pytest.mark.parametrize("offer", [_invitation, _transfer, _request, _membership])
def test_of_two_answers_at_once_one_counts(
    account: Callable[..., Account],
    client: Callable[..., httpx.Client],
    offer: Callable[[httpx.Client, Account, httpx.Client, str], Offer],
) -> None:
    ann, bob = account(), account()
    for turn in range(ROUNDS):
        one = offer(client(ann), ann, client(bob), str(bob.handle))
        words = [*one.words, *one.words]
        if turn % 2:
            words.reverse()
        with ThreadPoolExecutor(len(words)) as pool:
            body = {} if one.words[0] == "grant" else None
            answers = [
                *pool.map(lambda word: one.by.post(f"{one.url}/{word}", json=body), words)  # noqa: B023
            ]
        done = [word for word, answer in zip(words, answers, strict=True) if answer.is_success]
        assert len(done) == 1, [(a.status_code, a.text) for a in answers]
        refused = {a.json()["code"] for a in answers if not a.is_success}
        assert refused <= {"already_decided", "not_found"}, refused
        assert one.taken() == (done[0] == one.words[0])
