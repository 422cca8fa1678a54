"""A signed change sent a second time is refused as what it is, whatever has become of its subject since."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import msgspec
from blake3 import blake3

from localstore.core.encoding import b64u, digest, unb64u
from localstore.core.model.live import Bootstrap
from localstore.core.request_signature import SAFE_METHODS
from localstore.core.update import LiveUpdate, signing_bytes
from tests.relay.conftest import Account
from tests.relay.histories import Repository, create, ok

CONTENT = b"hello"


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


def push(thing: Repository, who: Account) -> None:
    """One live edit, sealed, as a device does it."""
    live, seal = f"{thing.url}/branches/main/live", f"{thing.url}/branches/main/seal"
    ok(thing.http.put(f"{thing.url}/payloads/{blake3(CONTENT).hexdigest()}", content=CONTENT))
    start = msgspec.convert(
        ok(thing.http.post(f"{live}/bootstrap", json={"device_key_id": who.key.id, "store": "s"})), Bootstrap
    )
    made = LiveUpdate(
        n=1,
        settled=0,
        path="x.txt",
        kind="create_text",
        gen=0,
        base=0,
        signature="",
        blake3=digest(CONTENT).hex(),
        size=len(CONTENT),
    )
    raw = signing_bytes(thing.id, start.branch_id, start.replica, who.key.id, made)
    signed = msgspec.to_builtins(msgspec.structs.replace(made, signature=b64u(who.key.sign(raw))))
    batch = {"device_key_id": who.key.id, "replica": start.replica, "updates": [signed]}
    ok(thing.http.post(f"{live}/updates", json=batch))
    wish = {"device_key_id": who.key.id, "message": "first", "expected_head": None, "expected_seq": 1}
    prepared = ok(thing.http.post(f"{seal}/prepare", json=wish))
    signature = b64u(who.key.sign(unb64u(prepared["bytes"])))
    done = {"prepare_id": prepared["prepare_id"], "device_key_id": who.key.id, "signature": signature}
    ok(thing.http.post(f"{seal}/finalize", json=done))


def test_every_change_is_carried_out_once(
    account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> None:
    who = account()
    http = client(who)
    eve = Eavesdropper(http, client())
    thing = create(http, who, "thing")
    push(thing, who)
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
