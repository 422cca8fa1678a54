"""Asks for confirmation before a branch or tag is deleted, if some of its seals are on no other branch or
tag."""

from __future__ import annotations

from localstore.core.model.ref import RefType
from localstore.core.model.repo import Repo
from localstore.core.words import count
from svc.cmd.frame.context import Ctx
from svc.flows.place.known_seals import remember
from svc.flows.place.unheld import seals_held_by


def confirm_unheld(ctx: Ctx, repo: Repo, kind: RefType, name: str, ask: bool = True) -> str:
    """Ask for confirmation before a branch or tag is deleted, if some of its seals are on no other branch or
    tag. With `ask` False, nothing is asked. The ids of these seals are stored on this machine, so that they
    can still be found.

    Returns the command that creates the branch or tag again, or "" if no seal would be lost. Raises NotFound
    if the branch or tag does not exist."""
    alone = seals_held_by(ctx.obj, repo, kind, name)
    if not alone:
        return ""
    make = "repo branch" if kind == "branch" else "repo tag create"
    way_back = f"svc {make} {name} --from {alone[0]} makes it again"
    remember(ctx.obj.home, repo.id, reversed(alone))
    if ask:
        ctx.confirm(
            f"Deleting {name}, which leaves {count(len(alone), 'seal')} on no branch or tag ({way_back})"
        )
    return way_back
