"""Rules of branches and tags."""

from __future__ import annotations

import dataclasses
from functools import partial

from localstore.core import names, tree
from localstore.core.errors import Conflict, Invalid, NotFound
from localstore.core.model.base import Page
from localstore.core.model.protection import Protection, matching
from localstore.core.model.ref import Ref, RefCreate, RefExists, RefUpdate, StaleHead, TagExists
from relay.base.clock import now_ms
from relay.base.ids import new_branch_id
from relay.caller import View
from relay.db import ref as rows
from relay.db import repo as repos
from relay.db import seal as seals
from relay.db.engine.database import Tx, UniqueViolation
from relay.db.paging import Cursor, page_size
from relay.db.ref import RefRow
from relay.domain.forking import holding
from relay.domain.history import live_updates, sealed
from relay.domain.live import branch_base, frontier, landing
from relay.domain.proposal import branches
from relay.domain.protection import protection

NO_KEY = "relay00"  # replaces the device key of a session without one, also in names of conflict copies
FREE = "free_branches"  # the job that deletes the rows of a deleted branch


async def page(view: View, type: str | None, cursor: str | None, limit: int | None) -> Page[Ref]:
    """Branches, then tags, sorted by name. With `type`, only branches or only tags."""
    size = page_size(limit)
    kinds = [type] if type else ["branch", "tag"]
    start_kind, after = Cursor.read(cursor, kinds[0], "")
    if start_kind not in kinds:
        raise Invalid("this cursor does not belong to this list; start again without it", pointer="/cursor")
    refs: list[RefRow] = []
    async with view.read(near=True) as tx:
        rules = await protection.of_repo(tx, view.repo.id)
        for kind in kinds[kinds.index(start_kind) :]:
            after = after if kind == start_kind else ""
            room = size + 1 - len(refs)
            refs += map(
                rows.to_row,
                await tx.all(rows.PAGE, repo_id=view.repo.id, type=kind, after=after, limit=room),
            )
    more = len(refs) > size
    refs = refs[:size]
    next_cursor = Cursor.write(refs[-1].type, refs[-1].name) if more else None
    return Page(items=[to_wire(view, item, rules) for item in refs], next_cursor=next_cursor)


async def get(view: View, type: str, name: str) -> Ref:
    """One branch or tag"""
    async with view.read() as tx:
        rules = await protection.of_repo(tx, view.repo.id)
        return to_wire(view, await find(tx, view.repo.id, type, name), rules)


async def create(view: View, body: RefCreate) -> Ref:
    """Create a branch or tag; its head is validated in the same transaction

    The head is the given seal, or the head of the given branch.
    """
    names.ref_name(body.name)
    now = now_ms()
    async with view.write() as tx:
        if body.type == "branch":
            await protection.check(tx, view, body.name, "create")
        new = await _new_ref(tx, view, body)
        try:
            values = dataclasses.asdict(new)
            await tx.run(rows.INSERT, **values, created_at=now, updated_at=now, deleted_at=None)
        except UniqueViolation:
            exists = TagExists if body.type == "tag" else RefExists
            raise exists(f"there is already a {body.type} {body.name}") from None
        await view.node.hub.announce(
            tx, view.repo.id, "ref.create", type=new.type, name=new.name, head=new.head
        )
        return to_wire(view, new, await protection.of_repo(tx, view.repo.id))


async def update(view: View, type: str, name: str, body: RefUpdate) -> Ref:
    """Move a branch by compare-and-swap

    Unsealed live edits are carried over. Tags cannot move.
    """
    return await landing.carry_out(view, partial(_move_branch, view, type, name, body))


async def _move_branch(
    view: View, type: str, name: str, body: RefUpdate, worked: landing.WorkedLanding | None
) -> Ref:
    async with view.write() as tx:
        ref = await find(tx, view.repo.id, type, name)
        if ref.type == "tag":
            raise TagExists(f"tag {name} does not move; delete it and create it anew")
        await protection.check(tx, view, name, "move")
        await frontier.lock(tx, ref.id)
        head = await seals.resolve(tx, view.repo.id, body.head)
        if head is None:
            raise Invalid(f"no seal {body.head[:12]} in {view.repo.full_name}", pointer="/head")
        now = now_ms()
        moved = await tx.run(rows.MOVE, ref_id=ref.id, expected=body.expected_head, new_head=head, now=now)
        if not moved:
            raise StaleHead(name, ref.head)
        await tx.run(repos.TOUCH, repo_id=ref.repo_id, now=now)
        await view.node.landings.tell_moved(tx, view, ref.id, head)
        await holding.adopt(tx, view.node, view.repo.id, [head])
        await _land_head(tx, view, ref, head, worked)
        await view.node.hub.announce(
            tx, view.repo.id, "ref.update", type=ref.type, name=name, head=head, before=ref.head
        )
        rules = await protection.of_repo(tx, view.repo.id)
        return to_wire(view, await find(tx, view.repo.id, type, name), rules)


async def delete(view: View, type: str, name: str, expected_head: str | None, discard_live: bool) -> None:
    """Delete a branch or tag. The default branch cannot be deleted. A branch with unsealed edits is deleted
    only with `discard_live`."""
    async with view.write() as tx:
        ref = await find(tx, view.repo.id, type, name)
        if ref.type == "branch" and ref.name == view.repo.default_branch:
            raise Conflict(f"{name} is the default branch of {view.repo.full_name} and cannot be deleted")
        if ref.type == "branch":
            await protection.check(tx, view, name, "delete")
        if expected_head is not None and expected_head != ref.head:
            raise StaleHead(name, ref.head)
        unsealed = await tx.value(rows.UNSEALED, branch_id=ref.id, sealed=ref.sealed_seq)
        if unsealed and not discard_live:
            raise Conflict(
                f"branch {name} has live edits to {unsealed} files that no seal holds; "
                "push them, or add --discard-live"
            )
        await _delete_ref(tx, view, ref)


async def drop_if_sealed(tx: Tx, view: View, ref: RefRow) -> None:
    """Delete a merged branch, unless it is the default branch, protected, or has unsealed edits."""
    if matching(await protection.of_repo(tx, view.repo.id), ref.name):
        return
    unsealed = await tx.value(rows.UNSEALED, branch_id=ref.id, sealed=ref.sealed_seq)
    if not unsealed and ref.name != view.repo.default_branch:
        await _delete_ref(tx, view, ref)


async def _delete_ref(tx: Tx, view: View, ref: RefRow) -> None:
    await tx.run(rows.DELETE, ref_id=ref.id, now=now_ms())
    await live_updates.drop_unsealed(tx, ref)
    if ref.type == "branch":
        await view.node.jobs.add(tx, FREE, {})
        await branches.follow_deletion(tx, view, ref.id)
    await view.node.hub.announce(
        tx, view.repo.id, "ref.delete", type=ref.type, name=ref.name, head=None, before=ref.head
    )


async def find(tx: Tx, repo_id: str, type: str, name: str) -> RefRow:
    row = await tx.one(rows.ONE, repo_id=repo_id, type=type, name=name)
    if row is None:
        raise NotFound
    return rows.to_row(row)


def to_wire(view: View, ref: RefRow, rules: list[Protection]) -> Ref:
    """Convert a ref to the form that answers have. `rules`: the protection rules of the repository."""
    default = ref.type == "branch" and ref.name == view.repo.default_branch
    protected = ref.type == "branch" and bool(matching(rules, ref.name))
    return Ref(
        id=ref.id,
        type=ref.type,  # type: ignore[arg-type]
        name=ref.name,
        head=ref.head,
        default=default,
        protected=protected,
        frontier=ref.seq,
    )


async def _land_head(
    tx: Tx, view: View, ref: RefRow, head: str, worked: landing.WorkedLanding | None
) -> None:
    before = await seals.root_of(tx, view.repo.id, ref.head) if ref.head else None
    after = await seals.root_of(tx, view.repo.id, head)
    if after is None:
        raise NotFound
    await landing.land(tx, view, ref, before, after, view.me.device_key_id or NO_KEY, worked)


async def _new_ref(tx: Tx, view: View, body: RefCreate) -> RefRow:
    """Make the row of a new ref. If it is a branch, its live frontier is the tree of its head, and no rows
    are written for its files."""
    head = await _start_of(tx, view, body)
    new = RefRow(new_branch_id(), view.repo.id, body.type, body.name, head, 0, 0)
    if body.type == "tag" and head is None:
        raise Invalid("a tag needs a seal; push first", pointer="/head")
    if head is not None:
        await holding.adopt(tx, view.node, view.repo.id, [head])
    if body.type == "tag" or head is None:
        return new
    root = await seals.root_of(tx, view.repo.id, head)
    if root is None:
        raise NotFound
    if root == tree.EMPTY_ROOT:
        return new
    return dataclasses.replace(new, seq=branch_base.START, sealed_seq=branch_base.START, base=root)


async def _start_of(tx: Tx, view: View, body: RefCreate) -> str | None:
    """Find the seal at which a new ref starts: the seal that the request names, or the head of the branch
    that it names. Returns its id, read in the transaction that creates the ref."""
    start = body.head or view.repo.default_branch
    row = await tx.one(rows.ONE, repo_id=view.repo.id, type="branch", name=start)
    if row is not None:
        ref = rows.to_row(row)
        if body.expected_head is not None and body.expected_head != ref.head:
            raise StaleHead(start, ref.head)
        return ref.head
    if (version := await sealed.of_proposal(view, tx, start)) is not None:
        return version
    head = await seals.resolve(tx, view.repo.id, start)
    if head is None:
        raise Invalid(
            f"{start[:80]} is neither a branch nor a seal here", pointer="/head", reason="unknown_head"
        )
    return head
