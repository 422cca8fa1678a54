"""Trial merges: compute whether an open proposal whose base has moved would conflict, and in which files.

The result is stored for a pair of head and base. The first caller who reads the proposal causes the
computation and pays for it, because that caller may read both trees. If the head is a branch of this
repository, a job computes the result earlier, right after the commit that moved the base. For a proposal from
a fork nothing is computed until somebody reads it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from localstore.core.errors import NotFound, RateLimited, TooLarge
from localstore.core.merge.three_way import require_bases
from localstore.core.model import limits
from localstore.core.model.proposal import Proposal
from localstore.core.model.seal import PayloadMissing
from relay.caller import View, repo_name
from relay.domain.history.merge_base import merge_bases
from relay.domain.merging.work import Working, compute_outcome
from relay.domain.proposal import proposal, states, versions
from relay.domain.proposal.rows import merge_trial as rows
from relay.node import Node

AT_ONCE, EACH = 20, 5  # proposals of one base that its move tries: the newest, and of each proposer


async def get(view: View, number: str) -> Proposal:
    """One proposal

    If it is open, its merge into the current base is tried first, so that the answer says whether it has
    conflicts.
    """
    async with view.read() as tx:
        row = await states.find(tx, view, number)
    if row.state == "open":
        if not row.settled:
            await versions.settle(view.node, view.repo.id, row.number)
        await settle(view.node, view.repo.id, row.number, f"trials {view.payer}")
    return await proposal.get(view, number)


async def settle(node: Node, repo_id: str, number: int, who: str, untried: Any = rows.UNTRIED) -> None:
    """Try the merge of this proposal, unless it was tried before. The work counts on the budget of `who`.
    `untried`: an SQL statement that finds the proposal only if its merge was not tried. Call it at any time,
    outside of a transaction."""
    async with node.db.read() as tx:
        row = await tx.one(untried, of_repo=repo_id, of_number=number)
    if row is not None:
        _, head, base = row
        await _try_merge(node, repo_id, number, head, base, who)


async def version_job(node: Node, repo_id: str, number: int) -> None:
    """Try the merge of a proposal's new version, on the budget of the repository. Does nothing for a version
    from a fork, which is tried when somebody reads it. The job may run twice."""
    await settle(node, repo_id, number, f"trials {repo_id}", rows.UNTRIED_OWN)


async def run_trials(node: Node, data: dict[str, Any]) -> None:
    """Try the merges of proposals whose base has moved, with the current heads. The job may run twice."""
    of = {"branch_id": data["branch_id"], "limit": AT_ONCE, "each": EACH}
    async with node.db.read() as tx:
        untried_rows = await tx.all(rows.UNTRIED_OF_BASE, **of)
    for number, *_ in untried_rows:
        await settle(node, data["repo_id"], number, f"trials {data['repo_id']}")


async def _try_merge(node: Node, repo_id: str, number: int, head: str, base: str, who: str) -> None:
    """Compute the conflicts of a merge, and store them if no branch has moved during the computation. Nothing
    is stored if the merge is too large, or if its merge base cannot be read."""
    try:
        async with node.db.read(snapshot=True) as tx:
            work = Working(node, tx, repo_id, who, partial(node.objects.read_many, tx=tx))
            bases = (await merge_bases(tx, base, head)).bases
            require_bases(bases)
            roots = tuple([await work.root(base_id) for base_id in bases])
            key = (repo_id, roots, await work.root(base), await work.root(head), False)
        outcome = await compute_outcome(node, who, key, partial(node.objects.read_many, repo_id=None))
    except (TooLarge, NotFound, RateLimited, PayloadMissing):
        return
    conflicts = msgspec.json.encode(sorted(outcome.merged.conflicts)[: limits.CONFLICTS_KEPT]).decode()
    async with node.db.write(repo_name(repo_id)) as tx:
        if await tx.one(rows.UNTRIED, of_repo=repo_id, of_number=number) != (number, head, base):
            return
        values = {"repo_id": repo_id, "number": number, "head": head, "base": base, "conflicts": conflicts}
        await tx.run(rows.PUT, **values)
