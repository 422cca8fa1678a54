"""Rules of protected branches. All rules whose pattern matches the branch apply, so the strictest decides."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import asdict

from localstore.core import branch_pattern
from localstore.core.errors import NotFound
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.limits import PROTECTIONS
from localstore.core.model.merge import NotMergeable
from localstore.core.model.protection import (
    BranchProtected,
    Protection,
    ProtectionSet,
    matching,
    refusal,
)
from localstore.core.obstacles import Standing, count_approvals, find_blockers
from localstore.core.words import reasons_to_wait
from relay.caller import View
from relay.db import paging
from relay.db.engine.database import Tx
from relay.domain.protection.rows import protection as rows

Act = Literal["write", "create", "move", "delete", "merge"]


async def page(view: View, query: PageQuery) -> Page[Protection]:
    """Protection rules, sorted by pattern"""
    async with view.read() as tx:
        return await paging.read_page(tx, rows.PAGE, query, rows.PAGE.into(Protection), of_repo=view.repo.id)


async def put(view: View, pattern: str, body: ProtectionSet) -> Protection:
    """Protect the branches of a pattern

    The rule replaces an earlier one.
    """
    rule = Protection(pattern=branch_pattern.check(pattern), **asdict(body))
    async with view.write() as tx:
        others = [other for other in await of_repo(tx, view.repo.id) if other.pattern != rule.pattern]
        view.require_room(len(others), PROTECTIONS, "protection rules")
        await tx.run(rows.DELETE, of_repo=view.repo.id, of_pattern=rule.pattern)
        await tx.run(rows.INSERT, repo_id=view.repo.id, **asdict(rule))
        await view.node.hub.announce(tx, view.repo.id, "protection.set", pattern=rule.pattern)
    return rule


async def clear(view: View, pattern: str) -> None:
    """Remove the protection rule of a pattern"""
    plain = branch_pattern.check(pattern)
    async with view.write() as tx:
        if not await tx.run(rows.DELETE, of_repo=view.repo.id, of_pattern=plain):
            raise NotFound
        await view.node.hub.announce(tx, view.repo.id, "protection.clear", pattern=plain)


async def of_repo(tx: Tx, repo_id: str) -> list[Protection]:
    """All protection rules of the repository. Runs one statement."""
    into = rows.PAGE.into(Protection)
    return [into(row) for row in await tx.all(rows.ALL, of_repo=repo_id)]


async def check(tx: Tx, view: View, branch: str, act: Act, standing: Standing | None = None) -> None:
    """Check that the rules of the branch allow the act. Raises NotMergeable for a merge, and BranchProtected
    for another act; the error lists the obstacles.

    The acts are `write` (a live update or a seal), `create`, `move` and `delete` of the ref, and `merge` of a
    proposal into this branch. For `merge`, `standing` is the state of the proposal, read in the same
    transaction. Without `standing`, as for a merge without a proposal, every requirement counts as missing.

    Call this inside the transaction that changes the ref or its live frontier, after answering repeated
    requests. Call it also in `prepare`, so that nobody signs a seal that is refused afterwards. For a preview
    use `find_blockers(matching(await of_repo(…), base), standing)`.
    """
    matches = matching(await of_repo(tx, view.repo.id), branch)
    if not matches:
        return
    patterns = [rule.pattern for rule in matches]
    if act == "delete":
        raise BranchProtected(
            f"{branch} is protected by the rule {patterns[0]} and cannot be deleted; the owner takes the "
            f"rule away with: svc repo protect clear {patterns[0]}",
            branch=branch,
            patterns=patterns,
            rules=["lock_deletions"],
        )
    if act == "merge":
        standing = standing or Standing()
        if blocked := find_blockers(matches, standing):
            waits = "; ".join(reasons_to_wait(blocked, *count_approvals(matches, standing)))
            raise NotMergeable(
                f"{branch} is protected, and the merge waits: {waits}. "
                "svc pr merge --auto merges once nothing is missing",
                blocked,
                branch=branch,
                patterns=patterns,
            )
        return
    if (refused := refusal(branch, matches, act)) is not None:
        raise refused
