"""Proposals and their reviews, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.relay.histories import Repository, ok
from tests.relay.world import REPO, Named, Try, World, name

ONE = f"{REPO}/proposals/{{n}}"
_WISH = {"head": "topic", "base": "main", "title": "a title"}


def branched(world: World) -> Repository:
    """A repository with a branch `topic` that has one seal more than `main`."""
    repo = world.repo
    (first,) = repo.seal({"a.txt": b"1\n"})
    repo.branch("topic", first)
    repo.seal({"a.txt": b"1\n2\n"}, branch="topic")
    return repo


def _on_proposal(path: str, json: Any = None, *before: tuple[str, str, Any]) -> Callable[[World], Try]:
    """A request below a new proposal, after these others."""

    def act(world: World) -> Try:
        repo = branched(world)
        ok(repo.http.post(f"{repo.url}/labels", json={"name": "bug"}))
        ok(repo.http.post(f"{repo.url}/proposals", json=_WISH))
        for method, sub, body in before:
            ok(world.http.request(method, f"{repo.url}/proposals/1{sub}", json=body))
        return Try(f"{repo.url}/proposals/1{path}", json)

    return act


def _reviewed(world: World) -> Try:
    """Dismissal of the verdict of somebody else."""
    repo = branched(world)
    ok(repo.http.patch(repo.url, json={"visibility": "public"}))
    ok(repo.http.post(f"{repo.url}/proposals", json=_WISH))
    other = world.relay.client(world.relay.account(name()))
    made = ok(other.post(f"{repo.url}/proposals/1/reviews", json={"verdict": "approve"}))
    return Try(f"{repo.url}/proposals/1/reviews/{made['id']}", {"state": "dismissed"})


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", f"{REPO}/proposals"): lambda world: Try(f"{branched(world).url}/proposals", _WISH),
    ("PATCH", ONE): _on_proposal("", {"state": "closed"}),
    ("PUT", f"{ONE}/labels/{{name}}"): _on_proposal("/labels/bug"),
    ("DELETE", f"{ONE}/labels/{{name}}"): _on_proposal("/labels/bug", None, ("PUT", "/labels/bug", None)),
    ("POST", f"{ONE}/reviews"): _on_proposal("/reviews", {"verdict": "comment", "body": "a word"}),
    ("PATCH", f"{ONE}/reviews/{{review}}"): _reviewed,
}

QUESTIONS: dict[str, list[str]] = {
    "GET /proposals": ["/proposals", "/proposals?state=all"],
    "GET /proposals/{n}": ["/proposals/1"],
    "GET /proposals/{n}/versions": ["/proposals/1/versions"],
    "GET /proposals/{n}/reviews": ["/proposals/1/reviews"],
    "GET /issues/{n}/timeline": ["/issues/1/timeline"],
}
