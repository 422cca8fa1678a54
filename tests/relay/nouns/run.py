"""Runs, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.relay.histories import ok
from tests.relay.world import REPO, Named, Try, World, name

RUN = f"{REPO}/runs/{{run}}"


def _wish(world: World) -> Try:
    """A run of a new seal."""
    repo = world.repo
    (seal,) = repo.seal({"f": b"1\n"})
    return Try(f"{repo.url}/runs", {"name": name(), "seal_id": seal})


def _on_run(path: str, json: Any = None, **more: str) -> Callable[[World], Try]:
    """A request about a run."""

    def act(world: World) -> Try:
        body = _wish(world)
        made = ok(world.http.post(body.path, json={**body.json, **more}))
        return Try(f"{body.path}/{made['id']}{path}", json)

    return act


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", f"{REPO}/runs"): _wish,
    ("PATCH", RUN): _on_run("", {"conclusion": "success"}),
    ("POST", f"{RUN}/cancel"): _on_run("/cancel"),
    ("POST", f"{RUN}/rerun"): _on_run("/rerun", conclusion="failure"),
}

QUESTIONS: dict[str, list[str]] = {
    "GET /runs": ["/runs", "/runs?branch=main"],
    "GET /runs/{run}": ["/runs/1"],
}
