"""`svc login` as people meet it: a terminal that waits, and a real browser that approves or denies."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE
from tests.svc.conftest import ROOT, Answer, clean_environment

sync_api = pytest.importorskip("playwright.sync_api", reason="the pages are tested with playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
PASSWORD = "correct horse battery"


@pytest.fixture
def page() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        page = browser.new_page()
        page.set_default_timeout(15_000)
        yield page
        browser.close()


class Waiting:
    """`svc login` in a process of its own, over SSH: it prints where to approve, and waits."""

    def __init__(self, node: str, home: Path) -> None:
        self.environment = clean_environment(SVC_HOME=str(home), SVC_SERVER=node, SSH_CONNECTION="1 2 3 4")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "svc", "login"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=ROOT,
        )
        assert self._process.stderr is not None
        said = [self._process.stderr.readline() for _ in range(3)]
        self.fingerprint = said[0].partition(": ")[2].strip()
        found = re.fullmatch(r"Open (\S+) and enter the code (\S+)\n", said[1])
        assert found, said
        self.url, self.code = found.groups()
        assert said[2].startswith("Waiting")

    def end(self) -> Answer:
        out, err = self._process.communicate(timeout=PATIENCE)
        return Answer(self._process.returncode, out, err)

    def svc(self, *words: str) -> Answer:
        told = subprocess.run(
            [sys.executable, "-m", "svc", *words],
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=ROOT,
        )
        return Answer(told.returncode, told.stdout, told.stderr)


def sign_up(page: Any, node: str, handle: str) -> None:
    page.goto(f"{node}/auth/sign-up?return_to=/cli/authorize")
    page.get_by_label("Handle").fill(handle)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()


def test_approve_use_and_sign_out_in_the_browser(node: str, tmp_path: Path, page: Any) -> None:
    handle = f"u{secrets.token_hex(6)}"
    terminal = Waiting(node, tmp_path / "home")
    assert terminal.url == f"{node}/cli/authorize"
    page.goto(terminal.url)
    assert "/auth/login" in page.url, "approval needs a browser session"
    sign_up(page, node, handle)
    page.get_by_label("Code shown in the terminal").fill(terminal.code)
    page.get_by_role("button", name="Continue").click()
    shown = page.inner_text("main")
    assert terminal.fingerprint in shown
    assert terminal.code in shown
    assert handle in shown
    page.get_by_role("button", name="Approve").click()
    told = terminal.end()
    assert (told.code, told.out) == (0, f"{handle}\n")
    assert terminal.svc("auth", "status", "--jq", ".handle,.state").out == f"{handle}\nactive\n"
    assert terminal.svc("repo", "device", "status", "--jq", ".state").out == "not registered\n"
    assert terminal.svc("repo", "create", "first").code == 0
    assert PASSWORD.encode() not in b"".join(_files(tmp_path))
    page.goto(f"{node}/settings?tab=tokens")
    page.locator(".menu summary").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/auth/login")
    ended = terminal.svc("auth", "status")
    assert ended.code == 4, "the session in the terminal is a child of the browser's"
    assert "svc login" in ended.err


def test_deny(node: str, tmp_path: Path, page: Any) -> None:
    terminal = Waiting(node, tmp_path / "home")
    sign_up(page, node, f"u{secrets.token_hex(6)}")
    page.get_by_label("Code shown in the terminal").fill(terminal.code)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Deny").click()
    told = terminal.end()
    assert (told.code, told.out) == (1, "")
    assert told.err.startswith("svc: ")
    assert len(told.err.splitlines()) == 1
    assert terminal.svc("auth", "status").code == 4


def _files(folder: Path) -> Iterator[bytes]:
    for name, _, files in os.walk(folder):
        yield from (Path(name, file).read_bytes() for file in files)
