"""API keys, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.relay.histories import ok
from tests.relay.world import Named, Try, World, name

KEYS = "/api/v1/apikeys"
KEY = f"{KEYS}/{{user_id}}/{{key_id}}"


def _on_key(suffix: str = "", json: Any = None) -> Callable[[World], Try]:
    def act(world: World) -> Try:
        url = f"{KEYS}/{world.who.id}"
        key = ok(world.http.post(url, json={"name": name()}))
        return Try(f"{url}/{key['id']}{suffix}", json)

    return act


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", f"{KEYS}/{{user_id}}"): lambda world: Try(f"{KEYS}/{world.who.id}", {"name": name()}),
    ("DELETE", KEY): _on_key(),
    ("POST", f"{KEY}/rotate"): _on_key("/rotate", {}),
}
