"""A terminal let in through a browser: asked, approved, claimed once."""

from __future__ import annotations

import time
from datetime import datetime

import pytest
from sqlalchemy import update

from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import ServerMisbehaved
from localstore.core.identity.device_grant import GRANT_TYPE, fingerprint, open_grant
from relay.db.schema.account import device_code, session

START, APPROVE, TOKEN = (f"/api/v1/auth/cli/{step}" for step in ("device-code", "approve", "token"))
ME = "/auth/userinfo"


@pytest.fixture
def ask(client, device):
    def make(one=None, label="build box"):
        one = one or device()
        body = {
            "transport_x25519": b64u(one.transport.public),
            "device_ed25519": b64u(one.key.public),
            "label": label,
        }
        answer = client().post(START, json=body)
        assert answer.status_code == 200, answer.text
        return one, answer.json()

    return make


@pytest.fixture
def patient(relay):
    """Let a terminal poll again at once."""

    def make():
        async def work():
            async with relay.node.db.write() as tx:
                await tx.run(update(device_code).values(polled_at=0))

        relay.run(work())

    return make


def decision(one, codes, choice="approve", **changed):
    shown = fingerprint(one.transport.public, one.key.public)
    return {"user_code": codes["user_code"], "fingerprint": shown, "decision": choice} | changed


def claim(client, codes):
    return client().post(TOKEN, json={"grant_type": GRANT_TYPE, "device_code": codes["device_code"]})


def test_whole_way(relay, browser, client, ask, name, patient):
    handle = name()
    web = browser().sign_up(handle)
    one, codes = ask()
    pending = claim(client, codes)
    assert pending.status_code == 400
    assert pending.json()["code"] == pending.json()["error"] == "authorization_pending"
    assert web.post(APPROVE, json=decision(one, codes)).json() == {"status": "approved"}
    patient()
    sealed = claim(client, codes).json()
    grant = open_grant(
        unb64u(sealed["sealed"]), one.transport, origin=relay.url, device_code=unb64u(codes["device_code"])
    )
    terminal = one.client(grant.token)
    info = terminal.send("GET", ME).json()
    assert (info["handle"], info["session_kind"], info["device_key_id"]) == (handle, "cli", one.key.id)
    assert grant.account == info["user_id"]
    assert terminal.send("POST", "/api/v1/auth/pairing-codes").status_code == 201
    assert web.post("/auth/logout").status_code == 204
    assert terminal.send("GET", ME).status_code == 401, "it ends with the browser session"


@pytest.mark.parametrize(("left", "lives"), [(7 * 24, 24), (5, 5)])
def test_it_never_outlives_its_parent(relay, browser, client, ask, name, left, lives):
    web, now = browser().sign_up(name()), time.time()
    parent = web.get(ME).json()["session_id"]

    async def shorten():
        async with relay.node.db.write() as tx:
            ends = int(now + left * 3600) * 1000
            await tx.run(update(session).where(session.c.id == parent).values(expires_at=ends))

    relay.run(shorten())
    one, codes = ask()
    web.post(APPROVE, json=decision(one, codes))
    sealed = unb64u(claim(client, codes).json()["sealed"])
    grant = open_grant(sealed, one.transport, origin=relay.url, device_code=unb64u(codes["device_code"]))
    assert grant.parent_session == parent
    assert abs(grant.expires_at - (now + lives * 3600)) < 60


def test_claimed_once(browser, client, ask, name):
    web = browser().sign_up(name())
    one, codes = ask()
    web.post(APPROVE, json=decision(one, codes))
    assert claim(client, codes).status_code == 200
    again = claim(client, codes)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")


def test_concurrent_claims_have_one_winner(browser, client, ask, name):
    from concurrent.futures import ThreadPoolExecutor

    web = browser().sign_up(name())
    one, codes = ask()
    web.post(APPROVE, json=decision(one, codes))
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: claim(client, codes).status_code, range(6)))
    assert sorted(answers) == [200] + [400] * 5


def test_another_terminal_cannot_open_it(relay, browser, client, ask, name, device):
    web = browser().sign_up(name())
    one, codes = ask()
    web.post(APPROVE, json=decision(one, codes))
    sealed = unb64u(claim(client, codes).json()["sealed"])
    with pytest.raises(ServerMisbehaved):
        open_grant(sealed, device().transport, origin=relay.url, device_code=unb64u(codes["device_code"]))


def test_denied(browser, client, ask, name):
    web = browser().sign_up(name())
    one, codes = ask()
    assert web.post(APPROVE, json=decision(one, codes, "deny")).json() == {"status": "denied"}
    assert claim(client, codes).json()["error"] == "access_denied"
    assert web.post(APPROVE, json=decision(one, codes)).status_code == 404, "claimed and gone"


def test_decided_once(browser, ask, name):
    web = browser().sign_up(name())
    one, codes = ask()
    assert web.post(APPROVE, json=decision(one, codes)).status_code == 200
    assert web.post(APPROVE, json=decision(one, codes, "deny")).status_code == 410


def test_polling_too_soon_slows_down(client, ask):
    _, codes = ask()
    assert claim(client, codes).json()["error"] == "authorization_pending"
    first, second = claim(client, codes).json(), claim(client, codes).json()
    assert first["error"] == second["error"] == "slow_down"
    assert second["interval"] > first["interval"] > codes["interval"]


def test_expired(relay, browser, client, ask, name):
    web = browser().sign_up(name())
    one, codes = ask()

    async def age():
        async with relay.node.db.write() as tx:
            await tx.run(
                update(device_code)
                .where(device_code.c.user_code == codes["user_code"])
                .values(expires_at=device_code.c.expires_at - 700_000)
            )

    relay.run(age())
    assert claim(client, codes).json()["error"] == "expired_token"
    assert web.post(APPROVE, json=decision(one, codes)).status_code == 410


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"grant_type": "password", "device_code": "x"}, "unsupported_grant_type"),
        ({"grant_type": GRANT_TYPE, "device_code": "x"}, "invalid_grant"),
        ({"grant_type": GRANT_TYPE, "device_code": "A" * 43}, "invalid_grant"),
    ],
)
def test_strange_claims(client, body, error):
    for answer in (client().post(TOKEN, json=body), client().post(TOKEN, data=body)):
        assert (answer.status_code, answer.json()["error"]) == (400, error)


def test_wrong_fingerprint(browser, ask, name):
    web = browser().sign_up(name())
    one, codes = ask()
    for shown in ("", "AAAA-AAAA", "é"):
        assert web.post(APPROVE, json=decision(one, codes, fingerprint=shown)).status_code == 422
    assert web.post(APPROVE, json=decision(one, codes)).status_code == 200


def test_only_a_browser_approves(client, ask, terminal):
    one, codes = ask()
    assert client().post(APPROVE, json=decision(one, codes)).status_code == 401
    assert terminal().send("POST", APPROVE, decision(one, codes)).status_code == 403


def test_the_terminal_of_a_guest_is_a_guest(relay, browser, client, ask):
    one, codes = ask()
    guest = browser()
    made = guest.post("/auth/guest-login").json()
    assert guest.post("/cli/authorize", data=decision(one, codes)).status_code == 200
    sealed = unb64u(claim(client, codes).json()["sealed"])
    grant = open_grant(sealed, one.transport, origin=relay.url, device_code=unb64u(codes["device_code"]))
    assert grant.expires_at <= datetime.fromisoformat(made["expires_at"]).timestamp()
    terminal = one.client(grant.token)
    info = terminal.send("GET", ME).json()
    assert (info["user_id"], info["phase"]) == (made["user_id"], "ephemeral")
    for path, body in (
        ("/api/v1/repos", {"name": "mine"}),
        ("/api/v1/auth/pairing-codes", None),
        ("/api/v1/repos/device-key-challenges", one.start()),
    ):
        answer = terminal.send("POST", path, body)
        assert (answer.status_code, answer.json()["code"]) == (403, "identity_level"), path
    guest.post("/auth/logout")
    assert terminal.send("GET", ME).status_code == 401


def test_another_site_approves_nothing(browser, client, ask, name):
    web = browser().sign_up(name())
    one, codes = ask()
    evil = {"Origin": "https://evil.example"}
    assert web.post(APPROVE, json=decision(one, codes), headers=evil).status_code == 403
    assert web.post("/cli/authorize", data=decision(one, codes), headers=evil).status_code == 403
    assert claim(client, codes).json()["error"] == "authorization_pending"


def test_weak_keys_ask_for_nothing(client):
    for x25519, ed25519 in ((bytes(32), b"\x01" * 32), (b"\x09" + bytes(31), bytes(32))):
        body = {"transport_x25519": b64u(x25519), "device_ed25519": b64u(ed25519)}
        assert client().post(START, json=body).status_code == 422


def test_the_page_wants_a_session_and_shows_the_fingerprint(browser, ask, name):
    one, codes = ask(label="<b>box</b>")
    web = browser()
    away = web.get("/cli/authorize", params={"user_code": codes["user_code"]})
    assert away.status_code == 303
    assert away.headers["location"].startswith("/auth/refresh?return_to=%2Fcli%2Fauthorize%3Fuser_code%3D")
    away = web.get(away.headers["location"])
    assert away.headers["location"].startswith("/auth/login?return_to=%2Fcli%2Fauthorize%3Fuser_code%3D")
    web.sign_up(name())
    shown = web.get("/cli/authorize", params={"user_code": codes["user_code"].lower()})
    assert shown.status_code == 200
    assert fingerprint(one.transport.public, one.key.public) in shown.text
    assert "&lt;b&gt;box&lt;/b&gt;" in shown.text
    assert "<b>box</b>" not in shown.text
    done = web.post("/cli/authorize", data=decision(one, codes))
    assert "signed in" in done.text
