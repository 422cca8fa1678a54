"""Forks, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable

from tests.relay.histories import create
from tests.relay.world import REPO, Named, Try, World, name


def _forked(world: World) -> Try:
    repo = create(world.http, world.who, name(), visibility="public")
    repo.seal({"a.txt": b"1\n"})
    return Try(f"{repo.url}/forks", {"name": name()})


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", f"{REPO}/forks"): _forked,
}

QUESTIONS: dict[str, list[str]] = {
    "GET /forks": ["/forks"],
}
