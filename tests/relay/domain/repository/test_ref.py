"""Branches and tags over HTTP: created at a seal, moved by compare-and-swap, never silently."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok


@pytest.fixture(scope="module")
def owner(relay: Relay) -> Account:
    return relay.account("brancher")


@pytest.fixture(scope="module")
def http(relay: Relay, owner: Account) -> Any:
    with relay.client(owner) as client:
        yield client


@pytest.fixture
def repo(http: httpx.Client, owner: Account) -> Repository:
    """Two seals on `main`."""
    made = create(http, owner, f"r{secrets.token_hex(6)}")
    made.body["seals"] = made.seal({"f": b"1\n"}, {"f": b"2\n"})
    return made


def post(repo: Repository, **asked: Any) -> httpx.Response:
    return repo.http.post(f"{repo.url}/refs", json={"type": "branch", **asked})


def test_a_branch_starts_at_the_default_branch_another_or_a_seal(repo: Repository) -> None:
    first, second = repo.body["seals"]
    assert ok(post(repo, name="a"))["head"] == second
    assert ok(post(repo, name="b", head=first))["head"] == first
    assert ok(post(repo, name="feature/c", head="b"))["head"] == first
    assert repo.get("/refs/branch/feature/c")["name"] == "feature/c"
    assert repo.http.get(f"{repo.url}/refs/branch/feature%2Fc").status_code == 200
    assert [one["name"] for one in repo.get("/refs")["items"]] == ["a", "b", "feature/c", "main"]


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ({"name": "main"}, 409, "ref_exists"),
        ({"name": "x", "head": "nowhere"}, 422, "invalid"),
        ({"name": "x", "head": "0" * 64}, 422, "invalid"),
        ({"name": "x", "expected_head": "0" * 64}, 409, "stale_head"),
        ({"name": "a b"}, 422, "invalid"),
        ({"name": "HEAD"}, 422, "invalid"),
        ({"name": "x" * 201}, 422, "invalid"),
        ({"name": "x", "type": "note"}, 422, "invalid"),
    ],
)
def test_creations_that_are_refused(repo: Repository, asked: dict[str, Any], status: int, code: str) -> None:
    answer = post(repo, **asked)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_tags_need_a_seal_and_do_not_move(repo: Repository, http: httpx.Client, owner: Account) -> None:
    first, second = repo.body["seals"]
    assert ok(post(repo, type="tag", name="v1", head=first))["head"] == first
    moved = http.patch(f"{repo.url}/refs/tag/v1", json={"head": second, "expected_head": first})
    assert (moved.status_code, moved.json()["code"]) == (409, "tag_exists")
    again = post(repo, type="tag", name="v1", head=second)
    assert (again.status_code, again.json()["code"]) == (409, "tag_exists")
    assert http.delete(f"{repo.url}/refs/tag/v1").status_code == 204
    empty = create(http, owner, "tagless")
    assert post(empty, type="tag", name="v1").status_code == 422


def test_a_branch_moves_only_from_where_it_is_expected(repo: Repository) -> None:
    first, second = repo.body["seals"]
    ok(post(repo, name="b", head=first))
    url = f"{repo.url}/refs/branch/b"
    stale = repo.http.patch(url, json={"head": second, "expected_head": second})
    assert (stale.status_code, stale.json()["code"], stale.json()["head"]) == (409, "stale_head", first)
    assert ok(repo.http.patch(url, json={"head": second, "expected_head": first}))["head"] == second
    unknown = repo.http.patch(url, json={"head": "0" * 64, "expected_head": second})
    assert unknown.status_code == 422


def test_the_frontier_follows_a_branch_that_moves(repo: Repository) -> None:
    first, second = repo.body["seals"]
    ok(post(repo, name="b", head=first))
    ok(repo.http.patch(f"{repo.url}/refs/branch/b", json={"head": second, "expected_head": first}))
    sealed = ok(repo.http.get(f"{repo.url}/tree/{second}?recursive=1"))["entries"]
    asked = {"device_key_id": repo.owner.key.id, "since": 0}
    rows = ok(repo.http.post(f"{repo.url}/branches/b/live/bootstrap", json=asked))["rows"]
    assert {row[0]: row[6] for row in rows} == {entry["path"]: entry["blake3"] for entry in sealed}


def test_of_many_moves_at_once_one_wins(repo: Repository) -> None:
    first, second = repo.body["seals"]
    ok(post(repo, name="b", head=first))
    url = f"{repo.url}/refs/branch/b"

    def move(_: int) -> int:
        return repo.http.patch(url, json={"head": second, "expected_head": first}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(move, range(8))) == [200] + [409] * 7


def test_deletion(repo: Repository) -> None:
    first, second = repo.body["seals"]
    assert repo.http.delete(f"{repo.url}/refs/branch/main").status_code == 409
    ok(post(repo, name="b"))
    stale = repo.http.delete(f"{repo.url}/refs/branch/b", params={"expected_head": first})
    assert (stale.status_code, stale.json()["head"]) == (409, second)
    assert repo.http.delete(f"{repo.url}/refs/branch/b", params={"expected_head": second}).status_code == 204
    assert repo.http.delete(f"{repo.url}/refs/branch/b").status_code == 404
    assert ok(post(repo, name="b"))["head"] == second  # the name is free again


def test_pages_go_over_branches_then_tags(repo: Repository) -> None:
    for number in range(4):
        ok(post(repo, name=f"b{number}"))
        ok(post(repo, type="tag", name=f"t{number}"))
    found: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = repo.get("/refs", **query)
        found += [one["name"] for one in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert found == ["b0", "b1", "b2", "b3", "main", "t0", "t1", "t2", "t3"]
    tags = repo.http.get(f"{repo.url}/refs", params={"type": "tag", **query})
    assert tags.status_code in (200, 422)  # a cursor of the whole list may point into the tags
    branches = repo.http.get(f"{repo.url}/refs", params={"type": "branch", "cursor": query["cursor"]})
    assert branches.status_code == 422


@pytest.mark.parametrize("path", ["note/main", "branch/nope", "tag/main", "branch/a%2E%2Eb"])
def test_refs_that_are_not_there(repo: Repository, path: str) -> None:
    for method in ("GET", "DELETE"):
        assert repo.http.request(method, f"{repo.url}/refs/{path}").status_code == 404


def test_a_seal_and_a_moved_branch_count_as_changes_of_the_repository(
    repo: Repository, http: httpx.Client
) -> None:
    """What `svc repo list` shows as UPDATED, and what a search sorts by."""

    def updated() -> str:
        return str(ok(http.get(repo.url))["updated_at"])

    first = updated()
    (sealed,) = repo.seal({"f": b"3\n"})
    assert updated() > first
    second = updated()
    assert ok(post(repo, name="side", head=repo.body["seals"][0]))["head"] == repo.body["seals"][0]
    moved = http.patch(
        f"{repo.url}/refs/branch/side", json={"head": sealed, "expected_head": repo.body["seals"][0]}
    )
    assert ok(moved)["head"] == sealed
    assert updated() > second
