"""`svc auth git-credential`, `svc auth setup-git`: lets git read private repositories with the sign-in of
svc."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from localstore.core.errors import SvcError, Unauthorized, UsageError
from localstore.core.model.limits import MIB
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers, answers_text
from svc.http.remote import link

ASKED_MAX = 1 * MIB  # characters that git may say
COLUMNS = (Column("server"), Column("commands"))


@answers_text
def git_credential(
    ctx: Ctx, action: Annotated[str, typer.Argument(help="get, store or erase, as git says it")]
) -> None:
    """Answer git's question for a password

    git runs this command after `svc auth setup-git`, when a server asks git for a password. The answer to
    `get` is a token with which git can read this one repository for an hour. `store` and `erase` do nothing.
    If SVC_TOKEN is set, as in scripts and CI, the answer is made from that token.

    Examples:
    svc auth git-credential get
    """
    if sys.stdin.isatty():
        raise UsageError(
            "git runs this, and says on stdin what it needs; to have it do so: svc auth setup-git"
        )
    text = sys.stdin.read(ASKED_MAX)
    if action != "get":
        return
    from svc.flows.git.credential import password_for, read_request

    request = read_request(text)
    if request is None:
        return
    try:
        password = password_for(request, ctx.obj.sessions)
    except SvcError:
        ctx.out.text("quit=1\n")  # a person at a prompt could not know better
        raise
    if password is None:
        ctx.out.note(
            f"svc: nobody is signed in to {request.origin} here; run: svc login --server {request.origin}"
        )
        return
    ctx.out.text(password.lines())


@answers(COLUMNS)
def setup_git(ctx: Ctx) -> None:
    """Let git read private repositories by this sign-in

    Writes three lines into git's own settings, for this server only. When the server asks git for a password,
    git then asks svc, and gets a token that can read that one repository for an hour. To undo it: git config
    --global --remove-section credential.https://HOST

    Examples:
    svc auth setup-git
    git clone https://node.example/alice/private.git
    """
    origin = ctx.obj.server
    if ctx.obj.sessions.credential(origin) is None:
        raise Unauthorized(f"nobody is signed in to {origin} here; run: svc login --server {origin}")
    sentence, commands = register(origin)
    ctx.out.done(sentence, {"server": origin, "commands": commands}, COLUMNS, value=origin)


def register(origin: str) -> tuple[str, list[str]]:
    """Set up git to get its password for this server from svc. Returns a sentence for the user, and the
    commands that were run."""
    from svc.flows.git import settings

    commands = settings.write(origin)
    lines = "".join(f"\n  {line}" for line in commands)
    return f"git asks svc for passwords of {origin}, by these lines:{lines}", commands


def offer(ctx: Ctx, origin: str) -> bool:
    """Ask whether git should use this sign-in, and return the answer. Returns False without asking if nobody
    can be asked, or if git already has a credential helper for the server."""
    from svc.flows.git import settings

    if not ctx.out.interactive or link(ctx.obj.environment) is not None:
        return False
    try:
        if settings.has_helper(origin):
            return False
    except UsageError:
        return False
    return ctx.out.ask(f"Let git read private repositories of {origin} by this sign-in?")
