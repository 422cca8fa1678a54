"""The pages in a real browser, with scripts and without: sign up, let a terminal in, make a token, leave."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import httpx
import pytest

from localstore.core.encoding import b64u, unb64u
from localstore.core.identity.bearer import parse_script_token
from localstore.core.identity.device_grant import GRANT_TYPE, fingerprint, open_grant
from tests.patience import PATIENCE
from tests.relay.auth.people import PASSWORD, Device, Terminal

sync_api = pytest.importorskip("playwright.sync_api", reason="the pages are tested with playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SHOTS = os.environ.get("SVC_SCREENSHOTS")  # a folder: keep what the pages look like


@pytest.fixture(scope="module")
def chromium():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(params=[True, False], ids=["scripts-on", "scripts-off"])
def page(chromium, request):
    context = chromium.new_context(java_script_enabled=request.param, viewport={"width": 900, "height": 760})
    page = context.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    yield page
    context.close()


def open_account(page):
    """Open the menu of the account, which every page has in its head."""
    page.locator(".menu summary").click()
    return page.get_by_role("navigation", name="Account")


def shot(page, name):
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)


def start(relay, device):
    body = {
        "transport_x25519": b64u(device.transport.public),
        "device_ed25519": b64u(device.key.public),
        "label": "build box",
    }
    return httpx.post(f"{relay.url}/api/v1/auth/cli/device-code", json=body, trust_env=False).json()


def claim(relay, device, codes):
    body = {"grant_type": GRANT_TYPE, "device_code": codes["device_code"]}
    answer = httpx.post(f"{relay.url}/api/v1/auth/cli/token", json=body, trust_env=False).json()
    code = unb64u(codes["device_code"])
    return open_grant(unb64u(answer["sealed"]), device.transport, origin=relay.url, device_code=code)


def test_sign_up_terminal_token_sign_out(relay, page, name):
    handle, device = name(), Device(relay.url)
    codes = start(relay, device)

    page.goto(codes["verification_uri_complete"])
    shot(page, "login")
    page.get_by_role("link", name="Create an account").click()
    page.get_by_label("Handle").fill(handle)
    page.get_by_label("Password").fill(PASSWORD)
    shot(page, "sign-up")
    page.get_by_role("button", name="Create account").click()

    assert fingerprint(device.transport.public, device.key.public) in page.inner_text("main")
    assert codes["user_code"] in page.inner_text("main")
    shot(page, "authorize")
    page.get_by_role("button", name="Approve").click()
    assert "The terminal is signed in" in page.get_by_role("status").inner_text()
    terminal = device.client(claim(relay, device, codes).token)
    assert terminal.send("GET", "/api/v1/handles/me").json()["handle"] == handle

    open_account(page).get_by_role("link", name="Tokens").click()
    page.get_by_label("Name").fill("nightly <build>")
    page.get_by_role("button", name="Create token").click()
    _, raw, key = parse_script_token(page.inner_text("#token"))
    shot(page, "tokens")
    script = Terminal(relay.url, key, raw)
    assert script.send("GET", "/api/v1/handles/me").json()["handle"] == handle
    open_account(page).get_by_role("link", name="Tokens").click()
    assert page.locator("#token").count() == 0, "shown once"
    page.set_viewport_size({"width": 360, "height": 740})
    shot(page, "tokens-narrow")
    assert page.locator("tbody tr").count() == 3
    page.get_by_role("button", name="End nightly <build>").click()
    assert script.send("GET", "/api/v1/handles/me").status_code == 401

    open_account(page).get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/auth/login")
    assert terminal.send("GET", "/api/v1/handles/me").status_code == 401
    page.goto(f"{relay.url}/settings?tab=tokens")
    assert "/auth/login" in page.url


def test_wrong_password_says_so_and_keeps_the_handle(relay, page, name):
    handle = name()
    page.goto(f"{relay.url}/auth/login")
    page.get_by_label("Handle").fill(handle)
    page.get_by_label("Password").fill("wrong password")
    page.emulate_media(color_scheme="dark")
    page.get_by_role("button", name="Sign in").click()
    assert "wrong" in page.get_by_role("alert").inner_text()
    assert page.get_by_label("Handle").input_value() == handle
    assert page.get_by_label("Password").input_value() == ""
    shot(page, "wrong-dark")


def test_deny(relay, page, name):
    device = Device(relay.url)
    codes = start(relay, device)
    page.goto(f"{relay.url}/auth/sign-up?return_to=/cli/authorize")
    page.get_by_label("Handle").fill(name())
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    page.get_by_label("Code shown in the terminal").fill(codes["user_code"].lower().replace("-", " "))
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Deny").click()
    assert "Denied" in page.get_by_role("status").inner_text()
    body = {"grant_type": GRANT_TYPE, "device_code": codes["device_code"]}
    answer = httpx.post(f"{relay.url}/api/v1/auth/cli/token", json=body, trust_env=False).json()
    assert answer["error"] == "access_denied"


def test_a_page_renews_its_session_and_loses_no_form(relay, page, name, later):
    def session():
        return next(one["value"] for one in page.context.cookies() if one["name"] == "tr_session")

    settings = f"{relay.url}/settings?tab=tokens"
    page.goto(f"{relay.url}/auth/sign-up?return_to=/settings?tab=tokens")
    page.get_by_label("Handle").fill(name())
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    page.wait_for_url(settings)
    first = session()
    later(49 * 60)
    page.goto(settings)
    assert session() == first
    later(51 * 60)
    page.goto(settings)
    assert page.url == settings
    assert session() != first

    page.context.clear_cookies(name="tr_session")  # its hour is over
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"data:text/html,<a href='{settings}'>tokens</a>")
    page.get_by_role("link").click()
    page.wait_for_url(settings)
    assert any(url.endswith("own=1") for url in asked), "a foreign page brings no strict cookie; ours does"
    assert "Tokens and sessions" in page.inner_text("main")

    page.get_by_label("Name").fill("nightly build")
    page.context.clear_cookies(name="tr_session")
    page.get_by_role("button", name="Create token").click()
    page.wait_for_url("**/settings?*again=1")
    assert "nothing was changed yet" in page.get_by_role("status").inner_text()
    assert page.get_by_label("Name").input_value() == "nightly build"
    shot(page, "too-late")
    page.context.clear_cookies(name="tr_session")
    open_account(page).get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/auth/login")
    assert page.context.cookies() == []
    page.goto(settings)
    assert "/auth/login" in page.url
