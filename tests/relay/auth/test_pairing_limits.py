"""Limits of sign-ins with a device key: guesses of pairing codes count for handle and address together."""

from __future__ import annotations

import httpx
import pytest

from localstore.core.identity.device_grant import Purpose, new_pairing_code
from relay.capacity.limiter import Rate
from relay.domain.identity import device_key
from tests.relay.auth.people import Device


@pytest.fixture(scope="module")
def relay_variables():
    return {"RUST_LOG": "off", "TR_PROXY_HOPS": "1"}


def join(relay, handle: str, code: str, address: str) -> int:
    """A new machine at this address tries to join with the code."""
    machine = Device(relay.url)
    headers = {"X-Forwarded-For": address}
    with httpx.Client(base_url=relay.url, trust_env=False, headers=headers) as http:
        challenge = http.post("/api/v1/auth/device-key/challenge", json=machine.start(handle)).json()
        proof = machine.answer(Purpose.LOGIN, handle, challenge, pair=code)
        return http.post("/api/v1/auth/device-key/login", json=proof).status_code


def test_guesses_from_elsewhere_lock_no_second_device_out(relay, terminal):
    first = terminal()
    handle = first.send("GET", "/auth/userinfo").json()["handle"]
    guesses = [join(relay, handle, new_pairing_code(), "203.0.113.5") for _ in range(14)]
    assert guesses == [403] * 10 + [429] * 4
    code = first.send("POST", "/api/v1/auth/pairing-codes").json()["code"]
    assert join(relay, handle, code, "203.0.113.5") == 429, "also with the right one at last"
    assert join(relay, handle, code, "198.51.100.3") == 201


def test_who_has_to_wait_for_an_account_answers_the_same_challenge_later(relay, name, monkeypatch):
    """`svc login` repeats the request by itself after the wait that the server names."""
    machine, handle, login = Device(relay.url), name(), "/api/v1/auth/device-key/login"
    with httpx.Client(base_url=relay.url, trust_env=False) as http:
        challenge = http.post("/api/v1/auth/device-key/challenge", json=machine.start(handle)).json()
        proof = machine.answer(Purpose.LOGIN, handle, challenge)
        with monkeypatch.context() as full:
            full.setattr(device_key._ACCOUNTS, "_rate", Rate(burst=0, per_second=0.1))
            refused = http.post(login, json=proof, headers={"X-Forwarded-For": "203.0.113.7"})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")
        assert http.post(login, json=proof).status_code == 201
        assert http.post(login, json=proof).status_code == 410
