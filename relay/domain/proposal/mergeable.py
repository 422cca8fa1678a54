"""Checks whether a proposal may be merged now. This is checked when a merge is prepared, and again in the
transaction that lands it.
"""

from __future__ import annotations

from localstore.core.model.merge import BaseMoved, NotMergeable
from localstore.core.model.proposal import Draft, ProposalBranchGone, ProposalMerged
from localstore.core.model.protection import matching
from localstore.core.model.review import HeadMoved
from localstore.core.obstacles import Standing, count_verdicts, find_blockers
from localstore.core.words import reasons_to_wait
from relay.caller import View
from relay.db import ref as refs
from relay.db.collaboration import proposal as proposals
from relay.db.collaboration.proposal import ProposalRow
from relay.db.engine.database import Tx
from relay.db.ref import RefRow
from relay.domain.checks import check
from relay.domain.proposal import elsewhere, states, wire
from relay.domain.protection import protection


def require_open(row: ProposalRow) -> None:
    if row.state == "merged":
        raise ProposalMerged(f"#{row.number} is merged already; see: svc pr view {row.number}")
    if row.state != "open":
        raise NotMergeable(
            f"#{row.number} is closed; open it again: svc pr reopen {row.number}", blocked_by=["closed"]
        )


async def require_mergeable(tx: Tx, view: View, row: ProposalRow) -> None:
    """Raise ProposalMerged, Draft or NotMergeable unless the proposal may be merged."""
    require_open(row)
    if row.draft:
        raise Draft(f"#{row.number} is a draft; when it is ready, run: svc pr ready {row.number}")
    (proposal,) = await wire.to_proposals(tx, view, [row])
    unmet = await check.find_unmet(tx, view.repo.id, [row.head_seal])
    come_to = count_verdicts(proposal.reviews, not unmet[row.head_seal], proposal.threads.open)
    await protection.check(tx, view, row.base, "merge", come_to)
    if proposal.blocked_by:
        needs = proposal.needs
        reasons = "; ".join(reasons_to_wait(proposal.blocked_by, needs.approvals, needs.missing))
        raise NotMergeable(
            f"#{row.number} cannot be merged yet: {reasons}",
            blocked_by=proposal.blocked_by,
        )


async def proposals_of(tx: Tx, view: View, base: RefRow, head: str) -> list[ProposalRow]:
    """The open proposals from the seal `head` into the branch `base`."""
    of = {"of_repo": view.repo.id, "branch_id": base.id, "seal": head}
    numbers = sorted(number for (number,) in await tx.all(proposals.OPEN_OF_SEAL, **of))
    return [await states.find(tx, view, number) for number in numbers]


async def find_obstacles(tx: Tx, view: View, base: RefRow, head: str) -> list[str]:
    """Find the obstacles to a merge of this seal into this branch. Returns their codes. If no proposal has
    the seal, the merge counts as not approved."""
    if proposal_rows := await proposals_of(tx, view, base, head):
        wire_proposals = await wire.to_proposals(tx, view, proposal_rows)
        return sorted({code for proposal in wire_proposals for code in proposal.blocked_by})
    rules = matching(await protection.of_repo(tx, view.repo.id), base.name)
    unmet = await check.find_unmet(tx, view.repo.id, [head])
    return find_blockers(rules, Standing(checks=not unmet[head]))


async def branches_of(tx: Tx, view: View, row: ProposalRow) -> tuple[RefRow, RefRow]:
    """Find the branches of a proposal. Returns (base, head); the head may be in another repository. Raises
    ProposalBranchGone if a branch does not exist or has no seal. Raises HeadMoved if a head in another
    repository has moved and the proposal has no version for it yet."""
    base = await tx.one(refs.BY_ID, repo_id=view.repo.id, ref_id=row.base_id)
    head = await elsewhere.branch_of(tx, view, row)
    if head is not None and row.head_repo_id is not None and head.head not in (None, row.head_seal):
        raise HeadMoved(row.number, head_of(head))
    base_ref = refs.to_row(base) if base else None
    return _with_seal(base_ref, row.base), _with_seal(head, row.head)


def _with_seal(ref: RefRow | None, name: str) -> RefRow:
    if ref is None or ref.head is None:
        raise ProposalBranchGone(f"branch {name} was deleted, so nothing can be merged")
    return ref


def head_of(ref: RefRow) -> str:
    """The id of the seal at the head of a branch that `branches_of` returned."""
    assert ref.head is not None  # noqa: S101 - it refuses one without
    return ref.head


def require_base(row: ProposalRow, base: RefRow, prepared_onto: str) -> None:
    """Raise BaseMoved if the proposal was retargeted since the merge was prepared."""
    if base.id != prepared_onto:
        raise BaseMoved(f"#{row.number} has another base now; merge it again", base=base.head)


def require_heads(
    row: ProposalRow, base: RefRow, head: RefRow, wanted_base: str | None, wanted_head: str | None
) -> None:
    """Raise BaseMoved or HeadMoved unless the branches are at the seals that the caller has seen. If
    `wanted_base` or `wanted_head` is None, that branch may be at any seal."""
    if wanted_head is not None and head.head != wanted_head:
        raise HeadMoved(row.number, head_of(head))
    if wanted_base is not None and base.head != wanted_base:
        raise BaseMoved(
            f"{base.name} moved to {head_of(base)[:12]} while #{row.number} was being merged; merge it again",
            base=base.head,
        )
