"""The app in a real browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyte
import pytest

from tests.patience import until
from tests.svc.conftest import Svc
from tests.tui.test_app import project
from tests.tui.web.serving import serving

__all__ = ["project"]
sync_api = pytest.importorskip("playwright.sync_api", reason="the page is tested with playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
SHOTS = os.environ.get("SVC_SCREENSHOTS")  # a folder: keep what the pages look like
# The terminal draws on a canvas and keeps its lines to itself; what it is sent says the same.
LISTEN = """
const Real = window.WebSocket;
window.WebSocket = class extends Real {
  constructor(...given) {
    super(...given);
    window.sent = "";
    this.addEventListener("message", (one) => {
      if (typeof one.data !== "string") window.sent += new TextDecoder().decode(one.data);
    });
  }
};
"""


@pytest.fixture
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield found
        found.close()


class Page:
    """One page of the browser that has the app."""

    def __init__(self, browser: Any, url: str) -> None:
        allowed = ["clipboard-read", "clipboard-write"]
        self.context = browser.new_context(viewport={"width": 900, "height": 600}, permissions=allowed)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.errors: list[str] = []
        self.asked: list[str] = []
        self.page.add_init_script(LISTEN)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(url)
        if url.startswith("data:"):
            self.page.get_by_role("link").click()
        self.page.wait_for_selector("body.-first-byte")
        keyboard = "document.activeElement?.matches('.xterm-helper-textarea')"
        self.page.wait_for_function(keyboard)  # before that keys go nowhere

    @property
    def sent(self) -> str:
        return str(self.page.evaluate("window.sent || ''"))

    @property
    def text(self) -> str:
        """What the terminal shows."""
        screen = pyte.Screen(200, 60)
        pyte.Stream(screen).feed(self.sent.replace("\x1b[?2026$p", ""))
        return "\n".join(screen.display)

    def shows(self, text: str) -> bool:
        return bool(until(lambda: text in self.text, f"the page shows {text}", pause=0.1))

    def keys(self, *keys: str, shows: str) -> None:
        """Press keys; wait until the terminal shows this."""
        for key in keys:
            self.page.keyboard.press(key)
        try:
            assert self.shows(shows)
        except AssertionError:
            raise AssertionError(f"{shows} is not in\n{self.text}") from None

    def shot(self, name: str) -> None:
        if SHOTS:
            self.page.wait_for_timeout(300)
            self.page.screenshot(path=str(Path(SHOTS) / f"{name}.png"))


def test_keys_copy_resize_end_and_again(project: str, browser: Any) -> None:
    with serving("--theme", "dark", NO_COLOR="") as web:
        one = Page(browser, web.url)
        assert one.shows(project)
        assert web.token not in one.page.url
        assert "38;2;" in one.sent, "true colours"
        one.shot("home")
        one.keys("Enter", shows="README.md")
        one.keys("2", shows="data.bin")
        one.keys("G", "k", "Enter", shows="Read me.")
        one.keys("y", shows="copied")
        until(lambda: one.page.evaluate("navigator.clipboard.readText()"), "the path is copied", pause=0.1)
        one.shot("code")
        one.page.set_viewport_size({"width": 1300, "height": 700})
        one.keys("1", shows="Notes on parsing")
        one.shot("wide")
        one.page.mouse.click(5, 690)
        one.keys("?", shows=" Keys ")
        one.page.keyboard.press("Escape")
        until(lambda: " Keys " not in one.text, "the help has closed", pause=0.1)
        assert {url.split("/")[2] for url in one.asked} == {f"127.0.0.1:{web.port}"}, (
            "it needs no other server"
        )
        one.keys("q", shows="Repositories 1")
        one.page.keyboard.press("q")
        one.page.get_by_text("The app has ended").wait_for()
        assert web.apps() == []
        one.shot("ended")
        one.page.get_by_role("link").click()
        one.page.wait_for_selector("body.-first-byte")
        assert one.shows(project)
        one.errors = [error for error in one.errors if "already in CLOSING or CLOSED" not in error]  # focus
        assert one.errors == []

        stranger = browser.new_context().new_page()
        for url in (web.url, one.page.url):
            assert stranger.goto(url).status == 403
        assert web.end() == (0, "the address counts once, for one browser; ctrl+c ends the app\n")
        one.page.get_by_text("The app has ended").wait_for()


def test_a_link_elsewhere_no_colour_and_no_editor(
    project: str, alice: Svc, browser: Any, tmp_path: Path
) -> None:
    assert alice("issue", "create", "-t", "Stalls", "-b", "It hangs").code == 0
    with serving(NO_COLOR="1", EDITOR=f"touch {tmp_path / 'edited'}") as web:
        one = Page(browser, f"data:text/html,<a href='{web.url}'>the app</a>")
        assert one.shows(project)
        one.keys("Enter", "3", shows="Stalls")
        one.keys("Enter", shows="It hangs")
        one.keys("E", shows="a page has no terminal for your editor")
        assert not (tmp_path / "edited").exists()
        assert "38;2;" not in one.sent
        assert one.errors == []
