"""Connects the app to a page in a browser. Its output and input are messages on pipes."""

from __future__ import annotations

from contextlib import suppress

from textual import messages
from textual.drivers.web_driver import WebDriver


class PageDriver(WebDriver):
    """Textual's driver for pages in a browser. It ends the app when nobody can read its output any more."""

    def run_input_thread(self) -> None:
        super().run_input_thread()
        if not self.exit_event.is_set():  # the server is gone, without a word if it was killed
            with suppress(RuntimeError):  # the app is, too
                self.send_message(messages.ExitApp())
