"""The command `svc repo view`."""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from localstore.core.errors import SvcError
from localstore.core.model import history
from localstore.core.model import ref as refs
from localstore.core.model.history import TreeQuery
from localstore.core.model.repo import Repo
from localstore.core.paths import PROSE, terminal_safe
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.markdown import is_markdown, markdown
from svc.cmd.frame.options import Repository, Web
from svc.console import Column, answers
from svc.flows.git.address import git_address


def role(record: dict[str, object]) -> object:
    viewer = record.get("viewer")
    return viewer.get("role") if isinstance(viewer, dict) else None


def fork_of(record: dict[str, object]) -> object:
    """Return the OWNER/NAME of the repository that this one was forked from; None if it is not a fork."""
    parent = record.get("parent")
    return parent.get("full_name") if isinstance(parent, dict) else None


def git_clone(record: dict[str, object]) -> object:
    """Return the command with which git clones the repository; None if git cannot clone it."""
    address = record.get("clone_url")
    return f"git clone {address}" if address else None


READMES = ("readme.md", "readme", "readme.txt", "readme.rst")
PLAIN_CHARS = 64 * 1024  # of a README that is no Markdown
COLUMNS = (
    Column("full_name"),
    Column("description", kind="line"),
    Column("visibility"),
    Column("kind"),
    Column("state"),
    Column("default_branch"),
    Column("git", git_clone),
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

    Without an argument the repository of this folder is shown. Public repositories need no session. On a
    terminal the README is printed below.

    Examples:
    svc repo view
    svc repo view alice/notes --json visibility,default_branch
    svc repo view alice/notes --web
    """
    ctx.obj.set_repository(repository)
    repo = ctx.readable_repo
    if web:
        from svc.cmd.frame.browser import open_repository

        open_repository(ctx, repo)
        return
    repo = replace(repo, clone_url=git_address(repo, ctx.obj.server))
    readme = _readme(ctx, repo) if ctx.out.terminal and not ctx.out.format.as_data else ""
    ctx.out.record(repo, COLUMNS, Repo, body=readme, drawn=True)


def _readme(ctx: Ctx, repo: Repo) -> str:
    """Return the README of the default branch, rendered for the terminal. "" if there is none, or if it
    cannot be read."""
    api = ctx.reader
    with suppress(SvcError):
        head = api.send(refs.GET, id=repo.id, type="branch", name=repo.default_branch).head
        if head is None:
            return ""
        entries = api.send(history.TREE, query=TreeQuery(), id=repo.id, sha=head).entries
        path = next((entry.path for entry in entries if entry.path.casefold() in READMES), "")
        blob = api.send(history.BLOB, id=repo.id, sha=head, path=path) if path else None
        if blob is None or blob.encoding != "utf-8" or not blob.content:
            return ""
        if is_markdown(path):
            return markdown(ctx.out, blob.content, breaks=False)
        return terminal_safe(blob.content[:PLAIN_CHARS], keep=PROSE).rstrip()
    return ""
