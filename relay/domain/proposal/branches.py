"""Updates proposals when their branches move or are deleted.

A branch is identified by its id. The id stays the same after a rename, and a new branch with an old name is a
different branch.

- The head of a proposal moves: an open proposal gets a new version.
- The head is deleted: an open proposal is closed. Its versions stay readable, and it can be reopened when a
  branch of that name has the same seal as its head.
- A head in another repository moves or is deleted: a job does the same (`elsewhere`).
- The base of a proposal is deleted: if another proposal had merged the base into a branch, that branch
  becomes the base; else the proposal is closed.
"""

from __future__ import annotations

from localstore.core.model.proposal import ProposalBranchGone
from relay.caller import View
from relay.db import ref as refs
from relay.db.collaboration import proposal as rows
from relay.db.collaboration.proposal import ProposalRow
from relay.db.engine.database import Tx
from relay.db.ref import RefRow
from relay.domain.discussion import subject
from relay.domain.proposal import applied, auto, elsewhere, states, versions
from relay.node import Node

TRIALS = "merge_trials"  # the job that tries the merges into a branch that has moved


def register(node: Node) -> None:
    """Register `follow_move` to be called when a head moves, and `applied.resolve_applied` when prepared
    seals land."""
    node.landings.on_moved(follow_move)
    node.landings.on_landed(applied.resolve_applied)


async def follow_move(tx: Tx, view: View, branch_id: str, head: str) -> None:
    """Update proposals after the head of this branch moved to `head`. Open proposals whose head is this
    branch get a new version. Signed merges into this branch that wait are dropped. For open proposals whose
    base is this branch, new trial merges are queued."""
    await auto.base_moved(tx, view, branch_id)
    if await tx.one(rows.ANY_OPEN_OF_BASE, branch_id=branch_id) is not None:
        await view.node.jobs.add(tx, TRIALS, {"repo_id": view.repo.id, "branch_id": branch_id})
    for repo_id, number, n, was, base, base_now in await tx.all(rows.OPEN_OF_HEAD, branch_id=branch_id):
        if was == head:
            continue
        if repo_id != view.repo.id:
            await elsewhere.recheck_later(tx, view.node, repo_id, number, view.me.account_id)
            continue
        await auto.drop(tx, view.node.hub, view.repo.id, number, "head_moved")
        await versions.add(tx, view, number, n + 1, head, base_now or base)
        await subject.record_change(tx, view, "proposal.push", number, version=n + 1, head=head)


async def follow_deletion(tx: Tx, view: View, branch_id: str) -> None:
    """Update proposals after this branch was deleted. Proposals whose head it was are closed. Proposals whose
    base it was get another base, or are closed."""
    for repo_id, number, *_ in await tx.all(rows.OPEN_OF_HEAD, branch_id=branch_id):
        if repo_id != view.repo.id:
            await elsewhere.recheck_later(tx, view.node, repo_id, number, view.me.account_id)
            continue
        await states.put(tx, view, number, "closed", "proposal.close", reason="head_deleted")
    based = await tx.all(rows.OPEN_OF_BASE, branch_id=branch_id)
    if not based:
        return
    onto_id = await tx.value(rows.MERGED_OF_HEAD, branch_id=branch_id)
    onto = await _find_living(tx, view, onto_id) if onto_id else None
    for number, head_id in based:
        if onto is None or onto.head is None or onto.id == head_id:
            await states.put(tx, view, number, "closed", "proposal.close", reason="base_deleted")
        else:
            await retarget(tx, view, await states.find(tx, view, number), onto)


async def retarget(tx: Tx, view: View, row: ProposalRow, base: RefRow) -> None:
    """Give the proposal another base, which must have a seal. The proposal gets a new version, because its
    changes are different on another base."""
    of = {"of_repo": view.repo.id, "of_number": row.number}
    await auto.drop(tx, view.node.hub, view.repo.id, row.number, "retargeted")
    await tx.run(rows.SET_BASE, **of, new_base=base.name, new_base_id=base.id)
    await versions.add(tx, view, row.number, row.version + 1, row.head_seal, base.head or row.version_base)
    await subject.record_change(
        tx, view, "proposal.retarget", row.number, base=base.name, version=row.version + 1
    )


async def revive(tx: Tx, view: View, row: ProposalRow) -> None:
    """Find the branches of a proposal that is about to be reopened. A branch that replaced a deleted one may
    be used. Raises ProposalBranchGone."""
    of = {"of_repo": view.repo.id, "of_number": row.number}
    base = await _find_living(tx, view, row.base_id) or await _find_named(tx, view, row.base)
    if base is None or base.head is None:
        raise ProposalBranchGone(
            f"#{row.number} stays closed: its base {row.base} is gone; "
            f"run: svc pr edit {row.number} --base {view.repo.default_branch}"
        )
    head = await elsewhere.branch_of(tx, view, row)
    if row.head_repo_id is not None:
        if head is None or head.head is None:
            raise ProposalBranchGone(f"#{row.number} stays closed: its branch {row.head} of a fork is gone")
        if head.head != row.head_seal:
            await elsewhere.recheck_later(tx, view.node, view.repo.id, row.number, view.me.account_id)
    elif head is None:
        head = await _find_named(tx, view, row.head)
        if head is None or head.head != row.head_seal:
            raise ProposalBranchGone(
                f"#{row.number} stays closed: its branch {row.head} is gone; "
                f"run: svc repo branch {row.head} --from {row.head_seal}"
            )
        await tx.run(rows.SET_HEAD, **of, new_head=head.name, new_head_id=head.id)
    if base.id != row.base_id:
        await tx.run(rows.SET_BASE, **of, new_base=base.name, new_base_id=base.id)
    if row.head_repo_id is None and head.head is not None and head.head != row.head_seal:
        await versions.add(tx, view, row.number, row.version + 1, head.head, base.head)
        await subject.announce(tx, view, "proposal.push", row.number, version=row.version + 1, head=head.head)


async def _find_living(tx: Tx, view: View, ref_id: str) -> RefRow | None:
    row = await tx.one(refs.BY_ID, repo_id=view.repo.id, ref_id=ref_id)
    return None if row is None else refs.to_row(row)


async def _find_named(tx: Tx, view: View, name: str) -> RefRow | None:
    row = await tx.one(refs.ONE, repo_id=view.repo.id, type="branch", name=name)
    return None if row is None else refs.to_row(row)
