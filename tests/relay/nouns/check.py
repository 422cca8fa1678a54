"""Checks, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable

from tests.relay.histories import ok
from tests.relay.world import REPO, Named, Try, World, name


def _enabled(world: World) -> Try:
    url = f"{world.repo.url}/checks/ci/{name()}"
    ok(world.http.put(url))
    return Try(url)


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("PUT", f"{REPO}/checks/{{name...}}"): lambda world: Try(f"{world.repo.url}/checks/ci/{name()}"),
    ("DELETE", f"{REPO}/checks/{{name...}}"): _enabled,
}

QUESTIONS: dict[str, list[str]] = {
    "GET /checks": ["/checks"],
}
