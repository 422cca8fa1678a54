"""A strict node makes no accounts for strangers: its operator does."""

from __future__ import annotations

import re

import pytest

from localstore.core.identity.keys import DeviceKey
from relay import config as configuration
from relay.run import cli
from tests.relay.auth.people import Device


@pytest.fixture(scope="module")
def relay_variables() -> dict[str, str]:
    return {"TR_RATE_LIMITS": "off", "RUST_LOG": "off", "TR_DEVICE_KEY_SIGN_UP": "off"}


@pytest.mark.parametrize("variable", ["TR_DEVICE_KEY_SIGN_UP", "TR_OIDC_SIGN_UP"])
def test_strict_mode_makes_no_accounts_unless_told(variable: str) -> None:
    strict = {
        "TR_PUBLIC_URL": "https://svc.example",
        "TR_EDITION": "self-hosted-community",
        "TR_ENROLL_CHALLENGE": "x" * 16,
        "TR_VALIDATE_JWT_AUD": "x" * 16,
        "RAUTHY_URL": "https://id.example",
        "RAUTHY_CLIENT_ID": "svc",
    }

    def sign_up(dev: bool, **variables: str) -> bool:
        read = configuration.read(strict | variables, dev=dev, host="127.0.0.1", port=1, data=None)
        return bool(getattr(read, variable.removeprefix("TR_").lower()))

    assert not sign_up(False)
    assert sign_up(False, **{variable: "on"})
    assert sign_up(True)
    assert not sign_up(True, **{variable: "off"})


def test_a_stranger_is_told_how_to_get_an_account(relay, capsys, monkeypatch):
    stranger = Device(relay.url)
    refused = stranger.sign_in("mira")
    assert (refused.status_code, refused.json()["code"]) == (403, "sign_up_closed")
    assert "relay account add HANDLE" in refused.json()["detail"]
    assert "svc login --device-key" in refused.json()["detail"]

    monkeypatch.setenv("DATABASE_URL", relay.node.config.database_url)
    assert cli.main(["account", "add", "Mira", "--data", str(relay.folder)]) == 0
    code = re.search(r"--server ADDRESS --device-key --handle mira --pair (\S+)", capsys.readouterr().out)
    monkeypatch.setenv("TR_PUBLIC_URL", "https://svc.example")
    assert cli.main(["account", "add", "Mara", "--data", str(relay.folder)]) == 0
    line = "svc login --server https://svc.example --device-key --handle mara --pair "
    assert line in capsys.readouterr().out
    assert code is not None
    assert cli.main(["account", "add", "mira", "--data", str(relay.folder)]) == 1
    assert "taken" in capsys.readouterr().err
    assert cli.main(["account", "add", "../x", "--data", str(relay.folder)]) == 1

    assert stranger.sign_in("mira").json()["code"] == "handle_taken"
    assert stranger.sign_in("mira", pair=code[1]).status_code == 201
    assert stranger.sign_in("mira").status_code == 201
    assert Device(relay.url, DeviceKey.generate()).sign_in("mira", pair=code[1]).status_code == 403


def test_somebody_known_signs_in(relay, account):
    mira = account()
    assert Device(relay.url, mira.key).sign_in(mira.handle).status_code == 201
