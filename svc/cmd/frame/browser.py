"""Opens pages in a browser, if the user sits at this machine; says where there is no page."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from svc.console import Out

_SSH = ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")


def can_open(out: Out, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a page would open on the user's screen."""
    if not out.interactive or any(environment.get(name) for name in _SSH):
        return False
    return sys.platform in ("darwin", "win32") or bool(
        environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    )


def open_page(out: Out, url: str) -> None:
    """Open `url` in the browser; print it if there is none."""
    if can_open(out):
        import webbrowser

        if webbrowser.open(url, new=2):
            out.note(f"opened {url}")
            return
    out.link(url)


def note_pages(out: Out) -> None:
    """Say that `--web` opens nothing here yet; the command goes on in the terminal."""
    out.note("pages of issues and proposals are not in this version of svc; it is shown here instead")
