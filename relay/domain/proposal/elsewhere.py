"""Handles proposals whose head is in another repository: a fork, or the parent of this repository.

When a version is added, the repository of the base gets its own rows for the proposed seals
(`forking.holding`). So everybody who sees that repository can read and merge the proposal, and it stays when
the fork is deleted. A job records moves and the deletion of the branch, in a transaction that locks both
repositories.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from localstore.core.errors import Forbidden, Invalid, Unavailable
from localstore.core.model.repo import FilteredView
from localstore.core.model.rights import RANK
from relay.base.clock import now_ms
from relay.caller import View, repo_name
from relay.db import ref as refs
from relay.db import repo as repos
from relay.db.collaboration import fork as rows
from relay.db.collaboration import issue as subjects
from relay.db.collaboration import proposal as proposals
from relay.db.collaboration.proposal import ProposalRow
from relay.db.engine.database import Author, Tx
from relay.db.ref import RefRow
from relay.db.repo import RepoRow
from relay.domain.forking import holding
from relay.domain.proposal import auto, states, versions
from relay.node import Node

JOB = "fork_head"
ATTEMPTS = 5  # to take what a branch has, while it moves


@dataclass(slots=True, frozen=True)
class ForeignBranch:
    """A branch of another repository. It exists and has a seal."""

    repo: RepoRow
    ref: RefRow
    seal: str


async def find(tx: Tx, view: View, typed: str) -> ForeignBranch | None:
    """Find the branch of another repository named by OWNER:BRANCH or OWNER/NAME:BRANCH. Returns None if it is
    a branch of this repository. Raises Invalid for a missing or hidden branch, with the same message for
    both. Raises Forbidden for a branch that the caller may not propose."""
    owner, _, name = typed.rpartition(":")
    owner, _, repo = owner.partition("/")
    me = view.principal.account_id if view.principal else ""
    repo_rows = await tx.all(
        rows.RELATIVES, of_repo=view.repo.id, owner=owner.removeprefix("@").lower(), account=me
    )
    listed = [row for row in repo_rows if not repo or repos.to_row(row).name == repo.lower()]
    if any(repos.to_row(row).id == view.repo.id for row in listed):
        return None
    for row in listed:
        relative, role = repos.to_row(row), view.role_of(row)
        branch = await tx.one(refs.ONE, repo_id=relative.id, type="branch", name=name)
        if branch is None:
            continue
        ref = refs.to_row(branch)
        if ref.head is None:
            break
        if RANK[role] < RANK["write"] and not view.has("write"):
            raise Forbidden(
                "a branch is proposed by whoever may write to it, and you may not write to "
                f"{relative.full_name}"
            )
        if relative.policy is not None:
            raise FilteredView(
                f"{relative.full_name} has private paths, which a proposal elsewhere would show"
            )
        for part, other in ((relative, view.repo), (view.repo, relative)):
            if part.partial:
                raise FilteredView(
                    f"{part.full_name} was forked by somebody who does not see all paths, so that its seals "
                    f"and those of {other.full_name} cannot be merged; push the change to a branch of "
                    f"{other.full_name}, or send its writers a patch: svc diff"
                )
        return ForeignBranch(relative, ref, ref.head)
    raise Invalid(
        f"{owner} has no fork of {view.repo.full_name} with a branch {name} that has a seal",
        pointer="/head",
        reason="unknown_branch",
        branch=name,
    )


async def branch_of(tx: Tx, view: View, row: ProposalRow) -> RefRow | None:
    """Find the head branch of a proposal, in any repository. Returns None if the branch or its repository was
    deleted."""
    if row.head_repo_id is None:
        ref_row = await tx.one(refs.BY_ID, repo_id=view.repo.id, ref_id=row.head_id)
    else:
        ref_row = await tx.one(rows.LIVING, branch_id=row.head_id)
        ref_row = None if ref_row is None or ref_row[-1] is not None else ref_row[:-1]
    return None if ref_row is None else refs.to_row(ref_row)


async def recheck_later(tx: Tx, node: Node, repo_id: str, number: int, by: str) -> None:
    """Queue a check of this proposal's head after the commit, because its branch has moved or was deleted.
    `by`: the account that moved or deleted it."""
    await node.jobs.add(tx, JOB, {"repo_id": repo_id, "number": number, "by": by})


async def repository_gone(tx: Tx, view: View) -> None:
    """Queue a check of all proposals in other repositories whose head is a branch of this repository, because
    this repository was deleted."""
    for repo_id, number in await tx.all(proposals.OPEN_FROM_REPO, of_repo=view.repo.id):
        await recheck_later(tx, view.node, repo_id, number, view.me.account_id)


async def follow(node: Node, data: dict[str, Any]) -> None:
    """Check the head of a proposal from another repository, as a job. If the branch has moved, add a new
    version; if it was deleted, close the proposal. The job may run twice."""
    repo_id, number, by = data["repo_id"], data["number"], data["by"]
    for _ in range(ATTEMPTS):
        async with node.db.read() as tx:
            row = await _open(tx, repo_id, number)
            head = await _find_head(tx, row) if row else None
        if row is None or row.head_repo_id is None or head == row.head_seal:
            return
        history = await holding.gather(node, row.head_repo_id, repo_id, [head]) if head else None
        async with node.db.write(repo_name(repo_id), repo_name(row.head_repo_id)) as tx:
            tx.author = Author(by)
            row = await _open(tx, repo_id, number)
            if row is None or head == row.head_seal:
                return  # another run of this job was here
            if await _find_head(tx, row) != head:
                continue
            if history is None or head is None:
                closed = {"reason": "head_deleted"}
                await states.put_in(tx, node, repo_id, number, "closed", "proposal.close", **closed)
                return
            await holding.borrow(tx, node, repo_id, history)
            n = row.version + 1
            await auto.drop(tx, node.hub, repo_id, number, "head_moved")
            await versions.put(tx, node, (repo_id, number), n, head, row.base_now or row.version_base, by)
            await tx.run(subjects.TOUCH, of_repo=repo_id, of_number=number, now=now_ms())
            await node.hub.announce(tx, repo_id, "proposal.push", number=number, version=n, head=head)
            return
    raise Unavailable("the branch moves too fast; trying again later")


async def _open(tx: Tx, repo_id: str, number: int) -> ProposalRow | None:
    proposal_row = await tx.one(proposals.ONE, of_repo=repo_id, of_number=number)
    row = proposals.to_row(proposal_row) if proposal_row else None
    return row if row is not None and row.state == "open" else None


async def _find_head(tx: Tx, row: ProposalRow) -> str | None:
    """Read the seal at the head of the proposal's branch. Returns None if the branch or its repository is
    gone, or if the repository has private paths now."""
    ref_row = await tx.one(rows.LIVING, branch_id=row.head_id)
    return None if ref_row is None or ref_row[-1] is not None else refs.to_row(ref_row[:-1]).head
