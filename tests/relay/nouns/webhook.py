"""Webhooks, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.relay.histories import ok
from tests.relay.world import REPO, Named, Try, World

HOOK = f"{REPO}/webhooks/{{hook}}"
WISH = {"url": "http://127.0.0.1:9/", "events": ["push", "release"]}  # nobody listens there


def _on_hook(path: str, json: Any = None) -> Callable[[World], Try]:
    """A request about a webhook, which has one delivery: its ping."""

    def act(world: World) -> Try:
        url = f"{world.repo.url}/webhooks"
        hook = f"{url}/{ok(world.http.post(url, json=WISH))['id']}"
        (ping,) = ok(world.http.get(f"{hook}/deliveries"))["items"]
        return Try(hook + path.format(delivery=ping["id"]), json)

    return act


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", f"{REPO}/webhooks"): lambda world: Try(f"{world.repo.url}/webhooks", WISH),
    ("PATCH", HOOK): _on_hook("", {"events": ["run"]}),
    ("DELETE", HOOK): _on_hook(""),
    ("POST", f"{HOOK}/ping"): _on_hook("/ping"),
    ("POST", f"{HOOK}/deliveries/{{delivery}}/redeliver"): _on_hook("/deliveries/{delivery}/redeliver"),
}

QUESTIONS: dict[str, list[str]] = {
    "GET /webhooks": ["/webhooks"],
    "GET /webhooks/{hook}": ["/webhooks/none"],
    "GET /webhooks/{hook}/deliveries": ["/webhooks/none/deliveries"],
    "GET /webhooks/{hook}/deliveries/{delivery}": ["/webhooks/none/deliveries/none"],
}
