"""`svc repo view`."""

from __future__ import annotations

from localstore.core.model.repo import Repo
from localstore.core.names import page_path
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Repository, Web
from svc.console import Column, answers


def role(record: dict[str, object]) -> object:
    viewer = record.get("viewer")
    return viewer.get("role") if isinstance(viewer, dict) else None


def fork_of(record: dict[str, object]) -> object:
    """What it was forked from."""
    found = record.get("parent")
    return found.get("full_name") if isinstance(found, dict) else None


COLUMNS = (
    Column("full_name"),
    Column("description", kind="line"),
    Column("visibility"),
    Column("kind"),
    Column("state"),
    Column("default_branch"),
    Column("fork_of", fork_of),
    Column("forks"),
    Column("role", role),
    Column("created_at", kind="time"),
    Column("updated_at", kind="time"),
    Column("id"),
)


@answers(COLUMNS, Repo)
def view(
    ctx: Ctx,
    repository: Repository = "",
    web: Web = False,
) -> None:
    """Show a repository

    Without an argument the one this folder is linked to. Public repositories need no session.

    Examples:
    svc repo view
    svc repo view alice/notes --json visibility,default_branch
    svc repo view alice/notes --web
    """
    ctx.obj.set_repository(repository)
    repo = ctx.readable_repo
    if web:
        from svc.cmd.frame.browser import open_page

        open_page(ctx.out, ctx.obj.server + page_path(repo.kind, repo.full_name))
        return
    ctx.out.record(repo, COLUMNS, Repo)
