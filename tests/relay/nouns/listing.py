"""Listings, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable

from tests.relay.histories import ok
from tests.relay.world import REPO, Named, Try, World


def _public(world: World) -> str:
    repo = world.repo
    ok(world.http.patch(repo.url, json={"visibility": "public"}))
    return f"{repo.url}/listing"


def _listed(world: World) -> Try:
    url = _public(world)
    ok(world.http.put(url, json={"name": "Notes"}))
    return Try(url)


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("PUT", f"{REPO}/listing"): lambda world: Try(_public(world), {"name": "Notes"}),
    ("DELETE", f"{REPO}/listing"): _listed,
}

QUESTIONS: dict[str, list[str]] = {
    "GET /listing": ["/listing"],
}
