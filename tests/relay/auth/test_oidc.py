"""Signing in by identity providers: a provider on this machine that is honest, forged tokens, callbacks that
nobody began, linking and unlinking, providers that are down."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlsplit

import pytest
from joserfc import jwt

from localstore.core.encoding import b64u
from localstore.core.identity.bearer import from_text, to_text
from localstore.core.identity.capability import attenuate
from localstore.core.model import auth as endpoints
from relay import config as configuration
from relay.base.environment import StartRefused
from relay.run import data_folder
from tests.relay.auth.people import Browser
from tests.relay.auth.provider import CLIENT, SECRET, Claims, Provider, by_hmac, other_ec, other_rsa

USER_INFO = endpoints.USER_INFO.path
ENTRY = '{"name": "a", "client_id": "x", "issuer": "https://i"}'
NONE = b64u(b'{"alg":"none","kid":"one"}')


@pytest.fixture(scope="module")
def github() -> Iterator[Provider]:
    running = Provider()
    running.user = {"id": 583231, "login": "octo", "name": "Octo Cat"}
    yield running
    running.close()


@pytest.fixture(scope="module")
def relay_variables(
    provider: Provider, github: Provider, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("providers")
    (folder / "secret").write_text(f"{SECRET}\n")
    entries = [
        {
            "name": "hub",
            "kind": "github",
            "issuer": github.issuer,
            "client_id": CLIENT,
            "client_secret_file": str(folder / "secret"),
            "label": "The Hub",
        },
        {"name": "public", "issuer": provider.issuer + "/", "client_id": CLIENT},
    ]
    (folder / "providers.json").write_text(json.dumps(entries))
    return {
        "TR_RATE_LIMITS": "off",
        "RUST_LOG": "off",
        "RAUTHY_URL": provider.issuer,
        "RAUTHY_CLIENT_ID": CLIENT,
        "RAUTHY_CLIENT_SECRET": SECRET,
        "TR_OIDC_PROVIDERS": str(folder / "providers.json"),
    }


@pytest.fixture(autouse=True)
def honest(provider: Provider, relay: Any, name: Callable[[], str]) -> Iterator[None]:
    """Each test begins with an honest provider that names somebody new."""
    handle = name()
    provider.person = {"sub": f"s-{handle}", "preferred_username": handle, "email": "mira@example.org"}
    provider.forge, provider.sign, provider.down = (lambda claims: claims), None, False
    provider.metadata = {}
    provider.published = [provider.key.as_dict(private=False)]
    relay.node.providers._known.clear()
    yield


def start(browser: Browser, provider: str = "rauthy", return_to: str = "/settings?tab=sign-in") -> str:
    answer = browser.get("/auth/login", params={"provider": provider, "return_to": return_to})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def come_back(browser: Browser, provider: Provider, location: str, **changed: str) -> Any:
    return browser.get(_path_of(location), params={**provider.authorize(location), **changed})


def _path_of(location: str) -> str:
    """The path to which the provider is asked to send the browser back."""
    return urlsplit(parse_qs(urlsplit(location).query)["redirect_uri"][0]).path


def arrive(browser: Browser, provider: Provider, handle: str | None = None, named: str = "rauthy") -> str:
    """Sign in for the first time; returns the handle."""
    answer = come_back(browser, provider, start(browser, named))
    assert answer.headers["location"] == "/auth/arrival", answer.text
    chosen = handle or provider.person["preferred_username"]
    answer = browser.post("/auth/arrival", data={"handle": chosen})
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"] == "/settings?tab=sign-in"
    return str(chosen)


def me(browser: Browser) -> Any:
    return browser.get(USER_INFO).json()


def test_somebody_comes_for_the_first_time_and_again(browser, provider) -> None:
    first = browser()
    location = start(first)
    query = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
    assert location.startswith(f"{provider.issuer}/authorize?")
    assert query["code_challenge_method"] == "S256" and query["response_type"] == "code"
    assert len(query["state"]) >= 43 and len(query["nonce"]) >= 43
    answer = come_back(first, provider, location)
    assert answer.headers["location"] == "/auth/arrival"
    page = first.get("/auth/arrival").text
    assert f'value="{provider.person["preferred_username"]}"' in page  # what they are called there is offered
    assert first.get(USER_INFO).status_code == 401  # nobody yet
    answer = first.post("/auth/arrival", data={"handle": provider.person["preferred_username"]})
    assert answer.status_code == 303 and answer.headers["location"] == "/settings?tab=sign-in"
    account = me(first)
    assert (account["phase"], account["level"], account["signed_in_by"]) == ("oidc_linked", 3, "rauthy")
    assert account["email"] is None  # no address is kept: it proves nothing
    form = provider.asked[-1]
    assert form["grant_type"] == "authorization_code" and len(form["code_verifier"]) >= 43
    pair = base64.b64decode(provider.authorizations[-1].removeprefix("Basic ")).decode()
    assert unquote_plus(pair.partition(":")[2]) == SECRET

    again = browser()
    answer = come_back(again, provider, start(again))
    assert answer.headers["location"] == "/settings?tab=sign-in"
    assert me(again)["user_id"] == account["user_id"]
    assert "Last used" in again.get("/settings?tab=sign-in").text


def test_the_same_person_by_a_public_client_is_the_same(browser, provider) -> None:
    first, again = browser(), browser()
    arrive(first, provider, named="public")
    assert provider.authorizations[-1] == "" and provider.asked[-1]["client_id"] == CLIENT
    assert come_back(again, provider, start(again)).headers["location"] == "/settings?tab=sign-in"
    assert me(again)["user_id"] == me(first)["user_id"]


def test_one_address_leads_two_people_nowhere_common(browser, provider, name) -> None:
    """Who claims the e-mail address of somebody else gets an account of their own."""
    first, other = browser(), browser()
    arrive(first, provider)
    provider.person = {"sub": "somebody-else", "preferred_username": name(), "email": "mira@example.org"}
    arrive(other, provider)
    assert me(other)["user_id"] != me(first)["user_id"]


def test_a_taken_handle_is_refused_and_another_may_be_chosen(browser, provider, name) -> None:
    taken = name()
    browser().sign_up(taken)
    provider.person["preferred_username"] = taken
    guest = browser()
    come_back(guest, provider, start(guest))
    assert f'value="{taken}"' not in guest.get("/auth/arrival").text
    answer = guest.post("/auth/arrival", data={"handle": taken})
    assert answer.status_code == 409 and "Sign in as you did before" in answer.text
    answer = guest.post("/auth/arrival", data={"handle": "no such handle!"})
    assert answer.status_code == 422
    assert guest.post("/auth/arrival", data={"handle": name()}).status_code == 303
    assert guest.post("/auth/arrival", data={"handle": name()}).status_code == 400  # once


def _forged(**changed: Any) -> Callable[[Claims], Claims]:
    return lambda claims: {k: v for k, v in {**claims, **changed}.items() if v is not ...}


FORGED: dict[str, Callable[[Claims], Claims]] = {
    "another issuer": _forged(iss="https://evil.example"),
    "no issuer": _forged(iss=...),
    "another audience": _forged(aud="somebody"),
    "audiences without ours": _forged(aud=["a", "b"]),
    "two audiences and no party": _forged(aud=[CLIENT, "b"]),
    "another party": _forged(azp="somebody"),
    "no audience": _forged(aud=...),
    "expired": lambda claims: {**claims, "exp": int(time.time()) - 3600},
    "expiry that is text": _forged(exp="soon"),
    "no expiry": _forged(exp=...),
    "no time of issue": _forged(iat=...),
    "issued in an hour": lambda claims: {**claims, "iat": int(time.time()) + 3600},
    "another nonce": _forged(nonce="of another sign-in"),
    "no nonce": _forged(nonce=...),
    "nonce that is a list": _forged(nonce=["x"]),
    "no subject": _forged(sub=...),
    "empty subject": _forged(sub=""),
    "subject that is a number": _forged(sub=7),
    "subject that is long": _forged(sub="x" * 256),
}


@pytest.mark.parametrize("case", FORGED)
def test_claims_that_do_not_hold_are_refused(browser, provider, case) -> None:
    provider.forge = FORGED[case]
    guest = browser()
    answer = come_back(guest, provider, start(guest))
    assert answer.status_code == 401 and "did not confirm this sign-in" in answer.text
    assert guest.get(USER_INFO).status_code == 401


def _signatures(provider: Provider) -> dict[str, Callable[[Claims], str]]:
    def tampered(claims: Claims) -> str:
        head, _, signature = jwt.encode({"alg": "RS256", "kid": "one"}, claims, provider.key).split(".")
        return f"{head}.{b64u(json.dumps({**claims, 'sub': 'root'}).encode())}.{signature}"

    return {
        "none": lambda claims: f"{NONE}.{b64u(json.dumps(claims).encode())}.",
        "none with a signature": lambda claims: f"{NONE}.{b64u(json.dumps(claims).encode())}.AAAA",
        "the public key as a secret": by_hmac(provider.key.as_pem(private=False)),
        "a key of nobody": lambda claims: jwt.encode({"alg": "RS256", "kid": "one"}, claims, other_rsa()),
        "a key that is not listed": lambda claims: jwt.encode(
            {"alg": "ES256", "kid": "two"}, claims, other_ec()
        ),
        "another kind of key": lambda claims: jwt.encode({"alg": "ES256", "kid": "one"}, claims, other_ec()),
        "changed after signing": tampered,
        "no token": lambda claims: "",
        "no token at all": lambda claims: "a.b.c",
        "a long one": lambda claims: "a" * 40_000,
    }


@pytest.mark.parametrize(
    "case",
    [
        "none",
        "none with a signature",
        "the public key as a secret",
        "a key of nobody",
        "a key that is not listed",
        "another kind of key",
        "changed after signing",
        "no token",
        "no token at all",
        "a long one",
    ],
)
def test_signatures_that_do_not_hold_are_refused(browser, provider, case) -> None:
    provider.sign = _signatures(provider)[case]
    guest = browser()
    answer = come_back(guest, provider, start(guest))
    assert answer.status_code == 401, answer.text
    assert guest.get(USER_INFO).status_code == 401


def test_a_provider_may_change_its_keys(relay, browser, provider) -> None:
    guest = browser()
    arrive(guest, provider)
    key = other_ec()
    provider.published = [key.as_dict(private=False)]
    provider.sign = lambda claims: jwt.encode({"alg": "ES256", "kid": "two"}, claims, key)
    relay.node.providers._known["rauthy"].keys_at -= 61  # a minute later
    again = browser()
    assert come_back(again, provider, start(again)).status_code == 303


def test_a_shared_secret_among_the_keys_counts_for_nothing(browser, provider) -> None:
    honest_keys = [{**key, "kid": "another"} for key in provider.published]
    secret = {"kty": "oct", "k": b64u(b"x" * 32), "kid": "one", "alg": "HS256"}
    provider.published = [secret, *honest_keys]
    provider.sign = by_hmac(b"x" * 32)
    guest = browser()
    assert come_back(guest, provider, start(guest)).status_code == 401
    assert guest.get(USER_INFO).status_code == 401


def test_a_provider_whose_only_key_is_a_shared_secret_is_out_of_order(browser, provider) -> None:
    provider.published = [{"kty": "oct", "k": b64u(b"x" * 32), "kid": "one", "alg": "HS256"}]
    provider.sign = by_hmac(b"x" * 32)
    guest = browser()
    assert come_back(guest, provider, start(guest)).status_code == 503
    assert guest.get(USER_INFO).status_code == 401


def test_callbacks_that_this_browser_did_not_begin(browser, provider) -> None:
    victim, attacker = browser(), browser()
    # Somebody else's code and state in this browser: login CSRF.
    brought = provider.authorize(start(attacker))
    start(victim)
    answer = victim.get("/auth/callback", params=brought)
    assert answer.status_code == 400 and "begin it again" in answer.text
    # That used up the victim's sign-in: its own answer comes too late.
    own = provider.authorize(start(victim))
    assert victim.get("/auth/callback", params={**own, "state": own["state"] + "x"}).status_code == 400
    assert victim.get("/auth/callback", params=own).status_code == 400
    # Twice, without a cookie, with no code.
    own = provider.authorize(start(victim))
    assert browser().get("/auth/callback", params=own).status_code == 400
    own = provider.authorize(start(victim))
    assert victim.get("/auth/callback", params={**own, "code": ""}).status_code == 400
    own = provider.authorize(start(victim))
    assert victim.get("/auth/callback", params=own).status_code == 303
    assert victim.get("/auth/callback", params=own).status_code == 400
    assert victim.get("/auth/callback", params={"state": "x" * 5000, "code": "y" * 9000}).status_code == 400
    assert victim.get("/auth/callback").status_code == 400


def test_what_another_provider_answered_is_not_taken(browser, provider) -> None:
    """Each provider has an address of its own to send people back to, and says who it is."""
    guest = browser()
    location = start(guest, "public")
    assert _path_of(location) == "/auth/callback/public"
    assert guest.get("/auth/callback", params=provider.authorize(location)).status_code == 400
    assert (
        guest.get("/auth/callback/hub", params=provider.authorize(start(guest, "public"))).status_code == 400
    )
    location = start(guest)
    assert guest.get(_path_of(location) + "/public", params=provider.authorize(location)).status_code == 400
    assert come_back(guest, provider, start(guest), iss="https://evil.example").status_code == 401


def test_a_provider_that_promises_to_say_who_it_is_has_to(browser, provider) -> None:
    provider.metadata = {"authorization_response_iss_parameter_supported": True}
    guest = browser()
    brought = provider.authorize(start(guest))
    del brought["iss"]
    assert guest.get("/auth/callback", params=brought).status_code == 401
    assert come_back(guest, provider, start(guest)).status_code == 303


def test_a_narrowed_token_is_no_cookie(relay, browser, name) -> None:
    owner = browser().sign_up(name())
    keys = relay.run(relay.node.signer.public_keys())
    narrow = to_text(attenuate(from_text(owner.cookies["tr_session"]), keys, ops=["read"]))
    thief = browser()
    thief.cookies.set("tr_session", narrow)
    assert thief.get(USER_INFO).status_code == 401
    form = {"label": "mine", "access": "admin", "days": "365"}
    assert "svct2_" not in thief.post("/settings/tokens", data=form).text
    assert thief.post("/settings/sign-in/rauthy/link").status_code != 200
    assert "svck_" not in thief.post("/settings/keys", data={"name": "mine"}).text


def test_a_code_that_the_provider_does_not_know(browser, provider) -> None:
    guest = browser()
    answer = come_back(guest, provider, start(guest), code="not one")
    assert answer.status_code == 401


def test_a_sign_in_ends_after_ten_minutes(browser, provider, later) -> None:
    guest = browser()
    brought = provider.authorize(start(guest))
    later(601)
    assert guest.get("/auth/callback", params=brought).status_code == 400


def test_the_provider_says_no(browser, provider) -> None:
    guest = browser()
    state = provider.authorize(start(guest))["state"]
    answer = guest.get("/auth/callback", params={"error": "access_denied<script>", "state": state})
    assert (
        answer.status_code == 401 and "did not sign you in" in answer.text and "<script>" not in answer.text
    )
    assert (
        "provider=hub&amp;return_to=/settings%3Ftab%3Dsign-in" in answer.text
    )  # another way leads there too


@pytest.mark.parametrize(
    "target", ["//evil.example", "/\\evil.example", "https://evil.example", "evil", "/\n"]
)
def test_no_sign_in_leads_to_another_site(browser, target) -> None:
    answer = browser().get("/auth/login", params={"provider": "rauthy", "return_to": target})
    assert answer.status_code == 400


def test_an_unknown_provider_is_named(browser) -> None:
    answer = browser().get("/auth/login", params={"provider": "nosuch"})
    assert answer.status_code == 400 and "rauthy, hub, public" in answer.text


def test_people_who_come_at_once_share_one_reading_of_the_metadata(relay, provider) -> None:
    """A provider that answers slowly is not asked once more for each of them."""

    async def come() -> list[str]:
        mine = relay.node.providers
        rauthy = mine.find("rauthy")
        starts = [mine.start(rauthy, "http://127.0.0.1/auth/callback", "s", "n", "v") for _ in range(5)]
        return await asyncio.gather(*starts)

    provider.reads.clear()
    assert len(set(relay.run(come()))) == 1
    assert provider.reads == ["/.well-known/openid-configuration"]


def test_a_provider_that_is_down_and_sessions_that_go_on(relay, browser, provider) -> None:
    guest = browser()
    arrive(guest, provider)
    relay.node.providers._known.clear()
    provider.down = True
    answer = browser().get("/auth/login", params={"provider": "rauthy"})
    assert answer.status_code == 503 and "Sign in with The Hub" in answer.text
    assert guest.get(USER_INFO).status_code == 200
    provider.down = False
    location = start(guest, return_to="/cli/authorize")
    provider.down = True
    answer = come_back(guest, provider, location)
    assert answer.status_code == 503 and "return_to=/cli/authorize" in answer.text


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "file:///etc/passwd"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": "http://[broken"},
        {"jwks_uri": 7},
    ],
)
def test_metadata_that_cannot_be_right(browser, provider, metadata) -> None:
    provider.metadata = metadata
    answer = browser().get("/auth/login", params={"provider": "rauthy"})
    assert answer.status_code == 503


def test_an_account_links_a_provider_and_unlinks_it(browser, provider, name) -> None:
    owner = browser().sign_up(name())
    answer = owner.post("/settings/sign-in/rauthy/link")
    location = refresh_of(answer.text)
    answer = come_back(owner, provider, location)
    assert answer.status_code == 303 and answer.headers["location"] == "/settings?tab=sign-in"
    page = owner.get("/settings?tab=sign-in").text
    assert "Unlink" in page and "Password" in page
    by_provider = browser()
    assert come_back(by_provider, provider, start(by_provider)).headers["location"] == "/settings?tab=sign-in"
    assert me(by_provider)["user_id"] == me(owner)["user_id"]
    assert me(by_provider)["phase"] == "local"
    # Nobody else may link the same person, nor the account a second one.
    other = browser().sign_up(name())
    answer = come_back(other, provider, refresh_of(other.post("/settings/sign-in/rauthy/link").text))
    assert answer.status_code == 409 and "linked to another account" in answer.text
    answer = owner.post("/settings/sign-in/rauthy/unlink")
    assert (answer.status_code, answer.headers["location"]) == (303, "/settings?tab=sign-in&unlinked=rauthy")
    page = owner.get(answer.headers["location"]).text
    assert "127.0.0.1 no longer leads into this account." in page
    assert "1 other session that began by it goes on" in page and "/settings?tab=tokens" in page
    assert by_provider.get(USER_INFO).status_code == 200
    by_provider.post("/auth/logout")
    assert "began by it" not in owner.get(answer.headers["location"]).text
    assert "no longer leads" not in owner.get("/settings?tab=sign-in&unlinked=%3Cb%3E").text
    assert owner.post("/settings/sign-in/rauthy/unlink").status_code == 404
    stranger = browser()
    assert come_back(stranger, provider, start(stranger)).headers["location"] == "/auth/arrival"


def test_the_last_way_in_stays(browser, provider) -> None:
    owner = browser()
    arrive(owner, provider)
    answer = owner.post("/settings/sign-in/rauthy/unlink")
    assert answer.status_code == 409 and "the only way into this account" in answer.text


def test_linking_needs_our_own_page_and_the_same_person(browser, provider, name) -> None:
    owner = browser().sign_up(name())
    answer = owner.post("/settings/sign-in/rauthy/link", headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    brought = provider.authorize(refresh_of(owner.post("/settings/sign-in/rauthy/link").text))
    owner.post("/auth/logout")
    assert owner.get("/auth/callback", params=brought).status_code == 400


def test_a_guest_links_nothing(browser) -> None:
    guest = browser()
    assert guest.post(endpoints.GUEST_LOGIN.path).status_code == 201
    answer = guest.post("/settings/sign-in/rauthy/link")
    assert answer.status_code == 403
    assert "a guest has no account that a provider could lead to; sign in with one" in answer.text


def test_github_is_asked_in_its_own_way(browser, github) -> None:
    guest = browser()
    location = start(guest, "hub")
    assert location.startswith(f"{github.issuer}/login/oauth/authorize?") and "nonce" not in location
    answer = come_back(guest, github, location)
    assert answer.headers["location"] == "/auth/arrival"
    assert 'value="octo"' in guest.get("/auth/arrival").text
    assert guest.post("/auth/arrival", data={"handle": "octo"}).status_code == 303
    again = browser()
    assert come_back(again, github, start(again, "hub")).headers["location"] == "/settings?tab=sign-in"
    assert me(again)["handle"] == "octo" and me(again)["signed_in_by"] == "hub"


def test_the_page_offers_every_provider(browser) -> None:
    page = browser().get("/auth/login?return_to=%2Fcli%2Fauthorize").text
    assert "Sign in with 127.0.0.1" in page and "Sign in with The Hub" in page and "Password" in page
    assert "provider=hub&amp;return_to=%2Fcli%2Fauthorize" in page.replace("/", "%2F").replace(
        "%2Fauth%2Flogin?", "/auth/login?"
    )


def test_clients_hear_of_the_providers(browser) -> None:
    methods = browser().get("/api/v1/client-config").json()["node"]["sign_in"]
    assert {"oidc:rauthy", "oidc:hub", "oidc:public"} <= set(methods)


@pytest.mark.parametrize(
    "variables, sentence",
    [
        ({"RAUTHY_URL": "https://id.example"}, "without RAUTHY_CLIENT_ID"),
        ({"RAUTHY_URL": "ftp://id.example", "RAUTHY_CLIENT_ID": "x"}, "not an https address"),
        ({"RAUTHY_URL": "https://u@id.example", "RAUTHY_CLIENT_ID": "x"}, "not an https address"),
        ({"RAUTHY_REDIRECT_URI": "https://other.example/x"}, "must be"),
        ({"TR_OIDC_PROVIDERS": "{folder}/none"}, "cannot be read"),
        ({"TR_OIDC_PROVIDERS": "[}"}, "is not a list of providers"),
        ({"TR_OIDC_PROVIDERS": f"[{' ' * 70_000}]"}, "has more than 65536 bytes"),
        ({"TR_OIDC_PROVIDERS": f"[{', '.join([ENTRY] * 17)}]"}, "has more than 16 providers"),
        ({"TR_OIDC_PROVIDERS": '[{"name": "A b", "client_id": "x", "issuer": "https://i"}]'}, "'A b'"),
        (
            {"TR_OIDC_PROVIDERS": '[{"name": "password", "client_id": "x", "issuer": "https://i"}]'},
            "another way to sign in",
        ),
        ({"TR_OIDC_PROVIDERS": '[{"name": "a", "client_id": "", "issuer": "https://i"}]'}, "empty client_id"),
        ({"TR_OIDC_PROVIDERS": '[{"name": "a", "client_id": "x"}]'}, "not an https address"),
        ({"TR_OIDC_PROVIDERS": '[{"name": "g", "client_id": "x", "kind": "github"}]'}, "client_secret_file"),
        (
            {"TR_OIDC_PROVIDERS": '[{"name": "a", "client_id": "x", "issuer": "https://i", "secret": "y"}]'},
            "unknown field",
        ),
        (
            {
                "RAUTHY_URL": "https://id.example",
                "RAUTHY_CLIENT_ID": "x",
                "TR_OIDC_PROVIDERS": '[{"name": "rauthy", "client_id": "x", "issuer": "https://i"}]',
            },
            "two identity providers are called rauthy",
        ),
    ],
)
def test_settings_that_cannot_work_refuse_the_start(tmp_path: Path, variables, sentence) -> None:
    text = variables.get("TR_OIDC_PROVIDERS")
    if text is not None:
        file = tmp_path / "providers.json"
        if not text.startswith("{folder}"):
            file.write_text(text)
        variables = {**variables, "TR_OIDC_PROVIDERS": str(file)}
    given = data_folder.dev_secrets(tmp_path, variables)
    with pytest.raises(StartRefused, match=r"^[^\n]*$") as refused:
        configuration.read(given, dev=True, host="127.0.0.1", port=7, data=tmp_path)
    assert sentence in refused.value.detail


def refresh_of(page: str) -> str:
    """The address to which a page sends the browser on."""
    address = page.split('content="0;url=')[1].split('"')[0]
    return address.replace("&amp;", "&")
