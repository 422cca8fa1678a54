"""What a change of a protection rule or of the required checks lets merge at once: asks before, and says
afterwards what has merged."""

from __future__ import annotations

from collections.abc import Callable

from localstore.core.model.repo import Repo
from svc.cmd.frame.context import Ctx
from svc.flows.proposal.freed import (
    Asked,
    Freed,
    find_freed,
    read_asked,
    read_waiting,
    say_freed,
    say_merged,
    wait_for_merges,
)


def find_merges(ctx: Ctx, repo: Repo, change: Callable[[Asked], Asked]) -> list[Freed]:
    """Return the merges, signed in advance, that a change lets land at once. `change`: returns what the
    repository asks of merges afterwards."""
    waiting = read_waiting(ctx.api, repo.id)
    if not waiting:
        return []
    before = read_asked(ctx.api, repo.id)
    return find_freed(waiting, before, change(before))


def confirm_merges(ctx: Ctx, doing: str, freed: list[Freed]) -> None:
    """Ask for confirmation if merges land at once. `doing`: the beginning of the question."""
    if freed:
        ctx.confirm(f"{doing}. {say_freed(freed).removesuffix('.')}")


def sentence_of_merged(ctx: Ctx, repo: Repo, freed: list[Freed]) -> str:
    """Wait until the merges have landed. Return what became of them, to be added to a sentence."""
    if not freed:
        return ""
    return f". {say_merged(freed, wait_for_merges(ctx.api, repo.id, freed))}"
