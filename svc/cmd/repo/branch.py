"""The commands `svc repo branch`, `svc repo branch-delete`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import UsageError
from localstore.core.model import ref as refs
from localstore.core.model.ref import Ref, RefCreate, RefDelete, RefQuery
from localstore.core.model.repo import Repo
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.deleting import confirm_unheld
from svc.cmd.frame.options import Limit
from svc.console import Column, answers
from svc.flows.place.known_refs import add, drop, recording
from svc.flows.place.refs import default_ref, explained_not_found, resolve_ref

VERBS = ("create", "delete", "list", "ls", "new", "remove", "rename", "rm")
COLUMNS = (Column("name", kind="name"), Column("head", kind="id"), Column("default"), Column("protected"))


@answers(COLUMNS, Ref)
def branch(
    ctx: Ctx,
    name: Annotated[str, typer.Argument(help="The branch to create")] = "",
    base: Annotated[
        str, typer.Option("--from", metavar="BASE", help="A branch, tag or seal; else this folder's branch")
    ] = "",
    limit: Limit = 100,
) -> None:
    """List branches, or create one

    A new branch starts at the last seal of its base. `svc switch NAME` switches this folder to it.

    Examples:
    svc repo branch
    svc repo branch parser --from main
    """
    if not name:
        if base:
            raise UsageError(
                "--from needs the name of the branch to create: svc repo branch NAME --from BASE"
            )
        repo_id = ctx.readable_repo.id
        rows = ctx.reader.items(refs.LIST, RefQuery(type="branch"), limit=limit, id=repo_id)
        ctx.out.rows(
            recording(ctx.obj.home, repo_id, "branch", rows, limit), COLUMNS, Ref, empty="no branches"
        )
        return
    if name in VERBS and not base:
        raise UsageError(
            "svc repo branch lists branches, svc repo branch NAME makes one, svc repo branch-delete NAME "
            f"deletes one; to make one that is called {name}: svc repo branch {name} --from BASE"
        )
    repo = ctx.repo
    start = _start(ctx, repo, base)
    ref = ctx.api.send(refs.CREATE, RefCreate(type="branch", name=name, head=start), id=repo.id)
    add(ctx.obj.home, repo.id, "branch", [ref.name])
    ctx.out.done(
        f"Created branch {ref.name} at {(ref.head or start)[:12]}", ref, COLUMNS, Ref, value=ref.name
    )


def _start(ctx: Ctx, repo: Repo, base: str) -> str:
    """Return the name of the branch, or the id of the seal, at which a new branch begins. `base` is what the
    user typed; "" means this folder's branch."""
    ref = resolve_ref(ctx.obj, repo, base or default_ref(ctx.obj, repo))
    return ref.name if ref.kind == "branch" else ref.head or ref.name


@answers((Column("name"),))
def branch_delete(
    ctx: Ctx,
    name: Annotated[str, typer.Argument(help="The branch")],
    discard_live: Annotated[
        bool, typer.Option("--discard-live", help="Also drop edits that no seal holds")
    ] = False,
) -> None:
    """Delete a branch; its seals stay reachable by id

    Refuses to delete the default branch, protected branches, and branches with unsealed edits. If no other
    branch or tag leads to its seals, the command asks, and prints the id with which they can be restored.

    Examples:
    svc repo branch-delete parser
    """
    repo = ctx.repo
    linked = ctx.obj.linked
    if linked and linked[1].repo_id == repo.id and linked[1].branch == name and not linked[1].shown_seal:
        with explained_not_found(repo, f"branch {name}", "svc repo branch"):
            there = ctx.api.send(refs.GET, id=repo.id, type="branch", name=name)
        if not there.default:  # the server refuses to delete that one
            ctx.confirm(
                f"This folder is on {name}: it keeps its files, and svc switch {repo.default_branch} "
                f"takes it elsewhere. Deleting {name}"
            )
    elif discard_live:
        ctx.confirm(f"Dropping the unsealed edits of {name}")
    with explained_not_found(repo, f"branch {name}", "svc repo branch"):
        way_back = confirm_unheld(ctx, repo, "branch", name)
        query = RefDelete(discard_live=discard_live)
        ctx.api.send(refs.DELETE, query=query, id=repo.id, type="branch", name=name)
    drop(ctx.obj.home, repo.id, name)
    if way_back:
        ctx.out.note(way_back)
    ctx.out.done(f"Deleted branch {name}", {"name": name}, (Column("name"),), value=name)
