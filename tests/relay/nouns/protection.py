"""Protection rules, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable

from tests.relay.histories import ok
from tests.relay.world import REPO, Named, Try, World


def _cleared(world: World) -> Try:
    url = f"{world.repo.url}/protections/release%2F**"
    ok(world.http.put(url, json={}))
    return Try(url)


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("PUT", f"{REPO}/protections/{{pattern...}}"): lambda world: Try(
        f"{world.repo.url}/protections/release%2F**", {"lock_writes": True}
    ),
    ("DELETE", f"{REPO}/protections/{{pattern...}}"): _cleared,
}

QUESTIONS: dict[str, list[str]] = {
    "GET /protections": ["/protections"],
}
