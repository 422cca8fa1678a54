"""A creating request that is sent again with its Idempotency-Key gets its first answer and creates nothing.

Every creating route is tried, and which these are is read from the route table."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select

from localstore.core.encoding import b64u, unb64u
from localstore.core.identity.device_grant import Purpose
from relay import routes
from relay.db.schema import tables
from relay.http.routing import TABLE
from tests.relay.auth.people import Browser, Device
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok

routes.load()
CREATING = sorted((route.method, route.path) for route in TABLE if route.creates)
REPO = "/api/v1/repos/{id}"


@dataclass
class World:
    """Somebody with a repository, at two doors: signed requests and a browser."""

    relay: Relay
    who: Account
    http: httpx.Client
    repo: Repository
    browser: Browser

    def rows(self, table: Any) -> int:
        async def count() -> int:
            async with self.relay.node.db.read() as tx:
                return int(await tx.value(select(func.count()).select_from(table)))

        return self.relay.run(count())


@dataclass
class Creation:
    """`wish` makes the body of a request that creates one row more of `table`."""

    table: Any
    wish: Callable[[World], Any]
    path: Callable[[World], str] = lambda _world: ""
    by_browser: bool = False


def device(world: World) -> dict[str, Any]:
    return {**Device(world.relay.url).start(), "name": "laptop"}


def proof(world: World) -> dict[str, Any]:
    machine = Device(world.relay.url)
    challenge = ok(world.http.post("/api/v1/repos/device-key-challenges", json=machine.start()))
    return machine.answer(Purpose.REGISTER, challenge["account"], challenge)


def prepared(world: World) -> dict[str, Any]:
    world.repo = create(world.http, world.who, f"r{secrets.token_hex(6)}")
    return {"device_key_id": world.who.key.id, **world.repo.prepare(world.who.key)}


def prepared_trees(world: World) -> dict[str, Any]:
    repo, key = world.repo, world.who.key
    wish = {
        "branch": "main",
        "device_key_id": key.id,
        "expected_head": repo.head(),
        "seals": [{"message": secrets.token_hex(6), "changes": [], "parents": []}],
    }
    fixed = ok(world.http.post(f"{repo.url}/seals/prepare", json=wish))
    return {
        "prepare_id": fixed["prepare_id"],
        "device_key_id": key.id,
        "signatures": [b64u(key.sign(unb64u(one["bytes"]))) for one in fixed["seals"]],
    }


def named(world: World) -> dict[str, Any]:
    return {"name": f"n{secrets.token_hex(6)}"}


CREATIONS: dict[tuple[str, str], Creation] = {
    ("POST", "/api/v1/repos"): Creation(tables["repo"], named),
    ("POST", f"{REPO}/refs"): Creation(tables["ref"], lambda world: {"type": "branch", **named(world)}),
    ("POST", f"{REPO}/labels"): Creation(tables["label"], named),
    ("POST", f"{REPO}/branches/{{branch}}/seal/finalize"): Creation(tables["seal"], prepared),
    ("POST", f"{REPO}/seals/finalize"): Creation(tables["seal"], prepared_trees),
    ("POST", "/api/v1/repos/device-key-challenges"): Creation(tables["challenge"], device),
    ("POST", "/api/v1/repos/device-keys"): Creation(tables["device_key"], proof),
    ("POST", "/api/v1/auth/pairing-codes"): Creation(tables["pairing_code"], lambda _world: None),
    ("POST", "/api/v1/auth/tokens"): Creation(
        tables["session"], lambda _world: {"label": secrets.token_hex(4)}, by_browser=True
    ),
}


@pytest.fixture
def world(
    relay: Relay, account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> Iterator[World]:
    who = account()
    http = client(who)
    browser = Browser(relay.url).sign_up(f"b{secrets.token_hex(6)}")
    yield World(relay, who, http, create(http, who, "thing"), browser)
    browser.close()


def test_every_creating_route_is_tried() -> None:
    """A new one fails here until it says how it is tried."""
    assert sorted(CREATIONS) == CREATING


@pytest.mark.parametrize("route", CREATING, ids=lambda route: route[1])
def test_sent_twice_created_once(world: World, route: tuple[str, str]) -> None:
    made = CREATIONS[route]
    body, other = made.wish(world), made.wish(world)
    http = world.browser if made.by_browser else world.http
    path = route[1].replace("{id}", world.repo.id).replace("{branch}", "main")
    if "branches" in path:
        body = made.wish(world)  # of the repository that the path names
        path = route[1].replace("{id}", world.repo.id).replace("{branch}", "main")
    key = {"Idempotency-Key": f"{secrets.token_hex(16)}"}
    before = world.rows(made.table)
    first = http.post(path, json=body, headers=key)
    assert first.status_code == 201, first.text
    created = world.rows(made.table) - before
    assert created >= 1
    for _ in range(2):
        again = http.post(path, json=body, headers=key)
        assert (again.status_code, again.json()) == (first.status_code, first.json())
        assert again.headers.get("location") == first.headers.get("location")
    assert world.rows(made.table) - before == created
    if body is not None:
        refused = http.post(path, json=other, headers=key)
        assert refused.status_code == 422, refused.text
        assert "used for another request" in refused.json()["detail"]
        assert world.rows(made.table) - before == created


def test_a_refused_request_may_be_sent_again(world: World) -> None:
    """Only what was done is kept, with its effect: what failed left nothing, and works once it can."""
    key = {"Idempotency-Key": secrets.token_hex(16)}
    tag = {"type": "tag", "name": "v1"}
    assert world.http.post(f"{world.repo.url}/refs", json=tag, headers=key).status_code == 422
    world.repo.seal({"f": b"1\n"})
    first = world.http.post(f"{world.repo.url}/refs", json=tag, headers=key)
    assert first.status_code == 201
    assert world.http.post(f"{world.repo.url}/refs", json=tag, headers=key).json() == first.json()
    assert world.http.post(f"{world.repo.url}/refs", json=tag).status_code == 409


def test_a_key_is_one_accounts(world: World, account: Callable[..., Account], client: Any) -> None:
    key = {"Idempotency-Key": secrets.token_hex(16)}
    other = account()
    ids = {
        ok(http.post("/api/v1/repos", json={"name": "same"}, headers=key))["id"]
        for http in (world.http, client(other))
    }
    assert len(ids) == 2


def test_without_an_account_a_key_is_refused_not_ignored(relay: Relay, client: Any) -> None:
    key = {"Idempotency-Key": secrets.token_hex(16)}
    anonymous = [
        route for route in TABLE if (route.method, route.status) == ("POST", 201) and not route.stream
    ]
    anonymous = [route for route in anonymous if not route.creates]
    assert anonymous
    for route in anonymous:
        wish = Device(relay.url).start("somebody") if "challenge" in route.path else {}
        answer = client().post(route.path, json=wish, headers=key)
        assert answer.status_code == 422, (route.path, answer.text)


def test_neither_keys_nor_tokens_lie_in_the_database(world: World) -> None:
    """Whoever reads a backup learns no token that was shown once."""
    key = secrets.token_hex(16)
    made = world.browser.post("/api/v1/auth/tokens", json={"label": "ci"}, headers={"Idempotency-Key": key})
    code = world.http.post("/api/v1/auth/pairing-codes", headers={"Idempotency-Key": key})

    async def kept() -> list[Any]:
        async with world.relay.node.db.read() as tx:
            return [tuple(row) for row in await tx.all(select(tables["idempotency"]))]

    text = repr(world.relay.run(kept()))
    assert len(text) > 100
    for secret in (key, made.json()["token"], made.json()["id"], code.json()["code"]):
        assert secret not in text
