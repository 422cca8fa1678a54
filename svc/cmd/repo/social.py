"""The commands `svc repo star|unstar|watch|unwatch`."""

from __future__ import annotations

from localstore.core.endpoint import Endpoint
from localstore.core.model import social
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Repository
from svc.console import Column, answers

COLUMNS = (Column("full_name"), Column("starred"), Column("watching"))


@answers(COLUMNS)
def star(ctx: Ctx, repository: Repository = "") -> None:
    """Give a repository a star

    Examples:
    svc repo star alice/notes
    """
    _send(ctx, repository, social.STAR, "Starred", starred=True)


@answers(COLUMNS)
def unstar(ctx: Ctx, repository: Repository = "") -> None:
    """Remove your star

    Examples:
    svc repo unstar alice/notes
    """
    _send(ctx, repository, social.UNSTAR, "Removed the star from", starred=False)


@answers(COLUMNS)
def watch(ctx: Ctx, repository: Repository = "") -> None:
    """Hear in your inbox what happens on issues and proposals

    Examples:
    svc repo watch alice/notes
    """
    _send(ctx, repository, social.WATCH, "You now watch", watching=True)


@answers(COLUMNS)
def unwatch(ctx: Ctx, repository: Repository = "") -> None:
    """Stop watching a repository

    You still get notices about issues and proposals in which you took part, or in which you are mentioned or
    assigned.

    Examples:
    svc repo unwatch alice/notes
    """
    _send(ctx, repository, social.UNWATCH, "You no longer watch", watching=False)


def _send(ctx: Ctx, repository: str, endpoint: Endpoint[None], did: str, **now: bool) -> None:
    ctx.obj.set_repository(repository)
    repo = ctx.repo
    ctx.api.send(endpoint, id=repo.id)
    viewer = {name: bool(repo.viewer and getattr(repo.viewer, name)) for name in ("starred", "watching")}
    record = {"full_name": repo.full_name, **viewer, **now}
    ctx.out.done(f"{did} {repo.full_name}", record, COLUMNS, value=repo.full_name)
