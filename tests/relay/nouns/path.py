"""The path policy, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable

from tests.relay.histories import ok
from tests.relay.world import REPO, Named, Try, World


def _ruled(world: World) -> Try:
    url = f"{world.repo.url}/paths"
    ok(world.http.put(url, json={"path": "vault", "visibility": "private"}))
    return Try(f"{url}?path=vault")


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("PUT", f"{REPO}/paths"): lambda world: Try(
        f"{world.repo.url}/paths", {"path": "vault", "visibility": "private"}
    ),
    ("DELETE", f"{REPO}/paths"): _ruled,
}

QUESTIONS: dict[str, list[str]] = {
    "GET /paths": ["/paths"],
    "GET /paths/timeline": ["/paths/timeline"],
}
