"""A transfer accepted while the owner acts on the repository: either order, and nothing half done."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.relay.conftest import Account
from tests.relay.histories import Repository, create, ok

TRANSFERS = "/api/v1/transfers"
Act = Callable[[httpx.Client, Repository, str], httpx.Response]
ACTS: dict[str, Act] = {
    "delete": lambda http, repo, one: http.delete(repo.url),
    "archive": lambda http, repo, one: http.patch(repo.url, json={"archived": True}),
    "cancel": lambda http, repo, one: http.delete(f"{TRANSFERS}/{one}"),
    "rename": lambda http, repo, one: http.patch(repo.url, json={"name": "renamed"}),
}


def _pair(
    account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> tuple[httpx.Client, httpx.Client, Account, Repository, str]:
    ann, bob = account(), account()
    owner = client(ann)
    repo = create(owner, ann, "offered")
    offer: dict[str, Any] = ok(owner.post(f"{repo.url}/transfers", json={"to": bob.handle}))
    return owner, client(bob), bob, repo, offer["id"]


@pytest.mark.parametrize("what", ACTS)
def test_accept_and_what_the_owner_does_at_once(
    account: Callable[..., Account], client: Callable[..., httpx.Client], what: str
) -> None:
    for _ in range(4):
        owner, new, bob, repo, offer = _pair(account, client)
        with ThreadPoolExecutor(2) as pool:
            accepting = pool.submit(new.post, f"{TRANSFERS}/{offer}/accept")
            acting = pool.submit(ACTS[what], owner, repo, offer)
            accepted, acted = accepting.result(), acting.result()
        case = (what, accepted.status_code, acted.status_code, accepted.text, acted.text)
        assert max(accepted.status_code, acted.status_code) < 500, case
        if what in ("delete", "cancel"):
            assert accepted.is_success != acted.is_success, case
        else:
            assert accepted.is_success, case  # neither ends the offer
        seen = new.get(repo.url)
        if not accepted.is_success:
            assert seen.status_code == 404, case
            continue
        now = ok(seen)
        assert (now["owner"], now["viewer"]["role"]) == (bob.handle, "owner"), case
        assert (now["state"] == "archived") == (what == "archive" and acted.is_success), case
        assert (now["name"] == "renamed") == (what == "rename" and acted.is_success), case
        assert ok(owner.get(repo.url))["viewer"]["role"] == "admin"


def test_an_offer_ends_with_its_repository(
    account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> None:
    owner, new, _, repo, offer = _pair(account, client)
    ok(owner.delete(repo.url))
    assert ok(new.get(TRANSFERS))["items"] == []
    none = new.post(f"{TRANSFERS}/{'0' * 32}/accept")
    assert none.status_code == 404
    assert new.post(f"{TRANSFERS}/{offer}/accept").content == none.content
    assert new.post(f"{TRANSFERS}/{offer}/decline").content == none.content
