"""Labels: names that are one whatever their case, colours in one form, and so many in a repository."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from relay.domain.discussion import label as rules
from tests.relay.conftest import Account
from tests.relay.histories import Repository, create, ok


@pytest.fixture
def world(
    account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> Iterator[tuple[httpx.Client, Repository]]:
    who = account()
    http = client(who)
    yield http, create(http, who, "labelled")


World = tuple[httpx.Client, Repository]


def test_created_and_listed_by_name_a_page_at_a_time(world: World) -> None:
    http, repo = world
    wanted = {"name": "Bug", "color": "#D73A4A", "description": "Something does not work"}
    made = ok(http.post(f"{repo.url}/labels", json=wanted))
    assert made == {"name": "Bug", "color": "d73a4a", "description": "Something does not work"}
    plain = ok(http.post(f"{repo.url}/labels", json={"name": "área / docs"}))
    assert plain == {"name": "área / docs", "color": "ededed", "description": None}
    ok(http.post(f"{repo.url}/labels", json={"name": "apple"}))
    names: list[str] = []
    query: dict[str, Any] = {"limit": 1}
    while True:
        page = http.get(f"{repo.url}/labels", params=query).json()
        names += [one["name"] for one in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert names == ["apple", "Bug", "área / docs"]


def test_a_name_is_taken_whatever_its_case(world: World) -> None:
    http, repo = world
    ok(http.post(f"{repo.url}/labels", json={"name": "Straße"}))
    again = http.post(f"{repo.url}/labels", json={"name": "STRASSE"})
    assert (again.status_code, again.json()["code"]) == (409, "label_exists")


@pytest.mark.parametrize(
    ("body", "pointer", "rule"),
    [
        ({}, "/name", "name is missing"),
        ({"name": ""}, "/name", "name is 1 to 50 visible characters"),
        ({"name": "x" * 51}, "/name", "name is 1 to 50"),
        ({"name": " x"}, "/name", "without a space at either end"),
        ({"name": "x\n"}, "/name", "name is"),
        ({"name": "a\u202eb"}, "/name", "name is"),
        ({"name": "a\u0000b"}, "/name", "name is"),
        ({"name": "x", "color": "red"}, "/color", "color is six hex digits, such as d73a4a"),
        ({"name": "x", "color": "d73a4a\n"}, "/color", "color is six hex digits"),
        ({"name": "x", "description": "y" * 1001}, "/description", "description is at most 1000 characters"),
    ],
)
def test_what_no_label_may_be_is_said(world: World, body: dict[str, Any], pointer: str, rule: str) -> None:
    http, repo = world
    answer = http.post(f"{repo.url}/labels", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert rule in answer.json()["detail"]
    assert http.get(f"{repo.url}/labels").json()["items"] == []


def test_readers_read_and_others_see_nothing(
    world: World, account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> None:
    http, repo = world
    ok(http.post(f"{repo.url}/labels", json={"name": "bug"}))
    other = client(account())
    assert other.get(f"{repo.url}/labels").status_code == 404
    assert other.post(f"{repo.url}/labels", json={"name": "x"}).status_code == 404
    assert http.patch(repo.url, json={"visibility": "public"}).status_code == 200
    assert [one["name"] for one in client().get(f"{repo.url}/labels").json()["items"]] == ["bug"]
    assert other.post(f"{repo.url}/labels", json={"name": "x"}).status_code == 403
    assert http.patch(repo.url, json={"archived": True}).status_code == 200
    assert http.post(f"{repo.url}/labels", json={"name": "x"}).json()["code"] == "repository_archived"


def test_a_repository_has_so_many_also_when_they_come_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    http, repo = world
    monkeypatch.setattr(rules, "LABELS", 5)
    with ThreadPoolExecutor(4) as threads:
        bodies = [{"name": f"l{number}"} for number in range(12)]
        answers = list(threads.map(lambda body: http.post(f"{repo.url}/labels", json=body), bodies))
    assert sorted(one.status_code for one in answers) == [201] * 5 + [409] * 7
    assert {one.json()["code"] for one in answers if one.status_code == 409} == {"conflict"}
    assert len(http.get(f"{repo.url}/labels").json()["items"]) == 5


def test_a_purged_repository_takes_its_labels_along(world: World) -> None:
    http, repo = world
    ok(http.post(f"{repo.url}/labels", json={"name": "bug"}))
    assert http.delete(repo.url).status_code == 200
    assert http.get(f"{repo.url}/labels").status_code == 404
