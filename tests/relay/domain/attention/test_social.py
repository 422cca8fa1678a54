"""Stars and watches: one of each for each account, counted as they come and go."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.relay.histories import create, ok
from tests.relay.tracker import Tracker, world

__all__ = ["world"]  # the fixture


def counts(world: Tracker) -> tuple[int, int]:
    shown = ok(world.http.get(world.repo.url))
    return shown["stars"], shown["watchers"]


def test_one_of_each_for_each_account(world: Tracker) -> None:
    """Whoever makes a repository watches it, until they do not want to."""
    world.publish()
    assert counts(world) == (0, 1)
    assert world.http.delete(f"{world.repo.url}/watch").status_code == 204
    other = world.client(world.account())
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: other.put(f"{world.repo.url}/star"), range(8)))
    assert {one.status_code for one in answers} == {204}
    assert counts(world) == (1, 0)
    assert world.http.put(f"{world.repo.url}/star").status_code == 204
    assert other.put(f"{world.repo.url}/watch").status_code == 204
    assert counts(world) == (2, 1)
    viewer = ok(other.get(world.repo.url))["viewer"]
    assert viewer == {"role": None, "starred": True, "watching": True}
    assert ok(world.http.get(world.repo.url))["viewer"] == {
        "role": "owner",
        "starred": True,
        "watching": False,
    }
    for _ in range(2):
        assert other.delete(f"{world.repo.url}/star").status_code == 204
    assert counts(world) == (1, 1)
    assert ok(other.get(world.repo.url))["viewer"]["starred"] is False


def test_archived_ones_are_starred_too_and_hidden_ones_are_missing(world: Tracker) -> None:
    stranger, guest = world.client(world.account()), world.client(world.relay.account(None, "guest"))
    missing = stranger.put("/api/v1/repos/0190a1b2c3d47e8f9a0b/star")
    for what in ("star", "watch"):
        for method in ("PUT", "DELETE"):
            answer = stranger.request(method, f"{world.repo.url}/{what}")
            assert (answer.status_code, answer.content) == (404, missing.content)
    world.publish()
    ok(world.http.patch(world.repo.url, json={"archived": True}))
    assert stranger.put(f"{world.repo.url}/star").status_code == 204
    assert guest.put(f"{world.repo.url}/watch").status_code == 204
    assert world.client().put(f"{world.repo.url}/star").status_code == 401
    assert counts(world) == (1, 2)


def test_lists_show_them_and_stars_trend(world: Tracker) -> None:
    world.publish()
    name = world.repo.body["name"]
    create(world.http, world.who, f"{name}-newer", visibility="public")
    owner = world.who.handle

    def found() -> list[tuple[str, int]]:
        items = ok(world.http.get("/api/v1/search/repos", params={"q": f"{owner}/{name}"}))["items"]
        return [(one["name"], one["stars"]) for one in items]

    assert found() == [(f"{name}-newer", 0), (name, 0)]
    assert world.client(world.account()).put(f"{world.repo.url}/star").status_code == 204
    assert found() == [(name, 1), (f"{name}-newer", 0)]
    listed = ok(world.http.get("/api/v1/repos", params={"owner": owner}))["items"]
    assert {one["name"]: one["stars"] for one in listed} == {name: 1, f"{name}-newer": 0}
    one = ok(world.client().get("/api/v1/repos", params={"owner": owner, "name": name}))["items"][0]
    assert (one["stars"], one["viewer"]) == (1, None)
