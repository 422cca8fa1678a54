"""The second half of a merge: all of the prepared and signed seals land in one transaction, or none.

The same transaction carries the base's live edits over, sets the state of the proposal, closes issues, and
gives another base to proposals based on the proposal's branch. It also deletes that branch if requested.
"""

from __future__ import annotations

from functools import partial

import msgspec

from localstore.core import seal as seals
from localstore.core.encoding import unb64u
from localstore.core.errors import Invalid, NotFound
from localstore.core.model import history as shapes
from localstore.core.model.merge import (
    BaseMoved,
    MergeFinalizeRequest,
    MergeRequest,
    UpdateFinalizeRequest,
)
from localstore.core.model.proposal import Proposal
from localstore.core.model.ref import StaleHead
from localstore.core.obstacles import Standing
from relay.caller import View
from relay.db import ref as refs
from relay.db import seal as rows
from relay.db.collaboration import proposal as proposals
from relay.db.collaboration.proposal import ProposalRow
from relay.db.engine.database import Tx
from relay.db.live.replica import KeyRow
from relay.db.ref import RefRow
from relay.db.seal import PrepareRow, SealDraft
from relay.domain.checks import check
from relay.domain.discussion import issue
from relay.domain.forking import holding
from relay.domain.history.wire import to_wire as seal_to_wire
from relay.domain.live import frontier, landing
from relay.domain.merging.subjects import About, Act
from relay.domain.proposal import branches, mergeable, states, wire
from relay.domain.protection import protection
from relay.domain.repository import ref as branch_service
from relay.domain.sealing import branch_event, seal, trees
from relay.domain.sealing.payload import record_seal, require_bytes, require_same_capability

_DRAFTS = msgspec.msgpack.Decoder(list[SealDraft])


async def merge(view: View, number: str, body: MergeFinalizeRequest) -> Proposal:
    """Land the signed merge of a proposal

    The request can be repeated. Raises BaseMoved, HeadMoved, Draft, NotMergeable, PrepareExpired.
    """
    seal.require_prepare_id(body.prepare_id)
    return await landing.carry_out(view, partial(_land_merge, view, number, body))


async def update(view: View, number: str, body: UpdateFinalizeRequest) -> Proposal:
    """Land the signed merge of the base into the branch of a proposal

    The request can be repeated. Raises BaseMoved, HeadMoved, NotMergeable, PrepareExpired.
    """
    seal.require_prepare_id(body.prepare_id)
    return await landing.carry_out(view, partial(_land_update, view, number, body))


async def merge_guarded(view: View, body: MergeRequest) -> shapes.Seal:
    """Land the signed merge of a seal into a branch, which must not have moved since the preview

    The request can be repeated. Raises BaseMoved, PrepareExpired. If a proposal with the same seal may not be
    merged, raises Draft or NotMergeable.
    """
    seal.require_prepare_id(body.preview_id)
    return await landing.carry_out(view, partial(_land_guarded, view, body))


async def _land_merge(
    view: View, number: str, body: MergeFinalizeRequest, worked: landing.WorkedLanding | None
) -> Proposal:
    async with view.write() as tx:
        return await merge_in(tx, view, number, body, worked)


async def merge_in(
    tx: Tx, view: View, number: str, body: MergeFinalizeRequest, worked: landing.WorkedLanding | None
) -> Proposal:
    """Land the signed merge of a proposal, in the given transaction. Returns the proposal. `worked`: the
    change of the live frontier, if it was computed before."""
    row = await states.find(tx, view, number)
    if await _find_landed(tx, view, body.prepare_id, body.device_key_id, "merge", row.number) is not None:
        return await to_wire(tx, view, number)
    about, prepared = await find_prepared(tx, view, body.prepare_id, "merge", row.number)
    await mergeable.require_mergeable(tx, view, row)
    base, head = await mergeable.branches_of(tx, view, row)
    mergeable.require_base(row, base, prepared.branch_id)
    mergeable.require_heads(row, base, head, prepared.expected_head, about.theirs)
    key, drafts = await take_signed(tx, view, base, body.prepare_id, body.device_key_id, body.signatures)
    await _land_drafts(tx, view, base, drafts, body.signatures, key, prepared, worked)
    await _settle(tx, view, row, about, head, drafts[-1].id)
    if body.delete_branch and row.head_repo_id is None:
        await branch_service.drop_if_sealed(tx, view, head)
    return await to_wire(tx, view, number)


async def _land_update(
    view: View, number: str, body: UpdateFinalizeRequest, worked: landing.WorkedLanding | None
) -> Proposal:
    async with view.write() as tx:
        row = await states.find(tx, view, number)
        if (
            await _find_landed(tx, view, body.prepare_id, body.device_key_id, "update", row.number)
            is not None
        ):
            return await to_wire(tx, view, number)
        about, prepared = await find_prepared(tx, view, body.prepare_id, "update", row.number)
        mergeable.require_open(row)
        base, head = await mergeable.branches_of(tx, view, row)
        await protection.check(tx, view, head.name, "write")
        mergeable.require_heads(row, base, head, about.theirs, prepared.expected_head)
        key, drafts = await take_signed(tx, view, head, body.prepare_id, body.device_key_id, body.signatures)
        await _land_drafts(tx, view, head, drafts, body.signatures, key, prepared, worked)
        return await to_wire(tx, view, number)


async def _land_guarded(view: View, body: MergeRequest, worked: landing.WorkedLanding | None) -> shapes.Seal:
    async with view.write() as tx:
        earlier = await _find_landed(tx, view, body.preview_id, body.device_key_id, "preview", 0)
        if earlier is not None:
            return earlier
        about, prepared = await find_prepared(tx, view, body.preview_id, "preview", 0)
        base_row = await tx.one(refs.BY_ID, repo_id=view.repo.id, ref_id=prepared.branch_id)
        if base_row is None:
            raise NotFound
        base = refs.to_row(base_row)
        if base.head != prepared.expected_head:
            raise BaseMoved(f"{base.name} moved since the preview; preview the merge again", base=base.head)
        matching = await mergeable.proposals_of(tx, view, base, about.theirs)
        if not matching:
            unmet = await check.find_unmet(tx, view.repo.id, [about.theirs])
            alone = Standing(checks=not unmet[about.theirs])
            await protection.check(tx, view, base.name, "merge", alone)
        for row in matching:
            await mergeable.require_mergeable(tx, view, row)
        signatures = [body.signature]
        key, drafts = await take_signed(tx, view, base, body.preview_id, body.device_key_id, signatures)
        await _land_drafts(tx, view, base, drafts, signatures, key, prepared, worked)
        for row in matching:
            _, head = await mergeable.branches_of(tx, view, row)
            await _settle(tx, view, row, about, head, drafts[-1].id)
        (seal_row,) = await seal.find(tx, view.repo.id, [drafts[-1].id])
        return seal_to_wire(seal_row)


async def _find_landed(
    tx: Tx, view: View, prepare_id: str, device_key_id: str, act: Act, number: int
) -> shapes.Seal | None:
    """If this request repeats an earlier one of the caller, find the seal that the earlier one landed.
    Returns None if the request is new."""
    seal_rows = await seal.find(tx, view.repo.id, [prepare_id])
    if not seal_rows:
        return None
    await seal.require_landed_by("merge", tx, seal_rows[0])
    seal.require_same(view, seal_rows[0], device_key_id)
    await find_prepared(tx, view, prepare_id, act, number)
    return seal_to_wire(seal_rows[0])


async def find_prepared(
    tx: Tx, view: View, prepare_id: str, act: Act, number: int
) -> tuple[About, PrepareRow]:
    """Find the merge of a proposal that the caller has prepared. `act`: whether it merges the proposal, or
    its base into its branch. Returns (subject, prepared row). Raises NotFound if another caller prepared it,
    or if it is for another act or proposal."""
    prepared = await seal.find_prepared("merge", tx, prepare_id)
    about = About.from_text(prepared.subject)
    if (about.act, about.number) != (act, number) or prepared.account_id != view.me.account_id:
        raise NotFound
    return about, prepared


async def take_signed(
    tx: Tx, view: View, onto: RefRow, prepare_id: str, device_key_id: str, signatures: list[str]
) -> tuple[KeyRow, list[SealDraft]]:
    """Take the prepared seals, and verify that the caller's key signed them. Returns (key, seals)."""
    prepared = await seal.take_prepared("merge", tx, view, onto, prepare_id, device_key_id)
    key = await seal.signing_key(tx, view, device_key_id)
    drafts = _DRAFTS.decode(prepared.seals)
    if len(drafts) != len(signatures):
        raise Invalid(f"{len(drafts)} seals were prepared, {len(signatures)} signatures came")
    require_same_capability(view, drafts[0])
    for draft, signature in zip(drafts, signatures, strict=True):
        trees.require_parents(view, draft.parents)
        seals.verify(draft.payload, unb64u(signature, 64), key.ed25519)
    return key, drafts


async def _land_drafts(
    tx: Tx,
    view: View,
    onto: RefRow,
    drafts: list[SealDraft],
    signatures: list[str],
    key: KeyRow,
    prepared: PrepareRow,
    worked: landing.WorkedLanding | None,
) -> None:
    """Record the prepared seals, move the branch `onto` to the last of them, and apply the branch's unsealed
    live edits on top of it."""
    await frontier.lock(tx, onto.id)
    last = drafts[-1]
    above = {parent for draft in drafts for parent in draft.parents}
    named = {digest for draft in drafts for _, kind, digest, _ in draft.changes if kind}
    await holding.adopt(tx, view.node, view.repo.id, sorted(above), named)
    try:
        await seal.move(tx, view, onto, prepared.expected_head, last.id, "merge it again")
    except StaleHead as moved:
        raise BaseMoved(moved.detail or "the branch moved; merge it again", base=onto.head) from None
    before = await rows.root_of(tx, view.repo.id, onto.head) if onto.head else None
    await landing.land(tx, view, onto, before, last.root, key.id, worked)
    for draft, signature in zip(drafts, signatures, strict=True):
        await require_bytes(tx, view, draft)
        await record_seal(tx, view, onto, draft, unb64u(signature, 64), key)
    await branch_event.announce_move(tx, view, onto, last.id, prepared.expected_head)


async def _settle(tx: Tx, view: View, row: ProposalRow, about: About, head: RefRow, merged: str) -> None:
    """Mark the proposal as merged, and close the issues that it names. Other proposals that are based on the
    merged branch `head` get the base of this proposal as their new base."""
    of = {"of_repo": view.repo.id, "of_number": row.number}
    await tx.run(proposals.SET_MERGED, **of, seal=merged)
    await states.put(tx, view, row.number, "merged", "proposal.merge", seal=merged, strategy=about.strategy)
    for _, closed in await tx.all(proposals.CLOSES, of_repo=view.repo.id, numbers=[row.number]):
        await issue.close(tx, view, closed, by=row.number)
    base = await tx.one(refs.BY_ID, repo_id=view.repo.id, ref_id=row.base_id)
    if base is None or row.head_repo_id is not None:
        return
    onto = refs.to_row(base)
    for number, head_id in await tx.all(proposals.OPEN_OF_BASE, branch_id=head.id):
        same = await tx.one(proposals.SAME, of_repo=view.repo.id, head_id=head_id, base_id=onto.id)
        if head_id != onto.id and same is None:
            await branches.retarget(tx, view, await states.find(tx, view, number), onto)


async def to_wire(tx: Tx, view: View, number: str) -> Proposal:
    return (await wire.to_proposals(tx, view, [await states.find(tx, view, number)]))[0]
