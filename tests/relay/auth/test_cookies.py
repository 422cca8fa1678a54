"""Cookies of a node that people reach by TLS, and of one that is developed over plain HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path

import httpx
import pytest

from tests.relay.conftest import Relay

ORIGIN = "https://node.example"
LOGIN = {"handle": "mira", "password": "correct horse battery"}


def relay_at(folder: Path, **variables: str) -> Relay:
    running = Relay(folder, {"TR_RATE_LIMITS": "off", "RUST_LOG": "off", **variables})
    running.start()
    return running


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A node behind a proxy that ends TLS: it listens on plain HTTP and people open https."""
    running = relay_at(tmp_path_factory.mktemp("secure"), TR_PUBLIC_URL=ORIGIN)
    port = running.node.config.port
    with httpx.Client(
        base_url=f"http://127.0.0.1:{port}", headers={"Origin": ORIGIN}, trust_env=False
    ) as http:
        assert http.post("/auth/sign-up", data=LOGIN).status_code == 303
        yield http
    running.stop()


def cookies(answer: httpx.Response) -> dict[str, dict[str, str]]:
    """Name → its attributes, the empty ones left out; `value` holds the value."""
    found: SimpleCookie = SimpleCookie()
    for line in answer.headers.get_list("set-cookie"):
        found.load(line)
    return {
        name: {"value": morsel.value} | {key: str(said) for key, said in morsel.items() if said}
        for name, morsel in found.items()
    }


def test_by_tls_cookies_are_bound_to_this_host(secure: httpx.Client) -> None:
    set_at_login = cookies(secure.post("/auth/login", data=LOGIN))
    assert set(set_at_login) == {"__Host-session", "__Secure-refresh"}
    session, refresh = set_at_login["__Host-session"], set_at_login["__Secure-refresh"]
    assert session.pop("value")
    assert session == {
        "path": "/",
        "max-age": "3600",
        "httponly": "True",
        "secure": "True",
        "samesite": "Lax",
    }
    assert refresh.pop("value")
    assert refresh == {
        "path": "/auth/refresh",
        "max-age": str(7 * 24 * 3600),
        "httponly": "True",
        "secure": "True",
        "samesite": "Strict",
    }


def test_by_tls_only_that_cookie_is_a_session(secure: httpx.Client) -> None:
    secure.cookies.clear()
    value = cookies(secure.post("/auth/login", data=LOGIN))["__Host-session"]["value"]
    secure.cookies.clear()
    for name, status in (("__Host-session", 200), ("tr_session", 401)):
        answer = secure.get("/auth/userinfo", headers={"Cookie": f"{name}={value}"})
        assert answer.status_code == status, name


def test_by_tls_a_guest_gets_the_same_cookie_for_a_day(secure: httpx.Client) -> None:
    secure.cookies.clear()
    found = cookies(secure.post("/auth/guest-login"))
    assert set(found) == {"__Host-session"}
    assert found["__Host-session"]["max-age"] == str(24 * 3600)
    assert found["__Host-session"]["secure"] == "True"


def test_by_tls_signing_out_takes_both_away(secure: httpx.Client) -> None:
    value = cookies(secure.post("/auth/login", data=LOGIN))["__Host-session"]["value"]
    secure.cookies.clear()
    answer = secure.post("/auth/logout", headers={"Cookie": f"__Host-session={value}"})
    found = cookies(answer)
    assert {name: one.get("max-age", "0") for name, one in found.items()} == {
        "__Host-session": "0",
        "__Secure-refresh": "0",
    }
    assert all(one["secure"] == "True" for one in found.values())
    after = secure.get("/auth/userinfo", headers={"Cookie": f"__Host-session={value}"})
    assert after.status_code == 401


def test_in_development_the_names_say_so(tmp_path: Path) -> None:
    running = relay_at(tmp_path / "plain")
    try:
        with running.client(headers={"Origin": running.url}) as http:
            http.post("/auth/sign-up", data=LOGIN)
            found = cookies(http.post("/auth/login", data=LOGIN))
    finally:
        running.stop()
    assert set(found) == {"tr_session", "tr_refresh"}
    assert not any("secure" in one for one in found.values())
    assert all(one["httponly"] == "True" for one in found.values())


def test_by_tls_browsers_are_told_to_come_by_tls_only(secure: httpx.Client) -> None:
    for path in ("/health", "/auth/login", "/no/such/path"):
        assert secure.get(path).headers["strict-transport-security"] == "max-age=31536000", path


def test_a_plain_node_says_nothing_of_tls(tmp_path: Path) -> None:
    running = relay_at(tmp_path / "plain")
    try:
        with running.client() as http:
            assert "strict-transport-security" not in http.get("/health").headers
    finally:
        running.stop()
