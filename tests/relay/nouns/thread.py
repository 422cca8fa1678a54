"""Threads on lines, and suggestions, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.relay.histories import ok
from tests.relay.nouns.proposal import branched
from tests.relay.world import REPO, Named, Try, World

ONE = f"{REPO}/proposals/{{n}}"


def _proposed(world: World) -> tuple[str, dict[str, Any]]:
    """The address of a new proposal, and what begins a thread on it."""
    repo = branched(world)
    ok(repo.http.post(f"{repo.url}/proposals", json={"head": "topic", "base": "main", "title": "a title"}))
    asked = {"path": "a.txt", "start": 2, "end": 2, "seal_id": repo.head("topic"), "body": "why 2?"}
    return f"{repo.url}/proposals/1", asked


def _create(world: World) -> Try:
    url, asked = _proposed(world)
    return Try(f"{url}/threads", asked)


def _resolve(world: World) -> Try:
    url, asked = _proposed(world)
    made = ok(world.http.post(f"{url}/threads", json=asked))
    return Try(f"{url}/threads/{made['id']}", {"state": "resolved"})


def _comment(world: World) -> Try:
    url, asked = _proposed(world)
    made = ok(world.http.post(f"{url}/threads", json=asked))
    return Try(f"{url}/threads/{made['id']}/comments", {"body": "because"})


def _prepare(world: World) -> Try:
    url, asked = _proposed(world)
    made = ok(world.http.post(f"{url}/threads", json={**asked, "suggestion": "two"}))
    body = {"threads": [made["id"]], "device_key_id": world.who.key.id}
    return Try(f"{url}/suggestions/prepare", body)


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", f"{ONE}/threads"): _create,
    ("PATCH", f"{ONE}/threads/{{thread}}"): _resolve,
    ("POST", f"{ONE}/threads/{{thread}}/comments"): _comment,
    ("POST", f"{ONE}/suggestions/prepare"): _prepare,
}

QUESTIONS: dict[str, list[str]] = {
    "GET /proposals/{n}/threads": ["/proposals/1/threads", "/proposals/1/threads?path=vault/plan.txt"],
}

QUIET: dict[Named, str] = {
    ("POST", f"{ONE}/suggestions/prepare"): "nobody but its caller sees it, and it ends by itself",
}
