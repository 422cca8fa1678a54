"""Search over repositories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.relay.conftest import Account
from tests.relay.histories import create, ok

Maker = Callable[..., Account]
Client = Callable[..., httpx.Client]


def names(http: httpx.Client, **query: Any) -> list[str]:
    return [one["name"] for one in ok(http.get("/api/v1/search/repos", params=query))["items"]]


def test_only_what_the_caller_may_see_is_found(account: Maker, client: Client) -> None:
    owner = account()
    http = client(owner)
    create(http, owner, "zebra-open", visibility="public")
    create(http, owner, "zebra-hidden")
    gone = create(http, owner, "zebra-gone", visibility="public")
    ok(http.delete(gone.url))
    assert sorted(names(http, q="ZEBRA")) == ["zebra-hidden", "zebra-open"]
    assert names(client(), q="zebra") == ["zebra-open"]
    assert names(client(account()), q="zebra") == ["zebra-open"]
    assert names(client(), q=f"{owner.handle}/zebra-o") == ["zebra-open"]


def test_descriptions_are_searched(account: Maker, client: Client) -> None:
    owner = account()
    create(client(owner), owner, "plain", visibility="public", description="Counts Okapis")
    assert names(client(), q="okapi") == ["plain"]


@pytest.mark.parametrize("q", ["%", "_", "\\", "wild%card", "wild_card", "'; DROP TABLE repo; --"])
def test_wildcards_are_letters(account: Maker, client: Client, q: str) -> None:
    owner = account()
    create(client(owner), owner, "wildxcard", visibility="public")
    assert "wildxcard" not in names(client(), q=q, limit=100)
    create(client(owner), owner, "exact", visibility="public", description=f"has {q} in it")
    assert "exact" in names(client(), q=q, limit=100)


def test_trending_counts_seals_and_recent_the_last_change(account: Maker, client: Client) -> None:
    owner = account()
    http = client(owner)
    busy = create(http, owner, "quokka-busy", visibility="public")
    busy.seal({"f": b"1"}, {"f": b"2"})
    calm = create(http, owner, "quokka-calm", visibility="public")
    calm.seal({"f": b"1"})
    create(http, owner, "quokka-new", visibility="public")
    assert names(client(), q="quokka") == ["quokka-busy", "quokka-calm", "quokka-new"]
    ok(http.patch(calm.url, json={"description": "touched"}))
    assert names(client(), q="quokka", sort="recent")[0] == "quokka-calm"
    for sort in ("trending", "recent"):
        found: list[str] = []
        query: dict[str, Any] = {"q": "quokka", "sort": sort, "limit": 1}
        while True:
            page = ok(client().get("/api/v1/search/repos", params=query))
            found += [one["name"] for one in page["items"]]
            if page["next_cursor"] is None:
                break
            query["cursor"] = page["next_cursor"]
        assert found == names(client(), q="quokka", sort=sort)
        assert len(found) == 3


@pytest.mark.parametrize("query", ["q=" + "x" * 201, "sort=best", "limit=0", "cursor=WyJhIiwxXQ", "q=%00"])
def test_hostile_queries_are_refused_plainly(client: Client, query: str) -> None:
    assert client().get(f"/api/v1/search/repos?{query}").status_code == 422
