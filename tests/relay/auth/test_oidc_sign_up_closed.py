"""A node that makes no accounts for whom a provider names (TR_OIDC_SIGN_UP=off): who has one links it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from localstore.core.model.auth import USER_INFO
from relay.db.schema import tables
from tests.relay.auth.provider import CLIENT, SECRET, Provider
from tests.relay.auth.test_oidc import come_back, me, refresh_of, start

SENTENCE = "lets nobody in that way who has no account yet; sign in as you did before, then link it"


@pytest.fixture(scope="module")
def relay_variables(provider: Provider) -> dict[str, str]:
    return {
        "TR_RATE_LIMITS": "off",
        "RUST_LOG": "off",
        "TR_OIDC_SIGN_UP": "off",
        "RAUTHY_URL": provider.issuer,
        "RAUTHY_CLIENT_ID": CLIENT,
        "RAUTHY_CLIENT_SECRET": SECRET,
    }


@pytest.fixture(autouse=True)
def somebody_new(provider: Provider, name) -> None:
    handle = name()
    provider.person = {"sub": f"s-{handle}", "preferred_username": handle}


def accounts(relay: Any, handle: str) -> list[Any]:
    """The accounts with this handle."""
    account = tables["account"]

    async def read() -> list[Any]:
        async with relay.node.db.read() as tx:
            return list(await tx.all(select(account.c.id).where(account.c.handle == handle)))

    return list(relay.run(read()))


def test_a_stranger_is_told_to_sign_in_as_before(relay, browser, provider) -> None:
    stranger = browser()
    answer = come_back(stranger, provider, start(stranger))
    assert answer.status_code == 403 and SENTENCE in answer.text
    assert stranger.get("/auth/arrival").status_code == 400  # nothing is kept of who came
    handle = provider.person["preferred_username"]
    assert stranger.post("/auth/arrival", data={"handle": handle}).status_code == 400
    assert stranger.get(USER_INFO.path).status_code == 401
    assert accounts(relay, handle) == []


def test_somebody_linked_gets_in(relay, browser, provider, name) -> None:
    owner = browser().sign_up(name())
    assert len(accounts(relay, me(owner)["handle"])) == 1
    location = refresh_of(owner.post("/settings/sign-in/rauthy/link").text)
    assert come_back(owner, provider, location).status_code == 303
    again = browser()
    assert come_back(again, provider, start(again)).headers["location"] == "/settings?tab=sign-in"
    assert (me(again)["user_id"], me(again)["signed_in_by"]) == (me(owner)["user_id"], "rauthy")


def test_who_came_before_it_was_switched_off_makes_no_account(
    relay, browser, provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that was started again with it off, between the callback and the handle."""
    stranger, handle = browser(), provider.person["preferred_username"]
    off = relay.node.config
    with monkeypatch.context() as before:
        before.setattr(relay.node, "config", replace(off, oidc_sign_up=True))
        answer = come_back(stranger, provider, start(stranger))
        assert answer.headers["location"] == "/auth/arrival", answer.text
    answer = stranger.post("/auth/arrival", data={"handle": handle})
    assert answer.status_code == 403 and SENTENCE in answer.text
    assert accounts(relay, handle) == []
