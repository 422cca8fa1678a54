"""`svc tui`: the terminal app."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated, cast

import typer

from localstore.core.errors import UsageError
from localstore.core.identity.ssh import READS_AND_TALKS
from svc.cmd.frame.context import Ctx, Run
from svc.console import answers_text

THEMES = ("terminal", "dark", "light", "contrast")
IMAGES = ("auto", "kitty", "iterm2", "sixel", "blocks")


@answers_text
def tui(
    ctx: Ctx,
    theme: Annotated[str, typer.Option("--theme", help="terminal, dark, light or contrast")] = "terminal",
    images: Annotated[
        str, typer.Option("--images", help="auto, kitty, iterm2, sixel or blocks: how pictures are drawn")
    ] = "auto",
    plain: Annotated[bool, typer.Option("--plain", help="Numbered lines instead of a drawn screen")] = False,
) -> None:
    """Open the terminal app

    It shows repositories, files, blame and history; ? lists the keys. What was seen before opens without the
    network. With --plain, or on a terminal that cannot be drawn on, it prints numbered lines instead.

    Examples:
    svc tui
    svc tui --theme dark
    """
    if theme not in THEMES:
        raise UsageError(f"{theme} is not a theme; use one of: {', '.join(THEMES)}")
    if images not in IMAGES:
        raise UsageError(f"{images} is not a way to draw pictures; use one of: {', '.join(IMAGES)}")
    _open(ctx.obj, theme, images, plain or not ctx.obj.draws)


def _open(run: Run, theme: str, images: str, plain: bool) -> None:
    from localstore import known
    from tui.client import Client

    root = run.home.root
    if not plain:
        run.note = lambda text: None  # the screen is the app's, and it says itself how the server is
    session = run.sessions.find(run.server)
    account = (session.handle or session.user_id) if session else ""
    client = Client(run.server, account, lambda: run.reader, known.Store(root / known.FILE))
    if plain:
        from tui.plain import Plain

        Plain(client, time.time, sys.stdin, sys.stdout, run.linked[1].repo_id if run.linked else "").run()
        return
    from svc.cmd.frame.catalogue import catalogue
    from svc.flows.outbox.account import account_api
    from svc.flows.outbox.actions import open_outbox
    from svc.http.remote import link as link_of_ssh
    from tui.actions import read_keys
    from tui.app import SvcApp
    from tui.images.protocol import Way, way_of
    from tui.machine import Machine, Place
    from tui.memory import settle
    from tui.sending import Sending

    place = Place()
    if run.linked is not None:
        folder, link = run.linked
        place = Place(Path(folder), link.repo_id, link.repo, link.branch)
    keys = read_keys(root / "keys.toml")
    if keys:
        from tui.screens.tables import require_keys  # every screen: a third of what starting would cost

        require_keys(keys, str(root / "keys.toml"))
    over_ssh = link_of_ssh() is not None
    sending = Sending(open_outbox(run.home), run.home, session, lambda *named: account_api(run, *named))
    app = SvcApp(
        client,
        place,
        keys,
        theme,
        sending=sending,
        drafts=root / "drafts",
        machine=None if over_ssh else Machine(run.home),  # there is no agent, and no folder
        images=way_of(os.environ) if images == "auto" else cast("Way", images),
        commands=catalogue(run),
        notice=READS_AND_TALKS if over_ssh else "",
    )
    settle()
    app.run()
    if app.broken is not None:
        raise app.broken
