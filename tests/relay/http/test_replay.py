"""A signed change sent a second time is refused as what it is, whatever has become of its subject since."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from localstore.core.identity.request_signature import SAFE_METHODS
from tests.relay.conftest import Account
from tests.relay.histories import create, ok


class Eavesdropper:
    """Sends again whatever change it saw carried out: at once, and later all of them."""

    def __init__(self, watched: httpx.Client, own: httpx.Client) -> None:
        self._own = own
        self.seen: list[httpx.Request] = []
        watched.event_hooks["response"] = [self._saw]

    def _saw(self, response: httpx.Response) -> None:
        if response.request.method not in SAFE_METHODS and response.is_success:
            self.seen.append(response.request)
            self.replay(response.request)

    def replay(self, request: httpx.Request) -> None:
        answer = self._own.request(
            request.method, request.url, headers=request.headers, content=request.content
        )
        told = (answer.status_code, answer.json()["code"])
        assert told == (401, "request_not_bound"), (request.method, request.url.path, told)


def test_every_change_is_carried_out_once(
    account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> None:
    who = account()
    http = client(who)
    eve = Eavesdropper(http, client())
    thing = create(http, who, "thing")
    thing.push(who.key)
    (head,) = thing.seal({"y.txt": b"more"})
    thing.branch("side", head)
    side = f"{thing.url}/refs/branch/side"
    ok(http.patch(side, json={"head": thing.get("/log")["items"][1]["id"], "expected_head": head}))
    http.delete(side)
    ok(http.patch(thing.url, json={"name": "other"}))
    http.delete(thing.url)
    ok(http.post(f"{thing.url}/restore"))
    http.delete(thing.url)
    assert len(eve.seen) == 16
    for request in eve.seen:
        eve.replay(request)
