"""Device keys: registration, the sign-in without a browser, pairing, revocation; and what must not work."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from localstore.core.encoding import b64u
from localstore.core.identity.device_grant import Purpose
from localstore.core.identity.keys import key_id, verify_registration
from relay.base.clock import now_ms
from relay.db.identity import device_key as rows
from relay.db.schema.account import challenge as challenges

CHALLENGES, KEYS = "/api/v1/repos/device-key-challenges", "/api/v1/repos/device-keys"


def register(terminal, device, start=None, **answer):
    me = terminal.send("GET", "/auth/userinfo").json()["user_id"]
    challenge = terminal.send("POST", CHALLENGES, start or device.start()).json()
    return terminal.send("POST", KEYS, device.answer(Purpose.REGISTER, me, challenge) | answer)


def test_first_key_claims_a_free_handle_and_signs_in_again(device, name):
    handle, one = name(), device()
    first = one.sign_in(handle)
    assert first.status_code == 201
    again = one.sign_in(handle)
    assert again.status_code == 201
    assert again.json()["user_id"] == first.json()["user_id"]
    assert again.json()["session_id"] != first.json()["session_id"]
    info = one.client(again.json()["token"]).send("GET", "/auth/userinfo").json()
    assert (info["handle"], info["session_kind"], info["device_key_id"]) == (handle, "device", one.key.id)


def test_unknown_key_on_a_taken_handle_is_shown_the_way_in(device, name):
    handle = name()
    device().sign_in(handle)
    refused = device().sign_in(handle)
    assert (refused.status_code, refused.json()["code"]) == (403, "handle_taken")
    assert "svc auth device add" in refused.json()["detail"]
    assert f"--handle {handle} --pair CODE" in refused.json()["detail"]


def test_second_device_joins_with_a_code_once(device, name):
    handle, one = name(), device()
    first = one.client(one.sign_in(handle).json()["token"])
    code = first.send("POST", "/api/v1/auth/pairing-codes").json()["code"]
    second, third = device(), device()
    joined = second.sign_in(handle, pair=code.lower())
    assert joined.status_code == 201
    assert third.sign_in(handle, pair=code).json()["code"] == "handle_taken"
    assert second.sign_in(handle).status_code == 201
    listed = first.send("GET", KEYS).json()["items"]
    assert {item["id"] for item in listed} == {one.key.id, second.key.id}


def test_a_code_of_one_account_opens_no_other(device, name):
    mine, theirs = name(), name()
    one = device()
    code = (
        one.client(one.sign_in(mine).json()["token"])
        .send("POST", "/api/v1/auth/pairing-codes")
        .json()["code"]
    )
    device().sign_in(theirs)
    assert device().sign_in(theirs, pair=code).json()["code"] == "handle_taken"
    assert device().sign_in(mine, pair=code).status_code == 201, "a failed try elsewhere does not use it up"


def test_a_code_claims_no_free_handle(device, name):
    """Else somebody who mistypes the handle gets a second account, and does not notice."""
    handle, free, one = name(), name(), device()
    first = one.client(one.sign_in(handle).json()["token"])
    code = first.send("POST", "/api/v1/auth/pairing-codes").json()["code"]
    second = device()
    refused = second.sign_in(free, pair=code)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert f"no account {free}" in refused.json()["detail"]
    assert second.sign_in(handle, pair=code).status_code == 201, "the code still counts"


def test_registration_is_kept_for_readers_of_seals(relay, device, name):
    one = device()
    grant = one.sign_in(name()).json()

    async def kept():
        async with relay.node.db.read() as tx:
            return rows.to_row(await tx.one(rows.ONE, id=one.key.id))

    key = relay.run(kept())
    verify_registration(relay.url, grant["user_id"], one.key.public, key.registration)


def test_signed_in_account_registers_another_key(terminal, device):
    one, other = terminal(), device()
    answer = register(one, other)
    assert answer.status_code == 201
    assert answer.json()["id"] == key_id(other.key.public)
    assert register(one, other).json()["code"] == "device_key_exists"
    by_itself = other.client(None).send("GET", "/auth/userinfo")
    assert by_itself.json()["session_kind"] == "self"


def test_a_challenge_has_one_try(terminal, device):
    one, other = terminal(), device()
    me = one.send("GET", "/auth/userinfo").json()["user_id"]
    challenge = one.send("POST", CHALLENGES, other.start()).json()
    good = other.answer(Purpose.REGISTER, me, challenge)
    bad = good | {"signature": b64u(bytes(64))}
    assert one.send("POST", KEYS, bad).status_code == 422
    assert one.send("POST", KEYS, good).status_code == 410


def test_a_relayed_challenge_is_worth_nothing(terminal, device):
    """Mallory asks for a challenge for the victim's keys and has the victim answer it."""
    mallory, victim, device_of_victim = terminal(), terminal(), device()
    ids = [one.send("GET", "/auth/userinfo").json()["user_id"] for one in (mallory, victim)]
    challenge = mallory.send("POST", CHALLENGES, device_of_victim.start()).json()
    answer = device_of_victim.answer(Purpose.REGISTER, ids[1], challenge)
    assert mallory.send("POST", KEYS, answer).status_code == 422, "the victim signed for its own account"
    challenge = mallory.send("POST", CHALLENGES, device_of_victim.start()).json()
    answer = device_of_victim.answer(Purpose.REGISTER, ids[1], challenge)
    assert victim.send("POST", KEYS, answer).status_code == 410, "the challenge is Mallory's"


def test_a_sign_in_challenge_registers_nothing(relay, terminal, device, client, name):
    one, other = terminal(), device()
    challenge = client().post("/api/v1/auth/device-key/challenge", json=other.start(name())).json()
    me = one.send("GET", "/auth/userinfo").json()["user_id"]
    assert one.send("POST", KEYS, other.answer(Purpose.REGISTER, me, challenge)).status_code == 410


def test_another_origin_in_the_transcript_is_refused(device, name, client):
    one, handle = device(), name()
    challenge = client().post("/api/v1/auth/device-key/challenge", json=one.start(handle)).json()
    proof = one.answer(Purpose.LOGIN, handle, challenge | {"origin": "https://elsewhere.example"})
    assert client().post("/api/v1/auth/device-key/login", json=proof).status_code == 422


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("ed25519", bytes(32)),  # small order
        ("ed25519", b"\x01" + bytes(31)),
        ("ed25519", b"\xff" * 32),  # not canonical
        ("x25519", bytes(32)),
        ("x25519", b"\x01" + bytes(31)),
        ("x25519", b"\xff" * 32),
        ("ed25519", b"short"),
    ],
)
def test_keys_that_prove_nothing_are_refused(terminal, device, member, value):
    start = device().start() | {member: b64u(value)}
    assert terminal().send("POST", CHALLENGES, start).status_code == 422


@pytest.mark.parametrize("label", ["x" * 65, "two\nlines", "bell\x07", "\u202eevil"])
def test_names_of_devices_are_one_plain_line(terminal, device, label):
    assert terminal().send("POST", CHALLENGES, device().start(name=label)).status_code == 422


def test_a_revoked_key_ends_at_once_and_never_returns(device, name, terminal):
    handle, one = name(), device()
    owner = one.client(one.sign_in(handle).json()["token"])
    other = device()
    register(owner, other)
    session = other.client(other.sign_in(handle).json()["token"])
    assert session.send("GET", "/auth/userinfo").status_code == 200
    assert terminal().send("DELETE", f"{KEYS}/{other.key.id}").status_code == 404, (
        "not a stranger's to revoke"
    )
    assert owner.send("DELETE", f"{KEYS}/{other.key.id}").status_code == 204
    assert session.send("GET", "/auth/userinfo").status_code == 401
    assert other.client(None).send("GET", "/auth/userinfo").status_code == 401
    assert other.sign_in(handle).status_code == 401
    assert register(owner, other).json()["code"] == "device_key_exists"
    revoked = [item for item in owner.send("GET", KEYS).json()["items"] if item["revoked_at"]]
    assert [item["id"] for item in revoked] == [other.key.id]


def test_a_key_belongs_to_one_account(device, name):
    one = device()
    one.sign_in(name())
    assert one.sign_in(name()).json()["code"] == "device_key_exists"


def test_keys_are_listed_page_by_page(terminal, device):
    one = terminal()
    made = {register(one, device()).json()["id"] for _ in range(4)} | {one.key.id}
    seen, cursor = [], ""
    while True:
        answer = one.send("GET", f"{KEYS}?limit=2{cursor}").json()
        seen += [item["id"] for item in answer["items"]]
        if answer["next_cursor"] is None:
            break
        cursor = f"&cursor={answer['next_cursor']}"
    assert len(seen) == len(set(seen)) == 5
    assert set(seen) == made


def test_reserved_handles_cannot_be_claimed(device):
    for handle in ("admin", "settings", "-x", "a..b"):
        assert device().sign_in(handle).status_code == 422


def test_a_small_order_key_gets_no_sign_in_either(device, client, name):
    start = device().start(name()) | {"ed25519": b64u(bytes(31) + b"\x80")}
    assert client().post("/api/v1/auth/device-key/challenge", json=start).status_code == 422


def test_an_expired_challenge_is_gone(relay, terminal, device):
    one, machine = terminal(), device()
    me = one.send("GET", "/auth/userinfo").json()["user_id"]
    challenge = one.send("POST", CHALLENGES, machine.start()).json()

    async def expire():
        async with relay.node.db.write() as tx:
            await tx.run(update(challenges).values(expires_at=now_ms() - 1))

    relay.run(expire())
    assert one.send("POST", KEYS, machine.answer(Purpose.REGISTER, me, challenge)).status_code == 410
    assert machine.client(None).send("GET", "/auth/userinfo").status_code == 401


def test_a_device_counts_as_used_when_its_session_is(terminal, later):
    one = terminal()
    (signed_in,) = one.send("GET", KEYS).json()["items"]
    later(11 * 60)
    one.clock = 11 * 60
    assert one.send("GET", "/auth/userinfo").status_code == 200
    (used,) = one.send("GET", KEYS).json()["items"]
    assert used["last_used_at"] > signed_in["last_used_at"]


def test_a_key_is_renamed_by_its_owner_alone(terminal):
    mine, theirs = terminal(), terminal()
    path = f"{KEYS}/{mine.key.id}"
    assert mine.send("PATCH", path, {"name": " desk "}).json()["name"] == "desk"
    assert [one["name"] for one in mine.send("GET", KEYS).json()["items"]] == ["desk"]
    for wrong in ("", " ", "two\nlines", "x" * 1000):
        assert mine.send("PATCH", path, {"name": wrong}).status_code == 422
    missing = mine.send("PATCH", f"{KEYS}/nobodys", {"name": "x"})
    refused = theirs.send("PATCH", path, {"name": "x"})
    assert (refused.status_code, refused.content) == (missing.status_code, missing.content)
    assert refused.status_code == 404
    assert mine.send("GET", KEYS).json()["items"][0]["name"] == "desk"
