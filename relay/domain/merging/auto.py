"""Merges that are signed now and land later, when the last condition of a proposal is fulfilled. They land
only if no branch has moved.

The signed merge is stored together with the caller who signed it. Everything that may fulfil a condition
writes an event. A follower of the event log then queues a job for the event's repository. The job lands the
merges that it can, with the rights of the caller, and checks everything again in the transaction of the
merge. Events and jobs are stored, so a merge lands even if a process dies in between.

A merge that is still blocked stays. A merge that can never land as it was signed is dropped, and the inbox of
its signer says that the proposal waits to be merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from localstore.core.errors import NotFound, RateLimited, SvcError, Unauthorized, Unavailable
from localstore.core.model import limits
from localstore.core.model.merge import MergeFinalizeRequest, NotMergeable
from localstore.core.model.proposal import Draft, Proposal
from localstore.core.model.rights import OPERATIONS
from localstore.core.model.seal import PrepareExpired
from relay.base.clock import now_ms
from relay.caller import Principal, View, repo_name
from relay.db import repo as repos
from relay.db import seal as seals
from relay.db.engine.database import Row, Tx
from relay.db.identity import gate
from relay.domain.live import landing
from relay.domain.merging import merge
from relay.domain.proposal import auto, mergeable, states
from relay.domain.proposal.rows import auto_merge as rows
from relay.domain.proposal.rows.auto_merge import AutoRow
from relay.domain.sealing import seal
from relay.events import log
from relay.events.jobs import SECOND, Pace
from relay.events.log import Logged
from relay.node import Node

JOB = NAME = "auto_merge"
KINDS = (
    "check.disable",
    "check.enable",
    "proposal.ready",
    "protection.clear",
    "protection.set",
    "review.create",
    "review.dismiss",
    "run.cancel",
    "run.create",
    "run.rerun",
    "run.update",
    *sorted(log.ACCESS),
    "account.disable",
    "device_key.revoke",
)
KEPT = limits.AUTO_MERGE_DAYS * 24 * 3600 * SECOND
_BODY = msgspec.json.Decoder(MergeFinalizeRequest)
_PRINCIPAL = msgspec.json.Decoder(Principal)


def register(node: Node) -> None:
    """Register the job and the follower. Call it before the node's jobs and followers start."""

    async def act(data: dict[str, Any]) -> None:
        await land_all(node, data["repo_id"])

    async def follow(tx: Tx, events: Sequence[Logged]) -> None:
        for repo_id in await _find_concerned(tx, events):
            await node.jobs.add(tx, JOB, {"repo_id": repo_id})

    node.jobs.register(JOB, act, Pace(slots=2, deadline=120 * SECOND))
    node.followers.register(NAME, follow, KINDS)


async def enable(view: View, number: str, body: MergeFinalizeRequest) -> Proposal:
    """Keep the signed merge of a proposal until nothing blocks it

    A job lands it then. If nothing blocks it now, the job runs at once. The request can be repeated. Raises
    BaseMoved, HeadMoved, NotMergeable, PrepareExpired.
    """
    seal.require_prepare_id(body.prepare_id)
    async with view.write() as tx:
        row = await states.find(tx, view, number)
        of = {"of_repo": view.repo.id, "of_number": row.number}
        waiting_row = await tx.one(rows.ONE, **of)
        if waiting_row is not None and rows.to_row(waiting_row).prepare_id == body.prepare_id:
            return await merge.to_wire(tx, view, number)
        about, prepared = await merge.find_prepared(tx, view, body.prepare_id, "merge", row.number)
        mergeable.require_open(row)
        base, head = await mergeable.branches_of(tx, view, row)
        mergeable.require_base(row, base, prepared.branch_id)
        mergeable.require_heads(row, base, head, prepared.expected_head, about.theirs)
        await merge.take_signed(tx, view, base, body.prepare_id, body.device_key_id, body.signatures)
        await auto.forget(tx, view.repo.id, row.number)
        ends = now_ms() + KEPT
        purpose = {"new_purpose": "auto", "new_expires_at": ends}
        await tx.run(seals.REPURPOSE, prepare_id=body.prepare_id, **purpose)
        await tx.run(
            rows.INSERT,
            repo_id=view.repo.id,
            number=row.number,
            prepare_id=body.prepare_id,
            account_id=view.me.account_id,
            principal=msgspec.json.encode(view.me).decode(),
            body=msgspec.json.encode(body).decode(),
            strategy=about.strategy,
            created_at=now_ms(),
        )
        await view.node.hub.announce(
            tx, view.repo.id, "proposal.auto_merge", number=row.number, strategy=about.strategy
        )
        await view.node.jobs.add(tx, JOB, {"repo_id": view.repo.id})
        await view.node.jobs.add(tx, JOB, {"repo_id": view.repo.id}, run_at=ends + SECOND)
        return await merge.to_wire(tx, view, number)


async def disable(view: View, number: str) -> Proposal:
    """Drop the waiting merge of a proposal

    If there is none, nothing changes.
    """
    async with view.write() as tx:
        row = await states.find(tx, view, number)
        if await auto.forget(tx, view.repo.id, row.number) is not None:
            await view.node.hub.announce(tx, view.repo.id, "proposal.auto_off", number=row.number)
        return await merge.to_wire(tx, view, number)


async def land_all(node: Node, repo_id: str) -> None:
    """Land each waiting merge of the repository that can land, and drop each that never can. Raises
    Unavailable or RateLimited if the job must be repeated later."""
    async with node.db.read() as tx:
        numbers = [row[0] for row in await tx.all(rows.OF_REPO, of_repo=repo_id)]
    for number in numbers:
        await _try_landing(node, repo_id, number)


async def _try_landing(node: Node, repo_id: str, number: int) -> None:
    of = {"of_repo": repo_id, "of_number": number}
    async with node.db.read() as tx:
        row = await tx.one(rows.ONE, **of)
    if row is None:
        return
    waiting = rows.to_row(row)
    try:
        view = await _view_of_signer(node, repo_id, waiting)
        await landing.carry_out(view, partial(_land, view, waiting))
    except (Unavailable, RateLimited):
        raise
    except SvcError as refusal:
        if _is_waiting(refusal):
            return
        async with node.db.write(repo_name(repo_id)) as tx:
            now = await tx.one(rows.ONE, **of)
            if now is not None and rows.to_row(now).prepare_id == waiting.prepare_id:
                await auto.drop(tx, node.hub, repo_id, number, refusal.code)


async def _land(view: View, waiting: AutoRow, worked: landing.WorkedLanding | None) -> None:
    """Land the waiting merge, unless it was turned off or replaced since it was read."""
    async with view.write() as tx:
        row = await tx.one(rows.ONE, of_repo=view.repo.id, of_number=waiting.number)
        if row is None or rows.to_row(row).prepare_id != waiting.prepare_id:
            return
        prepared = await seal.find_prepared("auto", tx, waiting.prepare_id)
        if prepared.expires_at <= now_ms():  # whatever else it waits for
            raise PrepareExpired("the time of this signed merge is over; merge it again")
        purpose = {"new_purpose": "merge", "new_expires_at": prepared.expires_at}
        await tx.run(seals.REPURPOSE, prepare_id=waiting.prepare_id, **purpose)
        await tx.run(rows.DROP, of_repo=view.repo.id, of_number=waiting.number)
        await merge.merge_in(tx, view, str(waiting.number), _BODY.decode(waiting.body), worked)
        kept_until = {"new_purpose": "merge", "new_expires_at": now_ms() + seal.KEEP_PREPARED}
        await tx.run(seals.REPURPOSE, prepare_id=waiting.prepare_id, **kept_until)


@dataclass(slots=True)
class _Signer(View):
    """The view of the account that signed a waiting merge, with its current rights. The account is identified
    by its device key, because its session may have expired while the signature is still valid."""

    key_id: str = ""

    async def recheck(self, tx: Tx, repo_id: str = "") -> Row:
        """Read the repository's row as the signer of the merge sees it in this transaction. If the repository
        is hidden or missing, all columns are null. Raises Unauthorized if the signer's key was revoked or the
        account disabled."""
        row = await tx.one(
            gate.LIVE_BY_KEY, repo_id=repo_id, credential=self.key_id, account=self.me.account_id
        )
        if row is None:
            raise Unauthorized("the key that signed the merge was revoked", reason="ended")
        return row


async def _view_of_signer(node: Node, repo_id: str, waiting: AutoRow) -> View:
    """Make a view of the repository for the account that signed the waiting merge, with the rights that this
    account has now. Raises Unauthorized, NotFound, Forbidden or RepositoryArchived."""
    view = _Signer(
        key_id=_BODY.decode(waiting.body).device_key_id,
        node=node,
        principal=_PRINCIPAL.decode(waiting.principal),
        address="",
        operation=OPERATIONS["proposal.auto_merge"],
    )
    async with node.db.read() as tx:
        row = await view.recheck(tx, repo_id)
    if row[0] is None:
        raise NotFound
    view.repo, view.role = repos.to_row(row), view.role_of(row)
    view.require_allowed()
    return view


def _is_waiting(refusal: SvcError) -> bool:
    """Whether the merge should keep waiting, because what blocks it may change."""
    if isinstance(refusal, Draft):
        return True
    return isinstance(refusal, NotMergeable) and refusal.extra.get("blocked_by") != ["closed"]


async def _find_concerned(tx: Tx, events: Sequence[Logged]) -> list[str]:
    """Find the repositories with a waiting merge that these events may concern. They are the repositories of
    the events, and the repositories of the accounts that the events name."""
    repo_ids = sorted({event.repo_id for event in events if event.repo_id is not None})
    accounts = sorted({event.account_id for event in events if event.account_id is not None})
    concerned = set()
    if repo_ids:
        concerned |= {row[0] for row in await tx.all(rows.OF_REPOS, repos=repo_ids)}
    if accounts:
        concerned |= {row[0] for row in await tx.all(rows.OF_ACCOUNTS, accounts=accounts)}
    return sorted(concerned)
