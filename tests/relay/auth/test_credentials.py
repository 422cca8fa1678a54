"""Who a request is from: bound tokens, signatures alone, cookies; and every way to lie about it."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime, timedelta

import pytest

from localstore.core.encoding import b64u
from localstore.core.identity.bearer import to_text
from localstore.core.identity.capability import attenuate
from localstore.core.identity.keys import DeviceKey
from tests.relay.auth.people import Terminal

REPO = f"/api/v1/repos/{'0' * 32}/refs"
ME, HANDLE, PAIR = "/auth/userinfo", "/api/v1/handles/me", "/api/v1/auth/pairing-codes"


def not_bound(answer) -> bool:
    return (answer.status_code, answer.json()["code"]) == (401, "request_not_bound")


def test_mutation_without_signature_is_refused_with_the_servers_clock(terminal):
    one = terminal()
    headers = {name: value for name, value in one.signed("POST", PAIR).items() if name == "Authorization"}
    answer = one.raw("POST", PAIR, b"", headers)
    assert not_bound(answer)
    assert abs(answer.json()["server_time"] - datetime.now(UTC).timestamp()) < 120
    assert one.raw("GET", ME, b"", headers).status_code == 200, "reading needs the token only"


def test_replay_changes_nothing(terminal):
    one = terminal()
    headers = one.signed("POST", PAIR)
    assert one.raw("POST", PAIR, b"", headers).status_code == 201
    assert not_bound(one.raw("POST", PAIR, b"", headers))


def test_two_requests_never_share_a_nonce(terminal):
    one = terminal()
    nonce = b64u(secrets.token_bytes(16))
    assert one.send("POST", PAIR, nonce=nonce).status_code == 201
    assert not_bound(one.send("POST", PAIR, nonce=nonce))


def test_concurrent_replays_have_one_winner(terminal, relay):
    from concurrent.futures import ThreadPoolExecutor

    one = terminal()
    headers = one.signed("POST", PAIR)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: one.raw("POST", PAIR, b"", headers).status_code, range(8)))
    assert sorted(answers) == [201] + [401] * 7


@pytest.mark.parametrize(
    "said",
    [
        {"body": b'{"handle": "signed"}'},
        {"method": "POST"},
        {"path": HANDLE + "?x=1"},
        {"path": PAIR},
        {"authority": "elsewhere.example"},
    ],
    ids=["body", "method", "query", "path", "authority"],
)
def test_swapping_a_covered_part_is_refused(terminal, said):
    one = terminal()
    answer = one.send("PUT", HANDLE, {"handle": "swapped"}, said=said)
    assert not_bound(answer)
    assert one.send("GET", HANDLE).json()["handle"] != "swapped"


def test_another_authority_names_the_expected_origin(terminal, relay):
    answer = terminal().send("POST", PAIR, said={"authority": "elsewhere.example"})
    assert answer.json()["expected_origin"] == relay.url


def test_host_is_never_believed(terminal):
    one = terminal()
    spoofed = one.signed("POST", PAIR) | {"Host": "evil.example"}
    assert one.raw("POST", PAIR, b"", spoofed).status_code == 201, "the signature names our own authority"
    lying = one.signed("POST", PAIR, said={"authority": "evil.example"}) | {"Host": "evil.example"}
    assert not_bound(one.raw("POST", PAIR, b"", lying))


@pytest.mark.parametrize("header", ["Signature", "Signature-Input", "Content-Digest", "Authorization"])
def test_a_header_that_counts_stands_once(terminal, header):
    one = terminal()
    headers = list(one.signed("POST", PAIR).items())
    twice = headers + [pair for pair in headers if pair[0] == header]
    assert one.raw("POST", PAIR, b"", twice).status_code == 401


@pytest.mark.parametrize("skew", [3600, -3600, 30, -90])
def test_a_wrong_clock_is_told_the_time_and_may_correct_itself(terminal, skew):
    one = terminal()
    one.clock = skew
    refused = one.send("POST", PAIR)
    assert not_bound(refused)
    assert refused.json()["reason"] in ("stale", "future")
    offset = refused.json()["server_time"] - int(datetime.now(UTC).timestamp()) - skew
    one.clock += offset
    assert one.send("POST", PAIR).status_code == 201


def test_a_stolen_token_changes_nothing(terminal):
    one = terminal()
    thief = Terminal(one.url, DeviceKey.generate(), one.token)
    assert not_bound(thief.send("POST", PAIR))


def test_a_signature_on_a_read_must_be_good(terminal):
    one = terminal()
    assert one.send("GET", ME).status_code == 200
    assert not_bound(one.send("GET", ME, said={"path": HANDLE}))


def test_an_unknown_key_is_nobody(relay):
    stranger = Terminal(relay.url, DeviceKey.generate(), None)
    for path in (ME, "/api/v1/repos/device-keys"):
        assert stranger.send("GET", path).status_code == 401


def test_a_key_alone_mutates_and_replays_nothing(device, name):
    one = device()
    one.sign_in(name())
    alone = one.client(None)
    headers = alone.signed("POST", PAIR)
    assert alone.raw("POST", PAIR, b"", headers).status_code == 201
    assert not_bound(alone.raw("POST", PAIR, b"", headers))


@pytest.mark.parametrize(
    "value",
    ["Bearer", "Basic bWU6cHc=", "Bearer !!!!", "Bearer " + "A" * 6000, "Bearer AAAA", "bearer  x"],
)
def test_a_bad_token_is_refused_everywhere(client, value):
    for path in (ME, HANDLE, "/auth/login", REPO):
        answer = client().get(path, headers={"Authorization": value})
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_bad_credentials_do_not_tell_missing_from_hidden(client, terminal):
    one = terminal()
    missing = [REPO, "/api/v1/repos/nothing/refs", "/no/such/path"]
    bodies = {one.send("GET", path).content for path in missing}
    assert len(bodies) == 1
    bad = {client().get(p, headers={"Authorization": "Bearer AAAA"}).status_code for p in missing[:2]}
    assert bad == {401}


@pytest.fixture
def narrowed(relay, terminal):
    """A terminal whose token was narrowed offline."""

    def make(**limits):
        one = terminal()
        keys = relay.run(relay.node.signer.public_keys())
        return Terminal(one.url, one.key, attenuate(one.token, keys, **limits))

    return make


def test_a_token_narrowed_to_reading_writes_nothing(narrowed):
    one = narrowed(ops=["read"])
    assert one.send("GET", HANDLE).status_code == 200
    assert one.send("POST", PAIR).status_code == 403
    assert one.send("PUT", HANDLE, {"handle": "narrow"}).status_code == 403


def test_a_token_narrowed_to_a_repository_is_good_for_nothing_else(narrowed):
    one = narrowed(repo=bytes(16))
    assert one.send("GET", HANDLE).status_code == 403
    assert one.send("GET", f"/api/v1/repos/{'1' * 32}/refs").status_code == 403
    assert one.send("GET", REPO).status_code == 404


def test_a_narrowed_token_ends_when_it_says(narrowed):
    one = narrowed(expires=datetime.now(UTC) - timedelta(seconds=5))
    answer = one.send("GET", HANDLE)
    assert (answer.status_code, answer.json()["reason"]) == (401, "expired")


def test_a_narrowed_token_dies_with_its_session(relay, terminal):
    one = terminal()
    keys = relay.run(relay.node.signer.public_keys())
    child = Terminal(one.url, one.key, attenuate(one.token, keys, ops=["read"]))
    assert child.send("GET", HANDLE).status_code == 200
    assert one.send("POST", "/auth/logout").status_code == 204
    assert child.send("GET", HANDLE).status_code == 401
    assert one.send("GET", HANDLE).status_code == 401


def test_a_narrowed_token_cannot_end_the_session_it_came_from(narrowed):
    for one in (narrowed(ops=["read"]), narrowed(expires=datetime.now(UTC) + timedelta(minutes=5))):
        answer = one.send("POST", "/auth/logout")
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert one.send("GET", HANDLE).status_code == 200


def test_cookie_mutations_come_from_our_own_pages(browser, name, relay):
    one = browser().sign_up(name())
    del one.headers["Origin"]

    def change(**headers):
        return one.put(HANDLE, json={"handle": name()}, headers=headers).status_code

    assert change(**{"Origin": relay.url}) == 200
    assert change(**{"Sec-Fetch-Site": "same-origin"}) == 200
    assert change() == 403
    assert change(**{"Origin": "null"}) == 403
    assert change(**{"Origin": "https://evil.example"}) == 403
    assert change(**{"Origin": relay.url + ".evil.example"}) == 403
    assert change(**{"Sec-Fetch-Site": "same-site"}) == 403
    assert change(**{"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}) == 403


def test_a_cross_site_form_signs_nobody_out(browser, name):
    one = browser().sign_up(name())
    forged = one.post("/auth/logout", headers={"Origin": "https://evil.example"})
    assert forged.status_code == 403
    assert one.get(ME).status_code == 200


def test_a_foreign_page_opens_no_socket(browser, name):
    one = browser().sign_up(name())
    upgrade = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Protocol": "svc-sync.v1",
    }
    for origin in ("https://evil.example", "null"):
        assert one.get("/api/v1/sync/ws", headers=upgrade | {"Origin": origin}).status_code == 403


def test_a_stale_cookie_counts_as_none_on_open_routes(client):
    stale = {"Cookie": "tr_session=AAAA"}
    assert client().get("/auth/login", headers=stale).status_code == 200
    assert client().get(HANDLE, headers=stale).status_code == 401
    assert client().get(REPO, headers=stale).status_code == 401


def test_a_cookie_token_is_no_bearer_token_for_changes(browser, name, client):
    one = browser().sign_up(name())
    bearer = {"Authorization": f"Bearer {one.cookies['tr_session']}"}
    assert client().get(ME, headers=bearer).status_code == 200
    refused = client().put(HANDLE, headers=bearer, json={"handle": name()})
    assert not_bound(refused)


def test_audit_lines_cannot_be_forged(relay, device, name):
    from sqlalchemy import select

    from relay.db.schema.event import event

    handle = "evil\r\n2026 admin session.start"
    import httpx

    httpx.post(
        f"{relay.url}/auth/login",
        data={"handle": handle, "password": "wrong password"},
        headers={"Origin": relay.url},
    )

    async def rows():
        async with relay.node.db.read() as tx:
            return await tx.all(select(event.c.actor, event.c.kind, event.c.data))

    found = relay.run(rows())
    assert any("evil" in data for _, _, data in found)
    for row in found:
        assert not any(char in text for text in row for char in "\r\n")
        json.loads(row[2])


def test_a_bound_token_is_no_cookie(terminal, client, relay):
    """Or whoever steals it would need no signature: cookies make changes without one."""
    one = terminal()
    stolen = {"Cookie": f"tr_session={to_text(one.token)}", "Origin": relay.url}
    http = client()
    asked = {"label": "mine now", "access": "admin", "days": 365}
    for method, path, body in (
        ("POST", "/api/v1/auth/tokens", asked),
        ("POST", "/api/v1/repos", {"name": "x"}),
        ("POST", PAIR, None),
        ("GET", HANDLE, None),
    ):
        answer = http.request(method, path, json=body, headers=stolen)
        assert (answer.status_code, answer.json()["code"]) == (401, "sign_in_required"), path
    page = http.post("/settings/tokens", json=asked, headers=stolen)
    assert page.headers["location"].startswith("/auth/refresh"), "to a page it counts as no session"
