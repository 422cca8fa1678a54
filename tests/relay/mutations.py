"""How each route that changes something is tried: a request that succeeds, made anew for each call.

A new route fails the tests that walk the route table until it stands here or in `tests.relay.nouns`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import httpx
import pytest

from localstore.core.encoding import b64u, unb64u
from localstore.core.identity.device_grant import Purpose, fingerprint
from relay import domain
from relay.domain.repository.place import PREFIXES
from relay.http.routing import TABLE
from tests.relay import nouns
from tests.relay.auth.people import PASSWORD, Device
from tests.relay.conftest import Account, Relay
from tests.relay.histories import ok
from tests.relay.world import REPO, Named, Try, World, name

domain.load()
CHANGING = {(route.method, route.path): route for route in TABLE if route.changes}
BRANCH = f"{REPO}/branches/{{branch}}"
KEYS = "/api/v1/repos/device-keys"


@pytest.fixture
def world(
    relay: Relay, account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> Iterator[World]:
    who = account()
    made = World(relay, who, client(who), f"b{secrets.token_hex(6)}")
    yield made
    made.close()


def _approval(world: World) -> dict[str, Any]:
    one = Device(world.relay.url)
    keys = {"transport_x25519": b64u(one.transport.public), "device_ed25519": b64u(one.key.public)}
    codes = ok(world.browser.post("/api/v1/auth/cli/device-code", json={**keys, "label": "box"}))
    shown = fingerprint(one.transport.public, one.key.public)
    return {"user_code": codes["user_code"], "fingerprint": shown, "decision": "approve"}


def _form(world: World) -> Try:
    """A form of a page, which is sent to the address of its kind."""
    full_name = ok(world.browser.post("/api/v1/repos", json={"name": name()}))["full_name"]
    typed = {"act": "issue.create", "title": name(), "key": name()}
    return Try(f"/apps/{full_name}/dev?tab=issues&view=new", data=typed, http=world.browser)


def _token(world: World) -> str:
    return str(ok(world.browser.post("/api/v1/auth/tokens", json={"label": name()}))["id"])


def _api_key(world: World) -> str:
    page = world.browser.post("/settings/keys", data={"name": name()}).text
    return page.partition("/settings/keys/")[2].partition("/")[0]


def _proof(world: World) -> dict[str, Any]:
    machine = Device(world.relay.url)
    challenge = ok(world.http.post("/api/v1/repos/device-key-challenges", json=machine.start()))
    return machine.answer(Purpose.REGISTER, challenge["account"], challenge)


def _registered(world: World) -> str:
    return str(ok(world.http.post(KEYS, json=_proof(world)))["id"])


def _signed_in(world: World) -> dict[str, Any]:
    one, handle = Device(world.relay.url), name()
    challenge = ok(world.browser.post("/api/v1/auth/device-key/challenge", json=one.start(handle)))
    return one.answer(Purpose.LOGIN, handle, challenge)


def _finalize(world: World) -> Try:
    repo = world.repo
    body = {"device_key_id": world.who.key.id, **repo.prepare(world.who.key)}
    return Try(f"{repo.url}/branches/main/seal/finalize", body)


def _prepare(world: World) -> Try:
    repo, key = world.repo, world.who.key
    ok(repo.http.post(f"{repo.url}/branches/main/live/updates", json=repo.edit(key)))
    asked = {"device_key_id": key.id, "message": "first", "expected_head": None}
    return Try(f"{repo.url}/branches/main/seal/prepare", asked)


def _wish_of_trees(world: World) -> dict[str, Any]:
    return {
        "branch": "main",
        "device_key_id": world.who.key.id,
        "expected_head": None,
        "seals": [{"message": name(), "changes": [], "parents": []}],
    }


def _finalize_trees(world: World) -> Try:
    repo, key = world.repo, world.who.key
    fixed = ok(repo.http.post(f"{repo.url}/seals/prepare", json=_wish_of_trees(world)))
    signatures = [b64u(key.sign(unb64u(one["bytes"]))) for one in fixed["seals"]]
    body = {"prepare_id": fixed["prepare_id"], "device_key_id": key.id, "signatures": signatures}
    return Try(f"{repo.url}/seals/finalize", body)


def _moved(world: World) -> Try:
    repo = world.repo
    first, second = repo.seal({"f": b"1\n"}, {"f": b"2\n"})
    repo.branch("side", first)
    return Try(f"{repo.url}/refs/branch/side", {"head": second, "expected_head": first})


def _deleted(world: World) -> Try:
    repo = world.repo
    repo.branch("side", repo.seal({"f": b"1\n"})[0])
    return Try(f"{repo.url}/refs/branch/side")


def _restored(world: World) -> Try:
    repo = world.repo
    ok(world.http.delete(repo.url))
    return Try(f"{repo.url}/restore")


def _bootstrap(world: World) -> Try:
    return Try(f"{world.repo.url}/branches/main/live/bootstrap", {"device_key_id": world.who.key.id})


def _updates(world: World) -> Try:
    repo = world.repo
    return Try(f"{repo.url}/branches/main/live/updates", repo.edit(world.who.key))


def _sign_up(world: World) -> Try:
    return Try("/auth/sign-up", data={"handle": name(), "password": PASSWORD}, http=world.browser)


def _sign_in(world: World) -> Try:
    return Try("/auth/login", data={"handle": world.handle, "password": PASSWORD}, http=world.browser)


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", "/api/v1/repos"): lambda world: Try("/api/v1/repos", {"name": name()}),
    ("PATCH", REPO): lambda world: Try(world.repo.url, {"description": name()}),
    ("DELETE", REPO): lambda world: Try(world.repo.url),
    ("POST", f"{REPO}/restore"): _restored,
    ("POST", f"{REPO}/refs"): lambda world: Try(f"{world.repo.url}/refs", {"type": "branch", "name": name()}),
    ("PATCH", f"{REPO}/refs/{{type}}/{{name...}}"): _moved,
    ("DELETE", f"{REPO}/refs/{{type}}/{{name...}}"): _deleted,
    ("POST", f"{BRANCH}/live/bootstrap"): _bootstrap,
    ("POST", f"{BRANCH}/live/updates"): _updates,
    ("POST", f"{BRANCH}/seal/prepare"): _prepare,
    ("POST", f"{BRANCH}/seal/finalize"): _finalize,
    ("POST", f"{REPO}/seals/prepare"): lambda world: Try(
        f"{world.repo.url}/seals/prepare", _wish_of_trees(world)
    ),
    ("POST", f"{REPO}/seals/finalize"): _finalize_trees,
    ("POST", "/api/v1/repos/device-key-challenges"): lambda world: Try(
        "/api/v1/repos/device-key-challenges", Device(world.relay.url).start()
    ),
    ("POST", KEYS): lambda world: Try(KEYS, _proof(world)),
    ("PATCH", f"{KEYS}/{{key_id}}"): lambda world: Try(f"{KEYS}/{_registered(world)}", {"name": name()}),
    ("DELETE", f"{KEYS}/{{key_id}}"): lambda world: Try(f"{KEYS}/{_registered(world)}"),
    ("POST", "/api/v1/auth/pairing-codes"): lambda world: Try("/api/v1/auth/pairing-codes"),
    ("POST", "/api/v1/auth/tokens"): lambda world: Try(
        "/api/v1/auth/tokens", {"label": name()}, http=world.browser
    ),
    ("DELETE", "/api/v1/auth/tokens/{id}"): lambda world: Try(
        f"/api/v1/auth/tokens/{_token(world)}", http=world.browser
    ),
    ("POST", "/api/v1/auth/cli/approve"): lambda world: Try(
        "/api/v1/auth/cli/approve", _approval(world), http=world.browser
    ),
    ("PUT", "/api/v1/handles/me"): lambda world: Try("/api/v1/handles/me", {"handle": name()}),
    ("POST", "/api/v1/auth/device-key/login"): lambda world: Try(
        "/api/v1/auth/device-key/login", _signed_in(world), http=world.browser
    ),
    ("POST", "/auth/login"): _sign_in,
    ("POST", "/auth/sign-up"): _sign_up,
    ("POST", "/auth/logout"): lambda world: Try("/auth/logout", http=world.browser),
    ("POST", "/auth/refresh/logout"): lambda world: Try("/auth/refresh/logout", http=world.browser),
    ("POST", "/cli/authorize"): lambda world: Try(
        "/cli/authorize", data=_approval(world), http=world.browser
    ),
    **{("POST", f"/{prefix}/{{owner}}/{{name}}/dev"): lambda world: _form(world) for prefix in PREFIXES},
    ("POST", "/settings/keys"): lambda world: Try(
        "/settings/keys", data={"name": name()}, http=world.browser
    ),
    ("POST", "/settings/keys/{id}/rotate"): lambda world: Try(
        f"/settings/keys/{_api_key(world)}/rotate", data={"overlap": "0"}, http=world.browser
    ),
    ("POST", "/settings/keys/{id}/revoke"): lambda world: Try(
        f"/settings/keys/{_api_key(world)}/revoke", http=world.browser
    ),
    ("POST", "/settings/tokens"): lambda world: Try(
        "/settings/tokens", data={"label": name()}, http=world.browser
    ),
    ("POST", "/settings/tokens/{id}/revoke"): lambda world: Try(
        f"/settings/tokens/{_token(world)}/revoke", http=world.browser
    ),
}

READS: dict[Named, str] = {
    ("POST", f"{BRANCH}/live/lanes"): "a question whose body is too long for a query",
    ("POST", f"{BRANCH}/live/proof-context"): "a question",
    ("POST", f"{REPO}/have"): "a question",
    ("POST", f"{REPO}/packs/fetch"): "a question",
    ("POST", "/api/v1/sync/poll"): "a question",
    ("POST", "/api/v1/apikeys/validate"): "a question; it leaves the time of its use",
    ("POST", "/{owner}/{name}/git-upload-pack"): "git's question",
    ("POST", "/{owner}/{name}/git-receive-pack"): "a push of git, which is refused",
}
"""Routes that change nothing, whatever their method says."""

QUIET: dict[Named, str] = {
    ("POST", f"{REPO}/packs"): "bytes that no tree names yet",
    ("PUT", f"{REPO}/payloads/{{blake3}}"): "bytes that no tree names yet",
    ("PUT", f"{REPO}/payloads/{{blake3}}/manifest"): "bytes that no tree names yet",
    ("POST", f"{BRANCH}/seal/prepare"): "nobody but its caller sees it, and it ends by itself",
    ("POST", f"{REPO}/seals/prepare"): "nobody but its caller sees it, and it ends by itself",
    ("POST", "/api/v1/repos/device-key-challenges"): "what is registered with it is announced",
    ("POST", "/api/v1/auth/device-key/challenge"): "nobody is signed in yet",
    ("POST", "/api/v1/auth/cli/device-code"): "nobody is signed in yet",
    ("POST", "/api/v1/auth/cli/token"): "the session was announced when it was approved",
    ("POST", "/auth/guest-login"): "a guest is nobody, for a day",
    ("POST", "/auth/refresh"): "the same session, every hour",
}
"""Routes that succeed without an event, and why."""

REFUSED: dict[Named, str] = {
    ("POST", "/api/v1/cloud/launch/{app_id}/context"): "no provider is built in",
    ("POST", "/api/v1/cloud/launch/{app_id}"): "no provider is built in",
    ("POST", "/api/v1/cloud/instances/{id}/stop"): "no provider is built in",
    ("POST", "/api/v1/billing/checkout"): "no payment provider is built in",
    ("POST", "/auth/arrival"): "the node of these tests has no identity provider",
    ("POST", "/settings/sign-in/{id}/link"): "the node of these tests has no identity provider",
    ("POST", "/settings/sign-in/{id}/unlink"): "the node of these tests has no identity provider",
}
"""Routes that no request can succeed with here; tests/relay/domain/test_cloud_and_billing.py and
tests/relay/auth/test_oidc.py ask them."""

QUESTIONS: dict[str, list[str]] = {}
"""What the crawl for hidden paths asks of each route that reads below a repository, by method and path."""

for _noun in iter_modules(nouns.__path__):
    _module = import_module(f"tests.relay.nouns.{_noun.name}")
    MUTATIONS |= getattr(_module, "MUTATIONS", {})
    QUIET |= getattr(_module, "QUIET", {})
    QUESTIONS |= getattr(_module, "QUESTIONS", {})
