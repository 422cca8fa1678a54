"""The page of API keys: made, rotated and revoked by forms of our own, and by nobody else's."""

from __future__ import annotations

import re
from typing import Any

from localstore.core.model.api_key import VALIDATE
from localstore.core.model.auth import GUEST_LOGIN


def _secret(page: str) -> str:
    shown = re.search(r'id="secret" tabindex="0">(svck_[^<]+)<', page)
    assert shown, page
    return shown[1]


def _verdict(person: Any, secret: str) -> Any:
    return person.post(VALIDATE.path, json={"key": secret}).json()


def test_a_key_is_made_rotated_and_revoked_by_forms(browser, name) -> None:
    owner = browser().sign_up(name())
    assert "None yet." in owner.get("/settings/keys").text
    answer = owner.post("/settings/keys", data={"name": "billing <b>", "scope": "write", "days": "30"})
    assert answer.status_code == 200
    first = _secret(answer.text)
    assert "billing &lt;b&gt;" in answer.text and "read, write" in answer.text
    assert first not in owner.get("/settings/keys").text
    key_id = re.search(r"/settings/keys/([^/]+)/rotate", answer.text)
    assert key_id
    answer = owner.post(f"/settings/keys/{key_id[1]}/rotate", data={"overlap": "3600"})
    second = _secret(answer.text)
    assert second != first
    assert _verdict(owner, first)["valid"] and _verdict(owner, second)["scopes"] == ["read", "write"]
    assert owner.post(f"/settings/keys/{key_id[1]}/revoke").status_code == 303
    assert _verdict(owner, first) == _verdict(owner, second) == {"valid": False}
    assert "revoked 20" in owner.get("/settings/keys").text
    answer = owner.post(f"/settings/keys/{key_id[1]}/rotate", data={"overlap": "0"})
    assert answer.status_code == 409 and "is revoked" in answer.text


def test_mistakes_come_back_with_what_was_typed(browser, name) -> None:
    owner = browser().sign_up(name())
    answer = owner.post("/settings/keys", data={"name": " ", "scope": "admin", "days": "7"})
    assert answer.status_code == 422 and 'value="7"' in answer.text
    assert '<option value="admin" selected>' in answer.text
    answer = owner.post("/settings/keys", data={"name": "x", "scope": "read", "days": "-5"})
    assert answer.status_code == 422 and "svck_" not in answer.text
    missing = owner.post("/settings/keys/nosuch/rotate", data={"overlap": "0"})
    assert missing.status_code == 404
    revoked = owner.post("/settings/keys/nosuch/revoke")
    assert (revoked.status_code, revoked.text) == (404, missing.text)


def test_only_our_own_page_and_only_an_account(browser, name) -> None:
    owner = browser().sign_up(name())
    form = {"name": "x", "scope": "read", "days": "0"}
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}):
        assert owner.post("/settings/keys", data=form, headers=headers).status_code == 403
    late = browser().post("/settings/keys", data=form)
    assert late.status_code == 303 and "/auth/refresh" in late.headers["location"]
    assert "name%3Dx" in late.headers["location"] or "name=x" in late.headers["location"]


def test_a_guest_has_no_keys(browser) -> None:
    guest = browser()
    assert guest.post(GUEST_LOGIN.path).status_code == 201
    answer = guest.post("/settings/keys", data={"name": "x", "scope": "read", "days": "0"})
    assert answer.status_code == 403 and "a guest session cannot do this" in answer.text
