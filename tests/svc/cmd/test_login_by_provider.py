"""`svc login` in a real browser, on nodes with two identity providers, one that is down, and none."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import buckets, databases
from tests.patience import PATIENCE
from tests.relay.auth.provider import CLIENT, Provider
from tests.svc.cmd.test_browser_login import PASSWORD, Waiting, page, pytestmark  # noqa: F401
from tests.svc.conftest import ROOT


@contextmanager
def serving(folder: Path, **providers: Provider) -> Iterator[str]:
    """The address of a relay with these identity providers."""
    entries = [
        {"name": name, "issuer": provider.issuer, "client_id": CLIENT, "label": f"The {name}"}
        for name, provider in providers.items()
    ]
    folder.mkdir()
    (folder / "providers.json").write_text(json.dumps(entries))
    with (folder / "log").open("w") as log:
        relay = subprocess.Popen(
            [sys.executable, "-m", "relay", "serve", "--dev", "--port", "0", "--data", str(folder / "data")],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
            env={
                **os.environ,
                "TR_OIDC_PROVIDERS": str(folder / "providers.json"),
                **databases.variables(folder),
                **buckets.variables(folder),
            },
        )
    assert relay.stdout is not None
    try:
        line = relay.stdout.readline()
        assert "listening on " in line, (folder / "log").read_text()[-3000:]
        yield line.split("listening on ")[1].strip()
    finally:
        relay.terminate()
        relay.wait(PATIENCE)


@pytest.fixture(scope="module")
def providers() -> Iterator[tuple[Provider, Provider]]:
    both = Provider(), Provider()
    yield both
    for provider in both:
        provider.close()


@pytest.fixture(scope="module")
def node_of_two(
    providers: tuple[Provider, Provider], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    first, second = providers
    with serving(tmp_path_factory.mktemp("two") / "relay", one=first, two=second) as address:
        yield address


def approve(page: Any, terminal: Waiting, handle: str) -> None:  # noqa: F811
    """Approve the terminal in the browser, which has just been signed in, and see it signed in."""
    page.get_by_label("Code shown in the terminal").fill(terminal.code)
    page.get_by_role("button", name="Continue").click()
    assert terminal.fingerprint in page.inner_text("main")
    page.get_by_role("button", name="Approve").click()
    answer = terminal.end()
    assert (answer.code, answer.out) == (0, f"{handle}\n"), answer.err


def test_two_providers_and_either_leads_to_the_terminal(
    node_of_two: str,
    providers: tuple[Provider, Provider],
    tmp_path: Path,
    page: Any,  # noqa: F811
) -> None:
    for number, (provider, name) in enumerate(zip(providers, ("one", "two"), strict=True)):
        handle = f"u{secrets.token_hex(6)}"
        provider.person, provider.down = {"sub": handle, "preferred_username": handle}, False
        terminal = Waiting(node_of_two, tmp_path / f"home{number}")
        page.context.clear_cookies()
        page.goto(terminal.url)
        for label in ("The one", "The two"):
            assert page.get_by_role("link", name=f"Sign in with {label}").is_visible()
        page.get_by_role("link", name=f"Sign in with The {name}").click()
        assert page.get_by_label("Handle").input_value() == handle
        page.get_by_role("button", name="Create account").click()
        approve(page, terminal, handle)
        way, end = terminal.svc("auth", "status", "--jq", ".signed_in_by,.expires_at").out.split()
        assert way == name and end.endswith("Z")


def test_a_provider_that_goes_down_meanwhile_and_the_other_one_still_leads_to_the_terminal(
    node_of_two: str,
    providers: tuple[Provider, Provider],
    tmp_path: Path,
    page: Any,  # noqa: F811
) -> None:
    first, second = providers
    handle = f"u{secrets.token_hex(6)}"
    second.person = {"sub": handle, "preferred_username": handle}
    first.down = second.down = False
    terminal = Waiting(node_of_two, tmp_path / "home")
    first.goes_down = True  # once the browser has been there
    page.goto(terminal.url)
    page.get_by_role("link", name="Sign in with The one").click()
    problem = page.get_by_role("alert").inner_text()
    assert "The one does not work now" in problem and "500" in problem
    page.get_by_role("link", name="Sign in with The two").click()
    page.get_by_role("button", name="Create account").click()
    approve(page, terminal, handle)


def test_the_only_provider_is_down(providers: tuple[Provider, Provider], tmp_path: Path, page: Any) -> None:  # noqa: F811
    """The page says so, and a password still leads in."""
    down, _ = providers
    down.down = True
    handle = f"u{secrets.token_hex(6)}"
    with serving(tmp_path / "relay", lost=down) as node:
        terminal = Waiting(node, tmp_path / "home")
        page.goto(terminal.url)
        page.get_by_role("link", name="Sign in with The lost").click()
        assert "The lost does not work now" in page.get_by_role("alert").inner_text()
        page.get_by_role("link", name="Create an account").click()
        page.get_by_label("Handle").fill(handle)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Create account").click()
        approve(page, terminal, handle)
        assert terminal.svc("auth", "status", "--jq", ".signed_in_by").out == "password\n"


def test_without_a_provider_the_page_asks_for_a_password(node: str, tmp_path: Path, page: Any) -> None:  # noqa: F811
    handle = f"u{secrets.token_hex(6)}"
    terminal = Waiting(node, tmp_path / "home")
    page.goto(terminal.url)
    assert page.get_by_role("link", name="Sign in with").count() == 0
    page.get_by_role("link", name="Create an account").click()
    page.get_by_label("Handle").fill(handle)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    approve(page, terminal, handle)
