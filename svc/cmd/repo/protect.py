"""The commands `svc repo protect …`."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import msgspec
import typer

from localstore.core import branch_pattern
from localstore.core.model import protection as protections
from localstore.core.model.limits import PROTECTIONS
from localstore.core.model.protection import Protection, ProtectionSet
from localstore.core.words import count
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.cmd.repo.freeing import confirm_merges, find_merges, sentence_of_merged
from svc.console import Column, answers
from svc.flows.place.protecting import words_of_rule
from svc.flows.place.refs import explained_not_found
from svc.http.checked import require_valid


def approvals(record: dict[str, Any]) -> int:
    """Return the number of approvals that a merge needs. It is the number in the rule; without one it is 1 if
    the rule requires review, else 0."""
    return int(record["required_approvals"]) or int(record["require_review"])


_FLAGS = (
    Column("require_checks"),
    Column("lock_writes"),
    Column("lock_deletions"),
    Column("require_resolution"),
    Column("fresh_approvals"),
)
NEEDED = Column("approvals_needed", approvals)
COLUMNS = (
    Column("pattern", kind="name"),
    Column("require_review"),
    Column("required_approvals"),
    *_FLAGS,
    NEEDED,
)
TABLE = (COLUMNS[0], NEEDED, *_FLAGS)
Pattern = Annotated[str, typer.Argument(metavar="BRANCH", help="A branch, or a pattern such as 'release/**'")]


@answers(COLUMNS, Protection, table=TABLE)
def list_rules(ctx: Ctx, limit: Limit = 100) -> None:
    """List protection rules

    If a rule requires review without a number, one approval is needed.

    Examples:
    svc repo protect list
    """
    rows = ctx.reader.items(protections.LIST, limit=limit, id=ctx.readable_repo.id)
    columns = COLUMNS if ctx.out.format.as_data else TABLE
    ctx.out.rows(rows, columns, Protection, empty="no protection rules")


@answers(COLUMNS, Protection)
def set_rule(
    ctx: Ctx,
    branch: Pattern,
    require_review: Annotated[bool, typer.Option("--require-review", help="Merges need an approval")] = False,
    require_checks: Annotated[
        bool, typer.Option("--require-checks", help="Merges need their required checks")
    ] = False,
    lock_writes: Annotated[
        bool, typer.Option("--lock-writes", help="Nothing is written, merges too")
    ] = False,
    lock_deletions: Annotated[
        bool, typer.Option("--lock-deletions", help="Kept with the rule; any rule forbids deletion")
    ] = False,
    required_approvals: Annotated[
        int,
        typer.Option(
            "--required-approvals",
            metavar="N",
            help="How many approvals; else one with --require-review",
        ),
    ] = 0,
    require_resolution: Annotated[
        bool, typer.Option("--require-resolution", help="Merges need every thread resolved")
    ] = False,
    fresh_approvals: Annotated[
        bool, typer.Option("--fresh-approvals", help="Only approvals of the change as it is now count")
    ] = False,
) -> None:
    """Create or replace the protection rule of a branch pattern

    In a pattern * matches characters between two slashes, and ** matches slashes, too. If several rules match
    a branch, the strictest requirements apply. If a proposal waits with svc pr merge --auto and the rule asks
    for less than before, it may merge at once: the command names it and asks first.

    Examples:
    svc repo protect set main --require-review --required-approvals 2
    svc repo protect set 'release/**' --lock-writes
    """
    pattern = branch_pattern.check(branch)
    body = require_valid(
        ProtectionSet(
            require_review=require_review,
            require_checks=require_checks,
            lock_writes=lock_writes,
            lock_deletions=lock_deletions,
            required_approvals=required_approvals,
            require_resolution=require_resolution,
            fresh_approvals=fresh_approvals,
        )
    )
    repo = ctx.repo
    freed = find_merges(ctx, repo, lambda now: now.with_rule(pattern, body))
    confirm_merges(ctx, f"Replacing the rule for {pattern} in {repo.full_name}", freed)
    rule = ctx.api.send(protections.SET, body, id=repo.id, pattern=pattern)
    needed = approvals(msgspec.to_builtins(rule))
    merges = f"; merges need {count(needed, 'approval')}" if needed else ""
    sentence = f"Protected {rule.pattern}{merges}{sentence_of_merged(ctx, repo, freed)}"
    ctx.out.done(sentence, rule, COLUMNS, Protection, value=rule.pattern)


@answers((Column("pattern"),))
def clear(ctx: Ctx, branch: Pattern) -> None:
    """Remove the protection rule of a branch pattern

    A proposal that waits for the rule with svc pr merge --auto merges at once: the question names it. The
    command that brings the rule back is printed.

    Examples:
    svc repo protect clear 'release/**'
    svc repo protect clear main --yes
    """
    pattern = branch_pattern.check(branch)
    repo = ctx.repo
    freed = find_merges(ctx, repo, lambda now: now.with_rule(pattern, None))
    doing = f"Removing the rule for {pattern} in {repo.full_name}"
    confirm_merges(ctx, doing, freed)
    if not freed:
        ctx.confirm(doing)
    rules = ctx.api.items(protections.LIST, limit=PROTECTIONS, id=repo.id)
    removed = next((rule for rule in rules if rule.pattern == pattern), None)
    with explained_not_found(repo, f"protection rule {pattern}", "svc repo protect list"):
        ctx.api.send(protections.CLEAR, id=repo.id, pattern=pattern)
    sentence = f"Removed the rule of {pattern}{sentence_of_merged(ctx, repo, freed)}"
    ctx.out.done(sentence, {"pattern": pattern}, (Column("pattern"),), value=pattern)
    if removed is not None:
        ctx.out.note(f"to bring it back: {shlex.join(['svc', *words_of_rule(removed)])}")
