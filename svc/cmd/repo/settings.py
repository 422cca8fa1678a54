"""Changes the settings of a repository, and deletes or restores it: `svc repo edit`, `rename`, `visibility`,
`archive`, `delete` …"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from localstore.core.errors import NotFound, UsageError
from localstore.core.model import repo as repos
from localstore.core.model.repo import Repo, RepoPatch
from localstore.core.names import repository_name
from localstore.core.paths import terminal_safe
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Description, DryRun, Repository
from svc.cmd.frame.queueing import queueable
from svc.cmd.repo.view import COLUMNS
from svc.console import Column, answers
from svc.flows.place.folder import rename_link
from svc.http.checked import argument, require_valid

DELETED = (Column("full_name"), Column("id"), Column("restore_id"), Column("purge_at", kind="time"))


class Visibility(StrEnum):
    public = "public"
    private = "private"


@queueable
@answers(COLUMNS, Repo)
def edit(
    ctx: Ctx,
    repository: Repository = "",
    description: Annotated[str | None, Description] = None,
    default_branch: Annotated[
        str | None, typer.Option("--default-branch", metavar="NAME", help="An existing branch")
    ] = None,
) -> None:
    """Change description or default branch

    Examples:
    svc repo edit -d "Notes on parsing"
    svc repo edit alice/notes --default-branch trunk
    """
    ctx.obj.set_repository(repository)
    if description is None and default_branch is None:
        raise UsageError("nothing to change; give -d TEXT or --default-branch NAME")
    changes = RepoPatch(description=description, default_branch=default_branch)
    _patch(ctx, changes, "Changed {0}")


@answers(COLUMNS, Repo)
def rename(
    ctx: Ctx,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[OWNER/NAME] NEW", help="The repository, unless -R or this folder; its new name"
        ),
    ],
) -> None:
    """Rename a repository; its old name leads to it for 90 days

    Linked folders keep working. On a terminal the command asks first, unless --yes is given.

    Examples:
    svc repo rename journal
    svc repo rename alice/notes journal
    """
    name = _beside_repository(ctx, words, "svc repo rename [OWNER/NAME] NEW")
    changes, repo = RepoPatch(name=argument(repository_name, name)), ctx.repo
    if ctx.out.interactive:
        ctx.confirm(f"Renaming {repo.full_name} to {name}")
    changed = _patch(ctx, changes, "Renamed to {0}", repo)
    rename_link(ctx.obj, changed)


@answers(COLUMNS, Repo)
def visibility(
    ctx: Ctx,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[OWNER/NAME] public|private",
            help="The repository, unless -R or this folder; who may read it",
        ),
    ],
) -> None:
    """Make a repository public or private

    Everybody can read the whole history of a public repository, so the command asks before it makes one
    public.

    Examples:
    svc repo visibility private
    svc repo visibility alice/notes public --yes
    """
    chosen = _beside_repository(ctx, words, "svc repo visibility [OWNER/NAME] public|private")
    if chosen not in tuple(Visibility):
        raise UsageError(f"'{terminal_safe(chosen[:60])}' is neither public nor private")
    who = Visibility(chosen)
    repo = ctx.repo
    if who is Visibility.public and repo.visibility != "public":
        ctx.confirm(f"Showing the whole history of {repo.full_name} to everybody")
    _patch(ctx, RepoPatch(visibility=who.value), "{0} is now " + who.value, repo)


@answers(COLUMNS, Repo)
def archive(ctx: Ctx, repository: Repository = "") -> None:
    """Refuse every write until it is unarchived

    The command asks first, unless --yes is given.

    Examples:
    svc repo archive alice/notes
    svc repo archive alice/notes --yes
    """
    ctx.obj.set_repository(repository)
    repo = ctx.repo
    ctx.confirm(f"Archiving {repo.full_name}, which then refuses every write")
    _patch(ctx, RepoPatch(archived=True), "Archived {0}; svc repo unarchive opens it again", repo)


@answers(COLUMNS, Repo)
def unarchive(ctx: Ctx, repository: Repository = "") -> None:
    """Accept writes again

    Examples:
    svc repo unarchive alice/notes
    """
    ctx.obj.set_repository(repository)
    _patch(ctx, RepoPatch(archived=False), "{0} accepts writes again")


@answers(DELETED)
def delete(ctx: Ctx, repository: Repository = "", dry_run: DryRun = False) -> None:
    """Delete a repository; it can be restored for 30 days

    Prints the id that restores it. The name stays reserved during these 30 days.

    Examples:
    svc repo delete alice/notes --yes
    svc repo delete alice/notes --dry-run
    """
    ctx.obj.set_repository(repository)
    repo = ctx.repo
    if dry_run:
        would = {"full_name": repo.full_name, "id": repo.id}
        ctx.out.done(f"Would delete {repo.full_name}", would, DELETED, value=repo.full_name)
        return
    ctx.confirm(f"Deleting {repo.full_name}")
    gone = ctx.api.send(repos.DELETE, id=repo.id)
    ctx.out.done(
        f"Deleted {repo.full_name}. It is gone for good {ctx.out.when(gone.purge_at)}; until then this "
        f"restores it: svc repo restore {gone.restore_id}",
        {"full_name": repo.full_name, "id": repo.id, **msgspec.to_builtins(gone)},
        DELETED,
        value=gone.restore_id,
    )


@answers(COLUMNS, Repo)
def restore(ctx: Ctx, id: Annotated[str, typer.Argument(help="What svc repo delete printed")]) -> None:
    """Bring a deleted repository back

    `svc repo list --deleted` shows what can be restored.

    Examples:
    svc repo restore 01JD8X…
    """
    try:
        repo = ctx.api.send(repos.RESTORE, id=id)
    except NotFound:
        raise NotFound(f"you have no deleted repository {id}; see: svc repo list --deleted") from None
    ctx.out.done(f"Restored {repo.full_name}", repo, COLUMNS, Repo, value=repo.full_name)


def _beside_repository(ctx: Ctx, words: list[str], usage: str) -> str:
    """Return the word among `words` that has no slash. The other word, if there is one, has a slash and names
    the command's repository. Raises UsageError, with the command's `usage`, for other words."""
    others = [word for word in words if "/" not in word]
    named = [word for word in words if "/" in word]
    if len(others) != 1 or len(named) > 1:
        raise UsageError(f"give one word and optionally a repository: {usage}")
    ctx.obj.set_repository("".join(named))
    return others[0]


def _patch(ctx: Ctx, changes: RepoPatch, sentence: str, repo: Repo | None = None) -> Repo:
    body = require_valid(changes)
    target = repo or ctx.repo
    changed = ctx.api.send(repos.UPDATE, body, id=target.id)
    ctx.out.done(sentence.format(changed.full_name), changed, COLUMNS, Repo, value=changed.full_name)
    return changed
