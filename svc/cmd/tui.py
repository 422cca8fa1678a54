"""`svc tui`: the terminal app."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast
from urllib.parse import urlsplit

import typer

from localstore.core.errors import ClientError, SvcError, UsageError
from localstore.core.identity.ssh import READS_AND_TALKS, SIGNS
from svc.cmd.frame.context import Ctx, Run
from svc.console import answers_text
from svc.http.remote import link as link_of_ssh

if TYPE_CHECKING:
    from svc.http.credential import Credential

THEMES = ("terminal", "dark", "light", "contrast")
NOTICE = "SVC_TUI_NOTICE"  # the variable with what an app that was opened again says first
IMAGES = ("auto", "kitty", "iterm2", "sixel", "blocks")


@answers_text
def tui(
    ctx: Ctx,
    theme: Annotated[str, typer.Option("--theme", help="terminal, dark, light or contrast")] = "terminal",
    images: Annotated[
        str, typer.Option("--images", help="auto, kitty, iterm2, sixel or blocks: how pictures are drawn")
    ] = "auto",
    plain: Annotated[bool, typer.Option("--plain", help="Numbered lines instead of a drawn screen")] = False,
    no_mouse: Annotated[
        bool, typer.Option("--no-mouse", help="Leave clicks and selecting to the terminal")
    ] = False,
    web: Annotated[bool, typer.Option("--web", help="In a browser of this machine")] = False,
    port: Annotated[int, typer.Option("--port", help="With --web: the port; 0 takes a free one")] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="With --web: print the address only")
    ] = False,
) -> None:
    """Open the terminal app

    The app shows repositories, files, blame and history; ? lists the keys. Pages that you have opened before
    work without the network. With --plain, or on a terminal that cannot position the cursor, numbered lines
    are printed instead. With --web the app is served to a browser on this machine until ctrl+c, at an address
    that works once.

    Examples:
    svc tui
    svc tui --theme dark
    svc tui --web --port 8123
    """
    if theme not in THEMES:
        raise UsageError(f"{theme} is not a theme; use one of: {', '.join(THEMES)}")
    if images not in IMAGES:
        raise UsageError(f"{images} is not a way to draw pictures; use one of: {', '.join(IMAGES)}")
    if web:
        _serve(ctx, theme, images, plain, port, no_browser)
        return
    if port or no_browser:
        raise UsageError(f"{'--port' if port else '--no-browser'} goes with --web")
    if not plain and link_of_ssh(ctx.obj.environment) is not None and not sys.stdin.isatty():
        raise UsageError(
            "the app needs a terminal, and ssh gives a command none: ssh -t HOST; or read numbered lines: "
            "ssh HOST tui --plain"
        )
    plain = plain or not (ctx.obj.draws or _in_page(ctx.obj.environment))
    _open(ctx.obj, theme, images, plain, mouse=not no_mouse)


def _in_page(environment: Mapping[str, str]) -> bool:
    """Return whether the server of `--web` started this app. If so, its output is drawn in a browser page."""
    from tui.web import DRIVER, DRIVER_VARIABLE

    return environment.get(DRIVER_VARIABLE) == DRIVER


def _serve(ctx: Ctx, theme: str, images: str, plain: bool, port: int, no_browser: bool) -> None:
    """Serve the app to browsers on this machine until ctrl+c."""
    if link_of_ssh(ctx.obj.environment) is not None:
        raise UsageError("--web needs a browser on this machine; over SSH open the app itself: ssh -t HOST")
    if plain:
        raise UsageError("--plain prints numbered lines here, and --web draws in a browser; use one of them")
    if images not in ("auto", "blocks"):
        raise UsageError(f"a page draws pictures as blocks; omit --images {images}")
    if not 0 <= port <= 65535:
        raise UsageError(f"{port} is not a port; use one from 1 to 65535, or omit --port")
    if any(find_spec(needed) is None for needed in ("aiohttp", "textual_serve")):
        raise ClientError(
            "the app in a browser needs the extra web of svc, which is not installed; "
            "run in its checkout: pip install '.[web]'"
        )
    server = ctx.obj.server
    from svc.cmd.frame.browser import open_page
    from tui.web.server import Serving, listen, serve

    words = [sys.executable, "-P", "-m", "svc", "tui", "--server", server]
    words += ["--theme", theme, "--images", "blocks"]

    def ready(url: str) -> None:
        if no_browser:
            ctx.out.link(url)
        else:
            open_page(ctx.out, url)
        ctx.out.draw("")  # the address, also into a pipe
        ctx.out.note("the address counts once, for one browser; ctrl+c ends the app")

    serve(Serving(words, theme, urlsplit(server).netloc), listen(port), ready, ctx.out.note)


def _open(run: Run, theme: str, images: str, plain: bool, *, mouse: bool) -> None:
    from localstore import known
    from tui.client import Client

    root = run.home.root
    origin = run.server if plain or run.knows_server else ""
    if not plain:
        run.note = lambda text: None  # the screen is the app's, and it says itself how the server is
    session = run.sessions.find(origin) if origin else None

    def account() -> str:
        now = run.sessions.find(origin) if origin else None
        return (now.handle or now.user_id) if now else ""

    def credential() -> Credential | None:
        try:
            return run.sessions.credential(origin) if account() == client.account else None
        except SvcError:
            return None

    from svc.cmd.frame.catalogue import catalogue

    client = Client(origin, account(), lambda: run.reader, known.Store(root / known.FILE), credential)
    if plain:
        from tui.plain import LineMode

        linked = run.linked[1].repo_id if run.linked else ""
        commands = catalogue(run, drawn=False)
        code = LineMode(client, time.time, sys.stdin, sys.stdout, linked, commands).run()
        if code:
            raise typer.Exit(code)
        return
    from svc.flows.outbox.account import account_api
    from svc.flows.outbox.actions import open_outbox
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
    ssh = link_of_ssh()
    sending = Sending(open_outbox(run.home), run.home, session, lambda *named: account_api(run, *named))
    app = SvcApp(
        client,
        place,
        keys,
        theme,
        sending=sending,
        drafts=root / "drafts",
        # Over SSH there is no agent, no folder, and no machine of the user's.
        machine=Machine(run.home, run.environment) if ssh is None else None,
        images=way_of(os.environ) if images == "auto" else cast("Way", images),
        commands=catalogue(run),
        notice=os.environ.pop(NOTICE, "") if ssh is None else SIGNS if ssh.agent else READS_AND_TALKS,
        account_now=account,
        sessions=run.sessions if ssh is None else None,
    )
    settle()
    app.run(mouse=mouse)
    if app.ended_by:
        from tui.display.driver import die_of

        die_of(app.ended_by)
    if app.broken is not None:
        raise app.broken
    if app.reopens:
        _open_again(app.reopens_at, app.reopens_with)


def _open_again(server: str, notice: str) -> None:
    """Run this very program again in this process. `server`: the origin to use from now on, "" for the one
    that the options, the environment or the folder name. `notice`: what the app says first."""
    words = list(sys.orig_argv)
    if notice:
        os.environ[NOTICE] = notice
    if server:
        words, os.environ["SVC_SERVER"] = _without_server(words), server
    os.execv(sys.executable, words)  # noqa: S606 - no other program than this one


def _without_server(words: Sequence[str]) -> list[str]:
    """Return the words of a command line without the option --server and its value."""
    without: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--server":
            next(rest, None)
        elif not word.startswith("--server="):
            without.append(word)
    return without
