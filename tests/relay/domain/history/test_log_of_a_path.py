"""The log of a path, where a history has several beginnings."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from relay.domain.history import history
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok


@pytest.fixture(scope="module")
def owner(relay: Relay) -> Account:
    return relay.account("archivist")


@pytest.fixture(scope="module")
def http(relay: Relay, owner: Account) -> Any:
    with relay.client(owner) as client:
        yield client


def test_first_seals_are_in_the_log_of_the_paths_that_they_hold(
    http: httpx.Client, owner: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are, and wherever a page ends."""
    mine = create(http, owner, "many-beginnings")
    for number in range(6):
        ok(mine.http.post(f"{mine.url}/refs", json={"type": "branch", "name": f"b{number}"}))
    (root,) = mine.seal({"a/b/c": b"main\n"})
    others = [
        mine.seal({f"{'ab'[number % 2]}/{number}": b"%d\n" % number}, branch=f"b{number}")[0]
        for number in range(6)
    ]
    merges = [mine.seal({"m": b"%d\n" % n}, parents=[other])[0] for n, other in enumerate(others)]
    assert log_of(mine, "m") == merges[::-1]
    monkeypatch.setattr(history, "BEGINNINGS", 2)
    for size in (1, 2, 3, 30):
        assert set(log_of(mine, "a", size)) == {root, *others[::2]}
        assert set(log_of(mine, "b", size)) == set(others[1::2])
        assert log_of(mine, "a/b", size) == log_of(mine, "a/b/c", size) == [root]
        assert log_of(mine, "b/3", size) == [others[3]]
        assert log_of(mine, "a/b/c/d", size) == log_of(mine, "c", size) == log_of(mine, "b/30", size) == []


def log_of(repo: Repository, path: str, size: int = 30) -> list[str]:
    """Ids of all pages; one is short where it had to look into too many beginnings."""
    page = repo.get("/commits", path=path, limit=size)
    found = [one["id"] for one in page["items"]]
    while page["next_cursor"]:
        page = repo.get("/commits", path=path, limit=size, cursor=page["next_cursor"])
        assert len(page["items"]) <= size
        found += [one["id"] for one in page["items"]]
    assert len(set(found)) == len(found)
    return found
