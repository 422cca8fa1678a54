"""API keys: shown once, the owner's alone, rotated with an overlap, all alike when no good."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from localstore.core.model.limits import API_KEYS
from relay.db.schema.account import api_key
from relay.domain.api_key import api_key as rules
from tests.relay.conftest import Account, Relay
from tests.relay.histories import ok

Client = Callable[..., httpx.Client]
Someone = Callable[..., Account]
KEYS = "/api/v1/apikeys"
CHECK = f"{KEYS}/validate"


def _create(http: httpx.Client, owner: Account, **body: Any) -> dict[str, Any]:
    return dict(ok(http.post(f"{KEYS}/{owner.id}", json={"name": "printer", **body})))


def _verdict(http: httpx.Client, secret: str) -> dict[str, Any]:
    return dict(ok(http.post(CHECK, json={"key": secret})))


def test_its_secret_is_shown_once_and_kept_as_a_hash(
    relay: Relay, owner: Account, http: httpx.Client
) -> None:
    key = _create(http, owner, scopes=["write", "read", "write"])
    secret = key.pop("secret")
    assert secret.startswith("svck_")
    assert secret.startswith(key["prefix"])
    assert len(key["prefix"]) < 12
    assert key["scopes"] == ["write", "read"]
    assert ok(http.get(f"{KEYS}/{owner.id}/{key['id']}")) == key
    assert ok(http.get(f"{KEYS}/{owner.id}"))["items"] == [key]

    async def stored() -> str:
        async with relay.node.db.read() as tx:
            return str(await tx.all(select(api_key)))

    assert secret not in relay.run(stored())


def test_its_end_may_be_the_last_moment_that_has_a_name(owner: Account, http: httpx.Client) -> None:
    key = _create(http, owner, expires_at="9999-12-31T23:59:59.9999Z")
    assert key["expires_at"] == "9999-12-31T23:59:59.999Z"
    assert _verdict(http, key["secret"])["valid"] is True


def test_a_check_says_what_it_is_good_for(owner: Account, http: httpx.Client) -> None:
    end = (datetime.now(UTC) + timedelta(days=3)).isoformat(timespec="seconds")
    key = _create(http, owner, scopes=["read", "admin"], expires_at=end)
    verdict = _verdict(http, key["secret"])
    expected = {"valid": True, "key_id": key["id"], "user_id": owner.id, "scopes": ["read", "admin"]}
    assert verdict == {**expected, "expires_at": key["expires_at"]}
    used = ok(http.get(f"{KEYS}/{owner.id}/{key['id']}"))["last_used_at"]
    assert used is not None
    assert datetime.fromisoformat(key["expires_at"]) == datetime.fromisoformat(end)


def test_unknown_revoked_expired_and_foreign_keys_are_answered_alike(
    relay: Relay,
    owner: Account,
    http: httpx.Client,
    account: Someone,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = account()
    foreign = _create(client(other), other)["secret"]
    revoked = _create(http, owner)
    assert http.delete(f"{KEYS}/{owner.id}/{revoked['id']}").status_code == 204
    assert http.delete(f"{KEYS}/{owner.id}/{revoked['id']}").status_code == 204
    end = datetime.now(UTC) + timedelta(days=1)
    expired = _create(http, owner, expires_at=end.isoformat())["secret"]
    assert _verdict(http, expired)["valid"]
    later = int(end.timestamp() * 1000)
    monkeypatch.setattr(rules, "now_ms", lambda: later)
    answers = {
        http.post(CHECK, json={"key": text}).content
        for text in ("svck_" + "A" * 43, "", "svck_é", revoked["secret"], foreign, expired)
    }
    assert answers == {b'{"valid":false}'}


def test_a_rotation_ends_the_old_secret_at_once_or_after_its_overlap(
    owner: Account, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = _create(http, owner)
    url = f"{KEYS}/{owner.id}/{key['id']}/rotate"
    second = ok(http.post(url, json={}))["secret"]
    assert not _verdict(http, key["secret"])["valid"]
    third = ok(http.post(url, json={"overlap_seconds": 60}))["secret"]
    assert _verdict(http, second)["key_id"] == _verdict(http, third)["key_id"] == key["id"]
    later = rules.now_ms() + 60_000
    monkeypatch.setattr(rules, "now_ms", lambda: later)
    assert not _verdict(http, second)["valid"]
    assert _verdict(http, third)["valid"]
    assert http.delete(f"{KEYS}/{owner.id}/{key['id']}").status_code == 204
    assert not _verdict(http, third)["valid"]
    answer = http.post(url, json={})
    assert (answer.status_code, answer.json()["code"]) == (409, "api_key_ended")


def test_others_are_answered_as_if_there_were_none(
    owner: Account, http: httpx.Client, account: Someone, client: Client
) -> None:
    key = _create(http, owner)
    stranger, nobody, guest = client(account()), client(), client(account(kind="guest"))
    asked = [
        ("GET", f"{KEYS}/{owner.id}", None),
        ("POST", f"{KEYS}/{owner.id}", {"name": "x"}),
        ("GET", f"{KEYS}/{owner.id}/{key['id']}", None),
        ("DELETE", f"{KEYS}/{owner.id}/{key['id']}", None),
        ("POST", f"{KEYS}/{owner.id}/{key['id']}/rotate", {}),
    ]
    missing = stranger.get(f"{KEYS}/{'0' * 36}/{'0' * 32}").content
    for method, url, body in asked:
        answer = stranger.request(method, url, json=body)
        assert (answer.status_code, answer.content) == (404, missing)
        assert nobody.request(method, url, json=body).status_code == 401
        assert guest.request(method, url, json=body).status_code == 403
    assert _verdict(http, key["secret"])["valid"]


def test_it_signs_in_to_nothing(owner: Account, http: httpx.Client, client: Client) -> None:
    secret = _create(http, owner, scopes=["admin"])["secret"]
    for value in (f"Bearer {secret}", secret):
        answer = client().get("/api/v1/handles/me", headers={"authorization": value})
        assert answer.status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        {"name": ""},
        {"name": "x\n"},
        {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["all"]},
        {"name": "x", "expires_at": "2020-01-01T00:00:00Z"},
        {"name": "x", "expires_at": "2099-01-01T00:00:00"},
        {"name": "x", "expires_at": "9999-12-31T23:59:59-14:00"},
        {"name": "x", "expires_at": "0001-01-01T00:00:00+14:00"},
        {"name": "x", "expires": 3},
    ],
)
def test_what_is_asked_for_is_checked(owner: Account, http: httpx.Client, body: dict[str, Any]) -> None:
    assert http.post(f"{KEYS}/{owner.id}", json=body).status_code == 422


def test_an_account_has_so_many(owner: Account, http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert API_KEYS >= 3
    monkeypatch.setattr(rules.limits, "API_KEYS", 3)
    keys = [_create(http, owner) for _ in range(3)]
    answer = http.post(f"{KEYS}/{owner.id}", json={"name": "x"})
    assert answer.status_code == 409
    assert "3 API keys" in answer.json()["detail"]
    http.delete(f"{KEYS}/{owner.id}/{keys[0]['id']}")
    _create(http, owner)
