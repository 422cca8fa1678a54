"""Labels, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.relay.histories import ok
from tests.relay.world import REPO, Named, Try, World, name


def _on_label(json: Any = None) -> Callable[[World], Try]:
    def act(world: World) -> Try:
        url = f"{world.repo.url}/labels"
        ok(world.http.post(url, json={"name": "bug"}))
        return Try(f"{url}/bug", json)

    return act


def _cloned(world: World) -> Try:
    source = world.repo
    ok(world.http.post(f"{source.url}/labels", json={"name": "bug"}))
    return Try(f"{world.repo.url}/labels/clone", {"source": source.body["full_name"]})


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", f"{REPO}/labels"): lambda world: Try(f"{world.repo.url}/labels", {"name": name()}),
    ("PATCH", f"{REPO}/labels/{{name}}"): _on_label({"color": "00ff00"}),
    ("DELETE", f"{REPO}/labels/{{name}}"): _on_label(),
    ("POST", f"{REPO}/labels/clone"): _cloned,
}

QUESTIONS: dict[str, list[str]] = {
    "GET /labels": ["/labels"],
}
