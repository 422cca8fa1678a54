"""What holds for every route: access before validation, JSON for programs, nothing asked of the public."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from biscuit_auth import Biscuit, PublicKey

from localstore.core.errors import Unauthorized
from localstore.core.identity.bearer import from_text, parse_script_token
from localstore.core.identity.capability import Guard
from localstore.core.model.limits import TOKEN_MINTED_MAX, TOKEN_MINTED_MIN
from relay import domain
from relay.http.routing import TABLE, Route
from tests.endpoints import endpoints
from tests.relay.auth.people import PASSWORD, Device
from tests.relay.conftest import Account, Relay

domain.load()
PROBLEM = "application/problem+json"
MISSING = "0190a1b2c3d47e8f9a0b1c2d3e4f5a6b"
GARBAGE = b'{"no": "such", "member'

Client = Callable[..., httpx.Client]


def name(route: Route) -> str:
    return f"{route.method} {route.path}"


def filled(route: Route, **values: str) -> str:
    path = route.path.replace("...", "")
    for parameter in route.params:
        path = path.replace(f"{{{parameter}}}", values.get(parameter, "x"))
    return path


def is_open(route: Route) -> bool:
    return route.operation.anonymous


OPEN = [route for route in TABLE if is_open(route)]
CLOSED = [route for route in TABLE if not is_open(route) and not route.path.startswith("/settings")]
BODIED = [route for route in TABLE if route.body and route.path.startswith("/api/v1/repos/{id}")]


@pytest.fixture(scope="module")
def hidden(relay: Relay) -> str:
    """A private repository of somebody's."""
    with relay.client(relay.account("hider")) as http:
        return str(http.post("/api/v1/repos", json={"name": "hidden"}).json()["id"])


@pytest.mark.parametrize("route", OPEN, ids=name)
def test_nothing_is_asked_of_the_public(client: Client, route: Route) -> None:
    answer = client().request(route.method, filled(route, id=MISSING))
    # Who-am-I and refresh are open to ask and have no answer for nobody. git asks for a password after a 401
    # alone, which therefore stands for what is missing.
    nobody = name(route) in ("GET /auth/userinfo", "POST /auth/refresh") or route.password
    assert (answer.status_code == 401) is nobody, answer.text


@pytest.mark.parametrize("route", CLOSED, ids=name)
def test_without_a_session_that_is_the_answer_whatever_the_body_says(client: Client, route: Route) -> None:
    answer = client().request(
        route.method,
        filled(route, id=MISSING) + "?limit=many",
        content=GARBAGE,
        headers={"Content-Type": "application/json"},
    )
    if route.path.startswith("/api/"):
        assert (answer.status_code, answer.headers["content-type"]) == (401, PROBLEM)
        assert answer.json()["code"] == "sign_in_required"
    else:
        assert answer.status_code in (303, 401)


@pytest.mark.parametrize("route", BODIED, ids=name)
def test_a_hidden_repository_is_missing_before_the_body_is_read(
    account: Callable[..., Account], client: Client, hidden: str, route: Route
) -> None:
    http = client(account())
    answers = [
        http.request(
            route.method,
            filled(route, id=repo),
            content=GARBAGE,
            headers={"Content-Type": "application/json"},
        )
        for repo in (hidden, MISSING)
    ]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content


@pytest.mark.parametrize("path", ["/api/v1/client-config", "/version", "/health", "/ready", "/readyz"])
def test_programs_get_json(client: Client, path: str) -> None:
    answer = client().get(path)
    assert answer.headers["content-type"] == "application/json"
    assert client().get(path + "/x").headers["content-type"] == PROBLEM


def test_a_body_that_is_no_json_is_refused(account: Callable[..., Account], client: Client) -> None:
    answer = client(account()).post("/api/v1/repos", content=b"<x/>", headers={"Content-Type": "text/xml"})
    assert (answer.status_code, answer.headers["content-type"]) == (415, PROBLEM)


def test_every_endpoint_is_served_once_and_every_route_for_programs_is_an_endpoint() -> None:
    declared = {name: f"{one.method} {one.path}" for name, one in endpoints().items()}
    served = [name(route) for route in TABLE]
    assert sorted(served) == sorted(set(served))
    assert not {one: where for one, where in declared.items() if where not in served}, (
        "no route @serves these"
    )
    pages = {"POST /settings/tokens/{id}/revoke", "GET /"}  # answer with the next page alone
    for_programs = {
        name(route)
        for route in TABLE
        if "socket" not in route.wants and route.media == "application/json" and name(route) not in pages
    }
    bare = for_programs - set(declared.values()) - {"GET /api/v1/openapi.json"}  # which describes them all
    assert not bare, "declare these as endpoints in localstore/core/model"


@pytest.fixture
def minted(relay: Relay, client: Client) -> dict[str, bytes]:
    """A fresh token of every kind."""
    one = secrets.token_hex(4)
    found = {"guest": from_text(client().post("/auth/guest-login").json()["token"])}
    found["device"] = from_text(Device(relay.url).sign_in(f"d{one}").json()["token"])
    browser = client(headers={"Origin": relay.url})
    form = {"handle": f"b{one}", "password": PASSWORD}
    assert browser.post("/auth/sign-up", data=form).status_code == 303
    found["browser"] = from_text(browser.cookies["tr_session"])
    for access in ("read", "write", "admin"):
        sent = {"label": access, "access": access, "days": 3}
        made = browser.post("/api/v1/auth/tokens", json=sent)
        found[access] = parse_script_token(made.json()["token"]).raw
    return found


def test_every_token_has_the_promised_size(minted: dict[str, bytes]) -> None:
    for kind, raw in minted.items():
        assert TOKEN_MINTED_MIN <= len(raw) <= TOKEN_MINTED_MAX, (kind, len(raw))


def test_every_token_ends_when_it_should(relay: Relay, minted: dict[str, bytes]) -> None:
    hours = {"guest": 24, "browser": 1, "device": 24, "read": 72, "write": 72, "admin": 72}
    now = datetime.now(UTC)
    guard = Guard(relay.run(relay.node.signer.public_keys()))
    for kind, raw in minted.items():
        token, end = guard.inspect(raw), now + timedelta(hours=hours[kind])
        token.authorize("read", end - timedelta(minutes=1))
        with pytest.raises(Unauthorized, match="expired"):
            token.authorize("read", end + timedelta(minutes=1))


def test_whoever_holds_the_public_key_reads_who_may_what_until_when(relay: Relay, client: Client) -> None:
    """In Datalog, with the library alone and without asking the node."""
    form = {"handle": f"r{secrets.token_hex(4)}", "password": PASSWORD}
    with contextlib.closing(client(headers={"Origin": relay.url})) as browser:
        browser.post("/auth/sign-up", data=form)
        me, raw = browser.get("/auth/userinfo").json(), from_text(browser.cookies["tr_session"])
    keys = relay.run(relay.node.signer.public_keys())
    token = Biscuit.from_bytes(raw, PublicKey(f"ed25519/{keys[max(keys)].hex()}"))
    facts = token.block_source(0).replace("\n", " ")
    assert f"user(hex:{me['user_id'].replace('-', '')});" in facts
    assert f"sid(hex:{me['session_id']});" in facts
    rights = facts.partition("caps({")[2].partition("})")[0]
    assert set(rights.split(", ")) == {'"admin"', '"read"', '"write"'}
    assert f"check if time($t), $t < {me['expires_at'][:19]}" in facts


def test_no_page_takes_tls_for_end_to_end_encryption(client: Client) -> None:
    for path in ("/auth/login", "/auth/sign-up"):
        text = client().get(path).text.lower()
        assert not any(claim in text for claim in ("end-to-end", "e2e", "zero-knowledge", "encrypt"))
    assert client().get("/api/v1/client-config").json()["node"]["e2ee"]["status"] == "disabled"
