"""The page of devices: a code is drawn, the digits are compared, a device is added, refused and revoked by
forms."""

from __future__ import annotations

import re
from typing import Any

import pytest

from localstore.core.encoding import b64u, unb64u
from localstore.core.identity.bearer import parse_script_token
from localstore.core.identity.keys import sign_registration
from localstore.core.identity.pairing import PairingText, Transcript, parse
from localstore.core.model.auth import GUEST_LOGIN
from tests.relay.auth.people import Device, Terminal
from tests.relay.histories import ok

HERE, PAIR = "/settings/devices", "/settings/devices/pair"


def _code(page: str) -> PairingText:
    shown = re.search(r"svc login --qr (svc-pair:1:[^<]+)<", page)
    assert shown, page
    assert f'value="{shown[1]}"' in page
    return parse(shown[1])


def _scan(nobody: Any, device: Device, text: PairingText) -> str:
    """The digits that the new device computes."""
    body = {"qr": str(text), "device": {"name": "a <b>", "public_key": b64u(device.key.public)}}
    step = ok(nobody.post(f"/api/v1/devices/{text.account}/pair/process", json=body))
    scanned = [unb64u(step["device"][part]) for part in ("public_key", "x25519", "nonce")]
    return Transcript(text, unb64u(step["opening"]), *scanned).digits()


def _confirm(nobody: Any, device: Device, text: PairingText) -> None:
    statement = b64u(sign_registration(device.key, device.url, text.account))
    body = {"pairing_id": text.pairing_id, "sas_confirmed": True, "signature": statement}
    ok(nobody.post(f"/api/v1/devices/{text.account}/pair/complete", json=body))


def test_a_device_is_paired_and_revoked_by_forms(browser, client, device, name) -> None:
    owner, machine, nobody = browser().sign_up(name()), device(), client()
    assert "None yet." in owner.get(HERE).text
    drawn = owner.post(HERE)
    assert drawn.status_code == 200
    assert "<svg " in drawn.text
    text = _code(drawn.text)
    form = {"qr": str(text), "answer": "look"}
    assert "No device has scanned it yet." in owner.post(PAIR, data=form).text
    digits = _scan(nobody, machine, text)
    compared = owner.post(PAIR, data=form).text
    assert f'id="digits">{digits[:3]} {digits[3:]}<' in compared
    assert "a &lt;b&gt;" in compared
    early = owner.post(PAIR, data=form | {"answer": "same"})
    assert early.status_code == 409
    assert "confirm them there first" in early.text
    assert f"{digits[:3]} {digits[3:]}" in early.text
    _confirm(nobody, machine, text)
    added = owner.post(PAIR, data=form | {"answer": "same"}).text
    assert "was added" in added
    assert machine.client(None).send("GET", "/auth/userinfo").status_code == 200
    assert "This device is paired." in owner.post(PAIR, data=form).text
    assert owner.post(f"{HERE}/{machine.key.id}/revoke").status_code == 303
    assert machine.client(None).send("GET", "/auth/userinfo").status_code == 401
    assert "None yet." in owner.get(HERE).text
    assert owner.post(f"{HERE}/{machine.key.id}/revoke").status_code == 404


def test_different_digits_add_nothing(browser, client, device, name) -> None:
    owner, machine, nobody = browser().sign_up(name()), device(), client()
    text = _code(owner.post(HERE).text)
    _scan(nobody, machine, text)
    refused = owner.post(PAIR, data={"qr": str(text), "answer": "different"})
    assert "was refused" in refused.text
    assert "None yet." in refused.text
    gone = owner.post(PAIR, data={"qr": str(text), "answer": "same"})
    assert gone.status_code == 410
    assert machine.client(None).send("GET", "/auth/userinfo").status_code == 401


@pytest.mark.parametrize("answer", ["look", "same"])
def test_a_code_of_somebody_else_is_none(answer: str, browser, name) -> None:
    owner, other = browser().sign_up(name()), browser().sign_up(name())
    text = _code(owner.post(HERE).text)
    assert other.post(PAIR, data={"qr": str(text), "answer": answer}).status_code == 404
    assert other.post(PAIR, data={"qr": "x", "answer": answer}).status_code == 422


def test_only_our_own_page_and_only_an_account(browser, name) -> None:
    owner = browser().sign_up(name())
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}):
        assert owner.post(HERE, headers=headers).status_code == 403
        assert owner.post(PAIR, data={"qr": ""}, headers=headers).status_code == 403
    for path in (HERE, PAIR, f"{HERE}/x/revoke"):
        late = browser().post(path, data={"qr": "x"})
        assert late.status_code == 303
        assert "/auth/refresh" in late.headers["location"]
    guest = browser()
    assert guest.post(GUEST_LOGIN.path).status_code == 201
    assert guest.post(HERE).status_code == 403


@pytest.mark.parametrize("step", ["generate", "process", "complete"])
def test_a_token_that_may_not_change_the_account_pairs_nothing(step: str, browser, device, name) -> None:
    owner, machine = browser().sign_up(name()), device()
    text = _code(owner.post(HERE).text)
    token = ok(owner.post("/api/v1/auth/tokens", json={"label": "job", "access": "write"}))
    _, raw, key = parse_script_token(token["token"])
    scan = {"qr": str(text), "device": {"name": "x", "public_key": b64u(machine.key.public)}}
    body = {"generate": {}, "process": scan, "complete": {"pairing_id": text.pairing_id}}[step]
    answer = Terminal(machine.url, key, raw).send("POST", f"/api/v1/devices/{text.account}/pair/{step}", body)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert "No device has scanned it yet." in owner.post(PAIR, data={"qr": str(text)}).text
