"""Opens pages in a browser if the user sits at this machine. Otherwise prints their addresses."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from localstore.core.model.repo import Repo
from localstore.core.names import page_path
from svc.cmd.frame.context import Ctx
from svc.console import Out
from svc.http.remote import link

_SSH = ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")


def can_open(out: Out, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether a page can be opened on the user's own screen."""
    if not out.interactive or link(environment) is not None:  # over SSH to a relay this is its machine
        return False
    if environment.get("BROWSER"):  # the user names what opens pages, in a session over SSH too
        return True
    if any(environment.get(name) for name in _SSH):
        return False
    return sys.platform in ("darwin", "win32") or bool(
        environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    )


def open_page(out: Out, url: str) -> None:
    """Open `url` in the browser. If there is no browser, print it."""
    if can_open(out):
        import webbrowser

        if webbrowser.open(url, new=2):
            out.note(f"opened {url}")
            return
    out.link(url)


def open_repository(ctx: Ctx, repo: Repo, tab: str = "", **query: str | int) -> None:
    """Open the page of a repository in the browser, or a tab of that page. If there is no browser, print the
    address."""
    from urllib.parse import urlencode

    address = ctx.obj.server + page_path(repo.kind, repo.full_name)
    open_page(ctx.out, f"{address}/dev?{urlencode({'tab': tab, **query})}" if tab else address)
