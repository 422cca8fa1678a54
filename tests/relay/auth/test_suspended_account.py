"""A suspended account gets in by none of the ways, and nothing that it held before leads on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from localstore.core.encoding import unb64u
from localstore.core.identity.device_grant import open_grant
from localstore.core.model.auth import USER_INFO
from relay.run import cli
from tests.relay.auth.people import Browser, Device
from tests.relay.auth.provider import CLIENT, SECRET, Provider
from tests.relay.auth.test_device_grant import ask, claim, decision  # noqa: F401
from tests.relay.auth.test_oidc import come_back, refresh_of, start

PAIRING = "/api/v1/auth/pairing-codes"


@pytest.fixture(scope="module")
def relay_variables(provider: Provider) -> dict[str, str]:
    return {
        "TR_RATE_LIMITS": "off",
        "RUST_LOG": "off",
        "RAUTHY_URL": provider.issuer,
        "RAUTHY_CLIENT_ID": CLIENT,
        "RAUTHY_CLIENT_SECRET": SECRET,
    }


@pytest.fixture
def operator(relay: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs `relay account …`; returns the exit code."""
    monkeypatch.setenv("DATABASE_URL", relay.node.config.database_url)
    return lambda *words: cli.main(["account", *words, "--data", str(relay.folder)])


@pytest.fixture
def suspend(operator: Callable[..., int]) -> Callable[[str], None]:
    def act(handle: str) -> None:
        assert operator("suspend", handle) == 0

    return act


def test_a_browser_gets_in_by_nothing(
    browser: Callable[[], Browser],
    provider: Provider,
    name: Callable[[], str],
    suspend: Callable[[str], None],
) -> None:
    handle = name()
    provider.person = {"sub": f"s-{handle}"}
    owner = browser().sign_up(handle)
    come_back(owner, provider, refresh_of(owner.post("/settings/sign-in/rauthy/link").text))
    waiting = browser()
    brought = provider.authorize(start(waiting))
    suspend(handle)
    assert owner.get(USER_INFO.path).status_code == 401
    assert owner.post("/auth/refresh").status_code == 401
    assert owner.get("/settings").status_code == 303  # to sign in
    assert browser().sign_in(handle).status_code == 401
    answers = [waiting.get("/auth/callback", params=brought)]
    answers.append(come_back(waiting, provider, start(waiting)))
    for answer in answers:
        assert answer.status_code == 401, answer.text
    assert waiting.get(USER_INFO.path).status_code == 401
    assert waiting.post("/auth/arrival", data={"handle": name()}).status_code == 400


def test_a_machine_gets_in_by_nothing(
    device: Callable[[], Device], name: Callable[[], str], suspend: Callable[[str], None]
) -> None:
    handle, machine = name(), device()
    owner = machine.client(machine.sign_in(handle).json()["token"])
    code = owner.send("POST", PAIRING).json()["code"]
    repo = owner.send("POST", "/api/v1/repos", {"name": "open", "visibility": "public"}).json()
    suspend(handle)
    stranger = device()
    reader = stranger.client(stranger.sign_in(name()).json()["token"])
    assert reader.send("GET", f"/api/v1/repos/{repo['id']}").status_code == 200  # what is public stays
    assert owner.send("GET", USER_INFO.path).status_code == 401
    assert machine.client(None).send("GET", USER_INFO.path).status_code == 401
    for refusal in (machine.sign_in(handle), device().sign_in(handle), device().sign_in(handle, pair=code)):
        assert refusal.status_code == 403 and f"{handle} is suspended" in refusal.json()["detail"]


def test_a_terminal_that_was_approved_before_gets_nowhere(
    relay: Any,
    browser: Callable[[], Browser],
    client: Any,
    ask: Any,  # noqa: F811
    name: Callable[[], str],
    suspend: Callable[[str], None],
) -> None:
    handle = name()
    owner = browser().sign_up(handle)
    machine, codes = ask()
    assert owner.post("/api/v1/auth/cli/approve", json=decision(machine, codes)).is_success
    suspend(handle)
    sealed = claim(client, codes).json()["sealed"]  # as it was at the approval
    code = unb64u(codes["device_code"])
    grant = open_grant(unb64u(sealed), machine.transport, origin=relay.url, device_code=code)
    assert machine.client(grant.token).send("GET", USER_INFO.path).status_code == 401


def test_the_operator_suspends_and_resumes(
    browser: Callable[[], Browser], name: Callable[[], str], operator: Callable[..., int], capsys: Any
) -> None:
    handle = name()
    owner = browser().sign_up(handle)
    assert operator("resume", handle) == 1
    assert f"{handle} is not suspended" in capsys.readouterr().err
    assert operator("suspend", handle.upper()) == 0
    assert operator("suspend", handle) == 1
    assert f"{handle} is suspended already" in capsys.readouterr().err
    assert operator("suspend", name()) == 1
    assert owner.get(USER_INFO.path).status_code == 401
    assert operator("resume", handle) == 0
    assert owner.get(USER_INFO.path).json()["handle"] == handle  # sessions go on where they were
