"""`svc tui`: the terminal app."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from localstore.core.errors import UsageError
from svc.cmd.frame.context import Ctx, Run
from svc.console import answers_text

THEMES = ("terminal", "dark", "light", "contrast")


@answers_text
def tui(
    ctx: Ctx,
    theme: Annotated[str, typer.Option("--theme", help="terminal, dark, light or contrast")] = "terminal",
) -> None:
    """Open the terminal app

    Examples:
    svc tui
    svc tui --theme dark
    """
    if theme not in THEMES:
        raise UsageError(f"{theme} is no theme; use one of: {', '.join(THEMES)}")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("the app needs a terminal; svc --help lists the commands that do not")
    _open(ctx.obj, theme)


def _open(run: Run, theme: str) -> None:
    from tui.actions import read_keys
    from tui.app import Place, SvcApp
    from tui.client import Client
    from tui.store import Store

    root = run.home.root
    session = run.sessions.find(run.server)
    place = Place()
    if run.linked is not None:
        folder, link = run.linked
        place = Place(Path(folder), link.repo_id, link.repo, link.branch)
    account = (session.handle or session.user_id) if session else ""
    client = Client(run.server, account, lambda: run.reader, Store(root / "known.db"))
    app = SvcApp(client, place, read_keys(root / "keys.toml"), theme)
    app.run()
    if app.broken is not None:
        raise app.broken
