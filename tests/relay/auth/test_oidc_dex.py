"""Signing in by Dex, a provider that others wrote in Go: people, tokens that it signed for something else,
tokens that were changed on the way, and Dex that is down. Where Go is installed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from localstore.core.encoding import b64u, unb64u
from localstore.core.model.auth import USER_INFO
from tests import golang
from tests.relay.auth.dex import MODULES, OTHER, PACKAGE, PUBLIC, TOKEN_SECONDS, Dex
from tests.relay.auth.people import Browser
from tests.relay.auth.provider import CLIENT, SECRET, by_hmac

SETTINGS = "/settings?tab=sign-in"
NONE = b64u(b'{"alg":"none"}')


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golang.program(tmp_path_factory.mktemp("go"), PACKAGE, MODULES)


@pytest.fixture(scope="module")
def dex(executable: Path) -> Iterator[Dex]:
    found = Dex()
    yield found
    found.close()


@pytest.fixture(scope="module")
def relay_variables(dex: Dex, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    file = tmp_path_factory.mktemp("providers") / "providers.json"
    file.write_text(json.dumps([{"name": "public", "issuer": dex.issuer, "client_id": PUBLIC}]))
    return {
        "TR_RATE_LIMITS": "off",
        "RUST_LOG": "off",
        "RAUTHY_URL": dex.issuer,
        "RAUTHY_CLIENT_ID": CLIENT,
        "RAUTHY_CLIENT_SECRET": SECRET,
        "TR_OIDC_PROVIDERS": str(file),
    }


@pytest.fixture(scope="module")
def serving(
    dex: Dex, executable: Path, relay: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    with dex.running(executable, tmp_path_factory.mktemp("dex"), relay.url):
        yield


@pytest.fixture(autouse=True)
def honest(dex: Dex, serving: None, relay: Any) -> None:
    dex.down, dex.change = False, lambda token: token
    relay.node.providers._known.clear()


@pytest.fixture
def brought(dex: Dex, relay: Any) -> Callable[..., dict[str, str]]:
    """What a person's browser brings back from Dex, to which the relay sent it."""
    return lambda location, person: dex.sign_in(location, person, f"{relay.url}/auth/callback")


def start(browser: Browser, provider: str = "rauthy") -> str:
    answer = browser.get("/auth/login", params={"provider": provider, "return_to": SETTINGS})
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def linking(browser: Browser) -> str:
    """The address to which the browser is sent to link Dex."""
    page = browser.post("/settings/sign-in/rauthy/link").text
    return page.split('content="0;url=')[1].split('"')[0].replace("&amp;", "&")


def come_back(browser: Browser, query: dict[str, str], provider: str = "") -> Any:
    return browser.get(f"/auth/callback{provider}", params=query)


def arrive(browser: Browser, brought: Callable[..., dict[str, str]], person: str) -> None:
    """Sign in for the first time, with the handle that is offered."""
    answer = come_back(browser, brought(start(browser), person))
    assert answer.headers["location"] == "/auth/arrival", answer.text
    assert f'value="{person}"' in browser.get("/auth/arrival").text
    answer = browser.post("/auth/arrival", data={"handle": person})
    assert (answer.status_code, answer.headers["location"]) == (303, SETTINGS), answer.text


def me(browser: Browser) -> Any:
    return browser.get(USER_INFO.path).json()


def test_somebody_comes_for_the_first_time_and_again(browser, dex, brought) -> None:
    person, first, again = dex.new_person(), browser(), browser()
    arrive(first, brought, person)
    assert (me(first)["handle"], me(first)["signed_in_by"]) == (person, "rauthy")
    assert come_back(again, brought(start(again), person)).headers["location"] == SETTINGS
    assert me(again)["user_id"] == me(first)["user_id"]


def test_a_client_without_a_secret_meets_the_same_person(browser, dex, brought) -> None:
    person, first, again = dex.new_person(), browser(), browser()
    arrive(first, brought, person)
    answer = come_back(again, brought(start(again, "public"), person), "/public")
    assert answer.headers["location"] == SETTINGS
    assert me(again)["user_id"] == me(first)["user_id"]


def test_an_account_links_dex_and_unlinks_it(browser, dex, brought, name) -> None:
    person, owner, by_dex, other = dex.new_person(), browser().sign_up(name()), browser(), browser()
    assert come_back(owner, brought(linking(owner), person)).headers["location"] == SETTINGS
    assert come_back(by_dex, brought(start(by_dex), person)).headers["location"] == SETTINGS
    assert me(by_dex)["user_id"] == me(owner)["user_id"]
    answer = come_back(other.sign_up(name()), brought(linking(other), person))
    assert answer.status_code == 409 and "linked to another account" in answer.text
    assert owner.post("/settings/sign-in/rauthy/unlink").status_code == 303
    stranger = browser()
    assert come_back(stranger, brought(start(stranger), person)).headers["location"] == "/auth/arrival"


def test_the_last_way_in_stays(browser, dex, brought) -> None:
    owner = browser()
    arrive(owner, brought, dex.new_person())
    assert owner.post("/settings/sign-in/rauthy/unlink").status_code == 409


def test_dex_that_is_down(browser, relay, dex, brought) -> None:
    person, owner, late = dex.new_person(), browser(), browser()
    arrive(owner, brought, person)
    query = brought(start(late), person)
    dex.down = True
    assert come_back(late, query).status_code == 503  # between the person's password and the token
    relay.node.providers._known.clear()
    assert browser().get("/auth/login", params={"provider": "rauthy"}).status_code == 503
    assert owner.get(USER_INFO.path).status_code == 200
    dex.down = False
    assert come_back(late, brought(start(late), person)).headers["location"] == SETTINGS


def test_dex_gives_no_token_to_whoever_did_not_begin(browser, dex, brought) -> None:
    """A code belongs to the challenge with which it was asked for, and can be used once."""
    victim, attacker = browser(), browser()
    stolen = brought(start(victim), dex.new_person())
    own = brought(start(attacker), dex.new_person())
    assert come_back(attacker, {**own, "code": stolen["code"]}).status_code == 401
    assert attacker.get(USER_INFO.path).status_code == 401
    own = brought(start(attacker), dex.new_person())
    assert come_back(attacker, own).status_code == 303
    location = start(attacker)
    state = parse_qs(urlsplit(location).query)["state"][0]
    assert come_back(attacker, {"code": own["code"], "state": state}).status_code == 401


def refused(browser: Browser, query: dict[str, str]) -> None:
    answer = come_back(browser, query)
    assert answer.status_code == 401 and "did not confirm this sign-in" in answer.text, answer.text
    assert browser.get(USER_INFO.path).status_code == 401
    assert browser.get("/auth/arrival").status_code == 400


def nonce_of(location: str) -> str:
    return parse_qs(urlsplit(location).query)["nonce"][0]


def test_a_token_of_another_sign_in_is_refused(browser, dex, brought) -> None:
    person, first, again = dex.new_person(), browser(), browser()
    arrive(first, brought, person)
    earlier = dex.tokens[-1]
    dex.change = lambda token: earlier
    refused(again, brought(start(again), person))


@pytest.mark.parametrize(
    "scope", ["openid profile", f"openid profile audience:server:client_id:{CLIENT}"], ids=["own", "peer"]
)
def test_a_token_that_dex_signed_for_another_program_is_refused(browser, dex, brought, scope) -> None:
    """Also one that names our client as its audience, because this program is a trusted peer of it."""
    guest, person = browser(), dex.new_person()
    location = start(guest)
    foreign = dex.token_for(OTHER, person, nonce_of(location), scope)
    dex.change = lambda token: foreign
    refused(guest, brought(location, person))


def test_a_token_that_has_expired_is_refused(browser, dex, brought, later) -> None:
    guest = browser()
    query = brought(start(guest), dex.new_person())
    later(TOKEN_SECONDS + 180)  # its sign-in lasts 600 seconds
    answer = come_back(guest, query)
    assert answer.status_code == 401 and "did not confirm this sign-in" in answer.text, answer.text


def with_claims(token: str, **changed: Any) -> str:
    """The token with other claims, under the same signature."""
    head, body, signature = token.split(".")
    claims = {**json.loads(unb64u(body)), **changed}
    return f"{head}.{b64u(json.dumps(claims).encode())}.{signature}"


def signed_by(key: Any, token: str) -> str:
    """The claims of the token, signed by a key that claims to be the one of Dex."""
    head, body, _ = token.split(".")
    return str(jwt.encode(json.loads(unb64u(head)), json.loads(unb64u(body)), key))


def unsigned(token: str) -> str:
    return f"{NONE}.{token.split('.')[1]}."


FORGED: dict[str, Callable[[str], str]] = {
    "another subject": lambda token: with_claims(token, sub="root"),
    "another audience": lambda token: with_claims(token, aud="somebody"),
    "another end": lambda token: with_claims(token, exp=2**40),
    "without a signature": lambda token: token.rpartition(".")[0] + ".",
    "half a signature": lambda token: token[:-40],
    "none": unsigned,
    "a key of nobody": lambda token: signed_by(RSAKey.generate_key(2048), token),
    "none at all": lambda token: "",
    "no token": lambda token: "a.b.c",
}


@pytest.mark.parametrize("case", FORGED)
def test_a_token_that_was_changed_on_the_way_is_refused(browser, dex, brought, case) -> None:
    guest = browser()
    dex.change = FORGED[case]
    refused(guest, brought(start(guest), dex.new_person()))


def test_the_public_key_of_dex_is_no_shared_secret(browser, dex, brought) -> None:
    guest = browser()
    (key,) = dex.public_keys()
    secret = RSAKey.import_key(key).as_pem(private=False)
    dex.change = lambda token: by_hmac(secret)(json.loads(unb64u(token.split(".")[1])))
    refused(guest, brought(start(guest), dex.new_person()))
