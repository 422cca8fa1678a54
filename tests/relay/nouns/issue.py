"""Issues, their comments and reactions, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.relay.histories import ok
from tests.relay.world import REPO, Named, Try, World, name

ISSUE = f"{REPO}/issues/{{n}}"
_HEART = "/reactions/heart"


def _issue(world: World) -> str:
    """The address of a new issue in a repository with the label `bug`."""
    repo = world.repo
    ok(repo.http.post(f"{repo.url}/labels", json={"name": "bug"}))
    ok(repo.http.post(f"{repo.url}/issues", json={"title": name()}))
    return f"{repo.url}/issues/1"


def _on_issue(path: str, json: Any = None, *before: tuple[str, str]) -> Callable[[World], Try]:
    """A request below a new issue, after these others."""

    def act(world: World) -> Try:
        issue = _issue(world)
        for method, sub in before:
            ok(world.http.request(method, issue + sub))
        return Try(issue + path, json)

    return act


def _on_comment(path: str, json: Any = None, *before: tuple[str, str]) -> Callable[[World], Try]:
    def act(world: World) -> Try:
        comments = f"{_issue(world)}/comments"
        one = f"{comments}/{ok(world.http.post(comments, json={'body': 'first'}))['id']}"
        for method, sub in before:
            ok(world.http.request(method, one + sub))
        return Try(one + path, json)

    return act


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", f"{REPO}/issues"): lambda world: Try(f"{world.repo.url}/issues", {"title": name()}),
    ("PATCH", ISSUE): _on_issue("", {"state": "closed"}),
    ("PUT", f"{ISSUE}/labels/{{name}}"): _on_issue("/labels/bug"),
    ("DELETE", f"{ISSUE}/labels/{{name}}"): _on_issue("/labels/bug", None, ("PUT", "/labels/bug")),
    ("POST", f"{ISSUE}/comments"): _on_issue("/comments", {"body": "a word"}),
    ("PATCH", f"{ISSUE}/comments/{{comment}}"): _on_comment("", {"body": "another"}),
    ("DELETE", f"{ISSUE}/comments/{{comment}}"): _on_comment(""),
    ("PUT", f"{ISSUE}/reactions/{{reaction}}"): _on_issue(_HEART),
    ("DELETE", f"{ISSUE}/reactions/{{reaction}}"): _on_issue(_HEART, None, ("PUT", _HEART)),
    ("PUT", f"{ISSUE}/comments/{{comment}}/reactions/{{reaction}}"): _on_comment(_HEART),
    ("DELETE", f"{ISSUE}/comments/{{comment}}/reactions/{{reaction}}"): _on_comment(
        _HEART, None, ("PUT", _HEART)
    ),
}

QUESTIONS: dict[str, list[str]] = {
    "GET /issues": ["/issues", "/issues?state=all"],
    "GET /issues/{n}": ["/issues/1"],
    "GET /issues/{n}/comments": ["/issues/1/comments"],
}
