"""Sessions: guests, refresh, sign-out, lists."""

from __future__ import annotations

import hashlib
import uuid

import pytest
from sqlalchemy import update

from localstore.core.encoding import unb64u
from localstore.core.errors import Unavailable
from localstore.core.identity.bearer import parse_script_token
from relay.db.schema.account import refresh_token
from tests.relay.auth.people import Terminal

ME, TOKENS = "/auth/userinfo", "/api/v1/auth/tokens"


def refresh(one):
    """The refresh token, by hand: the cookie jar sends it to its one path only."""
    return one.cookies.get("tr_refresh")


@pytest.fixture
def age(relay):
    """Make a used refresh token look used that many seconds longer ago."""

    def make(token: str, seconds: int) -> None:
        async def work():
            async with relay.node.db.write() as tx:
                await tx.run(
                    update(refresh_token)
                    .where(refresh_token.c.hash == hashlib.sha256(unb64u(token)).digest())
                    .values(used_at=refresh_token.c.used_at - seconds * 1000)
                )

        relay.run(work())

    return make


def test_guest(browser):
    one = browser()
    answer = one.post("/auth/guest-login")
    assert answer.status_code == 201
    assert uuid.UUID(answer.json()["user_id"]).version == 4
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=Lax" in answer.headers["set-cookie"]
    info = one.get(ME).json()
    assert (info["phase"], info["level"], info["session_kind"]) == ("ephemeral", 1, "guest")
    assert one.put("/api/v1/handles/me", json={"handle": "guesty"}).json()["code"] == "identity_level"
    assert one.post("/auth/refresh").json()["code"] == "guest_no_refresh"
    assert one.post(TOKENS, json={"label": "x"}).json()["code"] == "identity_level"


def test_a_foreign_page_makes_no_guest_of_a_visitor(browser):
    assert browser().post("/auth/guest-login", headers={"Origin": "https://evil.example"}).status_code == 403


def test_program_gets_a_guest_token(client):
    token = client().post("/auth/guest-login").json()["token"]
    assert client().get(ME, headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_nobody(client):
    assert client().get(ME).status_code == 401
    assert client().post("/auth/refresh").status_code == 401
    assert client().post("/auth/logout").status_code == 204
    assert client().get(TOKENS).status_code == 401


def test_a_local_account_is_called_one(browser, device, name):
    info = browser().sign_up(name()).get(ME).json()
    assert (info["phase"], info["level"]) == ("local", 3)
    one = device()
    keyed = one.client(one.sign_in(name()).json()["token"]).send("GET", ME).json()
    assert (keyed["phase"], keyed["level"]) == ("local", 3)


def test_signing_out_without_a_session_is_no_error(browser, client):
    """Also for a browser that has none; only a form of a page is led on, since a person waits for a page."""
    answer = browser().post("/auth/logout")
    assert (answer.status_code, answer.content) == (204, b"")
    assert client().post("/auth/logout", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 204


def test_the_sign_out_that_gets_the_refresh_cookie_answers_our_own_pages_only(browser, client, name):
    one = browser().sign_up(name())
    del one.headers["Origin"]
    assert one.post("/auth/refresh/logout").status_code == 403
    assert client().post("/auth/refresh/logout").status_code == 403
    assert one.post("/auth/refresh/logout", headers={"Origin": "null"}).status_code == 403
    assert one.get(ME).status_code == 200
    assert one.post("/auth/refresh/logout", headers={"Origin": str(one.base_url)}).status_code == 204
    assert one.get(ME).status_code == 401


def test_refresh_rotates(browser, name):
    one = browser().sign_up(name())
    first, session = refresh(one), one.get(ME).json()["session_id"]
    answer = one.post("/auth/refresh")
    assert answer.status_code == 200
    assert answer.json()["session_id"] == session
    assert refresh(one) != first
    assert one.get(ME).json()["session_id"] == session
    assert one.post("/auth/refresh").status_code == 200


def test_second_use_within_seconds_is_a_race_of_two_tabs(browser, name, client):
    one = browser().sign_up(name())
    token = refresh(one)
    assert client().post("/auth/refresh", json={"refresh_token": token}).status_code == 200
    assert client().post("/auth/refresh", json={"refresh_token": token}).status_code == 409
    assert one.get(ME).status_code == 200


def test_later_reuse_ends_the_family(browser, name, client, age):
    one = browser().sign_up(name())
    token = refresh(one)
    fresh = client().post("/auth/refresh", json={"refresh_token": token}).json()["refresh_token"]
    age(token, 11)
    assert client().post("/auth/refresh", json={"refresh_token": token}).status_code == 401
    assert one.get(ME).status_code == 401
    assert client().post("/auth/refresh", json={"refresh_token": fresh}).status_code == 401


@pytest.mark.parametrize("token", ["", "x", "A" * 43, "=" * 44, "\0", "A" * 5000])
def test_strange_refresh_tokens(client, token):
    assert client().post("/auth/refresh", json={"refresh_token": token}).status_code == 401


def test_refresh_cookie_wants_our_own_page(browser, name):
    one = browser().sign_up(name())
    assert one.post("/auth/refresh", headers={"Origin": "https://evil.example"}).status_code == 403


def test_refresh_cookie_goes_to_one_path(browser, name):
    one = browser()
    answer = one.post("/auth/sign-up", data={"handle": name(), "password": "a good password"})
    cookies = answer.headers.get_list("set-cookie")
    assert any("tr_refresh=" in c and "Path=/auth/refresh" in c and "HttpOnly" in c for c in cookies)
    assert any("tr_session=" in c and "Max-Age=3600" in c and "HttpOnly" in c for c in cookies)


def test_sign_out_clears_and_ends(browser, name):
    one = browser().sign_up(name())
    kept = one.cookies["tr_session"]
    answer = one.post("/auth/logout")
    assert answer.status_code == 204
    assert all("Max-Age=0" in cookie for cookie in answer.headers.get_list("set-cookie"))
    again = browser()
    again.cookies.set("tr_session", kept)
    assert again.get(ME).status_code == 401


def test_a_token_that_only_reads_may_end_itself(relay, browser, name):
    one = browser().sign_up(name())
    _, raw, key = parse_script_token(one.post(TOKENS, json={"label": "x", "access": "read"}).json()["token"])
    script = Terminal(relay.url, key, raw)
    assert script.send("POST", "/auth/logout").status_code == 204
    assert script.send("GET", ME).status_code == 401
    assert one.get(ME).status_code == 200


def test_own_sessions_are_listed_and_ended(browser, name):
    handle = name()
    one = browser().sign_up(handle)
    other = browser()
    other.sign_in(handle, "correct horse battery")
    items = one.get(TOKENS).json()["items"]
    assert [item["kind"] for item in items] == ["browser", "browser"]
    assert [item["current"] for item in items] == [False, True]
    assert one.delete(f"{TOKENS}/{items[0]['id']}").status_code == 204
    assert other.get(ME).status_code == 401
    assert one.get(ME).status_code == 200


def test_sockets_close_with_their_session_and_key(relay, device, name):
    handle, one = name(), device()
    grant = one.sign_in(handle).json()
    terminal = one.client(grant["token"])

    async def join(session_id):
        return relay.node.hub.join(session_id)

    other = device().sign_in(name()).json()["session_id"]  # alive: the hub looks for dead ones now and then
    peers = [relay.run(join(session_id)) for session_id in (grant["session_id"], one.key.id, other)]
    assert one.client(None).send("GET", ME).json()["session_id"] == one.key.id
    assert terminal.send("DELETE", f"/api/v1/repos/device-keys/{one.key.id}").status_code == 204
    assert [peer.closed for peer in peers] == [True, True, False]


def test_nobody_ends_a_strangers_session(browser, name):
    one, other = browser().sign_up(name()), browser().sign_up(name())
    theirs = other.get(ME).json()["session_id"]
    refused = one.delete(f"{TOKENS}/{theirs}")
    missing = one.delete(f"{TOKENS}/{'0' * 32}")
    assert (refused.status_code, refused.content) == (404, missing.content)
    assert other.get(ME).status_code == 200


def test_sessions_page_by_page(browser, name):
    handle = name()
    one = browser().sign_up(handle)
    for _ in range(3):
        browser().sign_in(handle)
    first = one.get(TOKENS, params={"limit": 3}).json()
    rest = one.get(TOKENS, params={"limit": 3, "cursor": first["next_cursor"]}).json()
    ids = [item["id"] for item in first["items"] + rest["items"]]
    assert len(set(ids)) == 4
    assert rest["next_cursor"] is None
    assert one.get(TOKENS, params={"cursor": "x"}).status_code == 422


def test_a_refresh_without_the_signer_costs_nothing(relay, browser, name, monkeypatch):
    one = browser().sign_up(name())

    async def down(**body):
        raise Unavailable("the token signer is not running")

    with monkeypatch.context() as broken:
        broken.setattr(relay.node.signer, "mint", down)
        assert one.post("/auth/refresh").status_code == 503
    assert one.post("/auth/refresh").status_code == 200, "the refresh token was not used up"
