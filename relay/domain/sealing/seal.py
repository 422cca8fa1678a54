"""Seals the live frontier. `prepare` computes the bytes to sign; `finalize` receives the signature and moves
the head.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from localstore.core import seal as seals
from localstore.core import tree
from localstore.core.encoding import b64u, is_hex_digest, unb64u
from localstore.core.errors import Forbidden, NotFound, Unavailable
from localstore.core.model import history as shapes
from localstore.core.model import limits
from localstore.core.model.ref import StaleHead
from localstore.core.model.seal import (
    FinalizeRequest,
    Prepared,
    PrepareExpired,
    PrepareRequest,
    SealBudgetExceeded,
    SealChange,
)
from localstore.core.seal import MergeOrigin
from localstore.core.storage.chunks import BULK_KINDS
from localstore.core.tree import Built, TreeEntry
from relay.base.clock import now_ms, rfc3339
from relay.caller import View
from relay.db import ref as refs
from relay.db import repo as repos
from relay.db import seal as rows
from relay.db.engine.database import Tx
from relay.db.live import lane as lanes
from relay.db.live import live_batch
from relay.db.live.lane import LaneRow
from relay.db.live.replica import KeyRow
from relay.db.ref import RefRow
from relay.db.seal import PrepareRow, Purpose, SealDraft, SealRow
from relay.domain.history import live_updates
from relay.domain.history.wire import to_wire
from relay.domain.live import epochs, frontier
from relay.domain.live import replica as replicas
from relay.domain.live.epochs import LaneTexts
from relay.domain.protection import protection
from relay.domain.sealing import branch_event
from relay.domain.sealing.payload import (
    are_bytes_held_and_safe,
    bytes_of,
    check_message,
    make_draft,
    record_seal,
    require_bytes,
    require_same_capability,
    require_seals,
)
from relay.memory import trees

KEEP_PREPARED = 24 * 3600 * 1000  # milliseconds for which finalize of several seals can be repeated
PREPARED_AT_ONCE = 4  # by one device for one branch: each holds all changes, and a request makes it again
ATTEMPTS = 5  # to seal while other processes change the lanes
LOST_RACE = "your edits are live, not sealed; run: svc pull, then push"
_DRAFTS = msgspec.msgpack.Decoder(list[SealDraft])


async def prepare(view: View, branch: str, body: PrepareRequest) -> Prepared:
    """Compute the seal of the live frontier: its tree and the bytes to sign"""
    check_message(body.message)
    async with view.read(snapshot=True) as tx:
        ref = await frontier.find_branch(tx.one, view.repo.id, branch)
        key = await signing_key(tx, view, body.device_key_id)
        await protection.check(tx, view, ref.name, "write")
        _require_head(ref, body)
        parent = await rows.root_of(tx, view.repo.id, ref.head) if ref.head else None
        lane_rows = await tx.all(lanes.SINCE, branch_id=ref.id, since=ref.sealed_seq)
        changed = [lanes.to_row(row) for row in lane_rows]
        load, directories = trees.loader_of(view.node.objects, tx), dict[bytes, tree.Directory]()
        changes = await _changes_of(load, parent, changed, directories)
        if not changes and not body.merged:
            return _nothing_to_seal(ref, parent)
        await require_seals(tx, view, body.merged, "/merged")
        built = await trees.update(parent, changes, view.repo.tree_key, load, directories)
        large = view.repo.kind not in BULK_KINDS and bytes_of(built) > limits.BLOB_TREE
        if large or await _may_be_many(load, view, ref, changes):
            await _require_budget(tx, load, view, ref, built)
        texts = await epochs.place(tx, view.node, view.repo.id, ref.id, changed)
        live_by = await frontier.live_by(tx, ref, key.id, changes)
    merged = MergeOrigin("merge", body.merged) if body.merged else None
    seal_draft = make_draft(
        view, ref.name, [ref.head] if ref.head else [], built.root, body, changes, merge=merged
    )
    plan = SealsToStore("seal", ref, key, [seal_draft], at=ref.seq)
    expires = await store(view, plan, texts, built.directories, body)
    return Prepared(
        prepare_id=seal_draft.id,
        bytes=b64u(seal_draft.payload),
        digest=seal_draft.id,
        content_digest=built.root.hex(),
        at=ref.seq,
        expires_at=rfc3339(expires),
        changes=[
            SealChange(
                path=p,
                kind=e.kind if e else None,
                digest=e.digest.hex() if e else "",
                size=e.size if e else 0,
            )
            for p, e in sorted(changes.items())
        ],
        live_by=live_by,
    )


async def finalize(view: View, branch: str, body: FinalizeRequest) -> shapes.Seal:
    """Record the signed seal and move the branch's head

    The head moves by compare-and-swap. The request can be repeated, even after the time to sign the prepared
    seal is over.
    """
    states: epochs.States = {}
    rests = is_hex_digest(body.prepare_id) and await are_bytes_held_and_safe(view, body.prepare_id)
    for _ in range(ATTEMPTS):
        try:
            return await _finalize(view, branch, body, states, rests)
        except epochs.StatesNeeded as wanted:
            states = await epochs.compute_states(view, wanted)
    raise Unavailable("this branch is changing too fast; try again")


async def _finalize(
    view: View, branch: str, body: FinalizeRequest, states: epochs.States, rests: bool
) -> shapes.Seal:
    async with view.write() as tx:
        ref = await frontier.find_branch(tx.one, view.repo.id, branch)
        require_prepare_id(body.prepare_id)
        existing = await find(tx, view.repo.id, [body.prepare_id])
        if existing:
            await require_landed_by("seal", tx, existing[0])
            require_same(view, existing[0], body.device_key_id)
            return to_wire(existing[0])
        prepared = await take_prepared("seal", tx, view, ref, body.prepare_id, body.device_key_id)
        if prepared.at_seq is None:
            raise NotFound
        key = await signing_key(tx, view, body.device_key_id)
        (seal_draft,) = _DRAFTS.decode(prepared.seals)
        require_same_capability(view, seal_draft)
        signature = unb64u(body.signature, 64)
        seals.verify(seal_draft.payload, signature, key.ed25519)
        await protection.check(tx, view, ref.name, "write")
        await frontier.lock(tx, ref.id)
        await move(tx, view, ref, prepared.expected_head, seal_draft.id, LOST_RACE)
        ends = await epochs.find_ending(tx, ref.id, prepared.at_seq, states)
        if not rests:
            await require_bytes(tx, view, seal_draft)
        await record_seal(tx, view, ref, seal_draft, signature, key)
        await tx.many(rows.DROP_PREPARED, [{"prepare_id": seal_draft.id}])  # a repeat finds the seal itself
        await live_updates.assign_to_seal(tx, view.node, ref, seal_draft.id, prepared.at_seq)
        await tx.many(lanes.SEALED, [{"ref_id": ref.id, "to": prepared.at_seq}])
        await epochs.begin(tx, view.node, ref.id, ends)
        await branch_event.announce_move(tx, view, ref, seal_draft.id, prepared.expected_head)
        (sealed,) = await find(tx, view.repo.id, [seal_draft.id])
        return to_wire(sealed)


def require_prepare_id(text: str) -> None:
    """Raise NotFound unless the text has the form of a seal id. Prepared seals are named by the id of the
    last of them."""
    if not is_hex_digest(text):
        raise NotFound


async def signing_key(tx: Tx, view: View, key_id: str) -> KeyRow:
    """Find the caller's registered key. Raises Forbidden if it cannot sign."""
    key = await frontier.find_key(tx.one, view.me.account_id, key_id)
    if key is None:
        raise Forbidden("this device key is not registered to you, or was revoked; run: svc login")
    return key


async def take_prepared(
    purpose: Purpose, tx: Tx, view: View, ref: RefRow, prepare_id: str, device_key_id: str
) -> PrepareRow:
    """Read the seals that this caller prepared with this key for this purpose. Raises PrepareExpired if the
    time to sign them is over. Raises Forbidden if they were prepared with another key, and NotFound if they
    were prepared for another purpose, account or branch."""
    prepared = await find_prepared(purpose, tx, prepare_id)
    if prepared.account_id != view.me.account_id or prepared.branch_id != ref.id:
        raise NotFound
    if prepared.device_key_id != device_key_id:
        raise Forbidden("another device prepared this seal; only that device can sign it")
    if prepared.expires_at <= now_ms():
        raise PrepareExpired("the time to sign this seal is over; nothing was sealed, push again")
    return prepared


async def find_prepared(purpose: Purpose, tx: Tx, prepare_id: str) -> PrepareRow:
    """Read the row of the seals that were prepared under this id for this purpose. Raises NotFound if there
    are none."""
    row = await tx.one(rows.PREPARED, prepare_id=prepare_id)
    if row is None or rows.to_prepared(row).purpose != purpose:
        raise NotFound
    return rows.to_prepared(row)


async def require_landed_by(purpose: Purpose, tx: Tx, row: SealRow) -> None:
    """Raise NotFound unless the seal was landed for this purpose. Called when a request to finalize is
    repeated, so that only the same kind of request gets the stored answer.

    A seal that has live updates was made from the live frontier. For other seals, the row of the prepared
    seal says the purpose.
    """
    if await tx.one(live_batch.RANGE_OF, seal_id=row.id, repo_id=row.repo_id) is not None:
        landed: str = "seal"
    else:
        prepare = await tx.one(rows.PREPARED, prepare_id=row.id)
        landed = rows.to_prepared(prepare).purpose if prepare else "seals"
    if landed != purpose:
        raise NotFound


async def move(tx: Tx, view: View, ref: RefRow, expected: str | None, head: str, remedy: str) -> None:
    """Move the head of a branch from `expected` to `head`, mark the repository as changed, and call the
    functions registered in `landings`. Raises StaleHead if the head is not `expected`. `remedy`: what its
    message tells the user to do."""
    now = now_ms()
    moved = await tx.run(refs.MOVE, ref_id=ref.id, expected=expected, new_head=head, now=now)
    if not moved:
        raise StaleHead(ref.name, ref.head, remedy)
    await tx.run(repos.TOUCH, repo_id=ref.repo_id, now=now)
    await view.node.landings.tell_moved(tx, view, ref.id, head)


async def find(tx: Tx, repo_id: str, ids: list[str]) -> list[SealRow]:
    """Seals of the repository by id, in the given order; unknown ids are left out."""
    by_id = {row.id: row for row in map(rows.to_row, await tx.all(rows.MANY, repo_id=repo_id, ids=ids))}
    return [by_id[seal_id] for seal_id in ids if seal_id in by_id]


def require_same(view: View, row: SealRow, device_key_id: str) -> None:
    """Check that a repeated request to finalize comes from the maker of the seal `row`. Raises NotFound if
    another account made the seal, and Forbidden if another device key did."""
    if row.account_id != view.me.account_id:
        raise NotFound
    if row.device_key_id != device_key_id:
        raise Forbidden("another device sealed this")


def _require_head(ref: RefRow, body: PrepareRequest) -> None:
    if body.expected_head != ref.head:
        raise StaleHead(ref.name, ref.head)
    if body.expected_frontier is not None and body.expected_frontier < ref.seq:
        raise StaleHead(ref.name, ref.head, "live edits arrived after the prepare; run: svc pull")


async def _changes_of(
    load: trees.Load, parent: bytes | None, changed: list[LaneRow], directories: tree.Known
) -> dict[str, TreeEntry | None]:
    """The changes of the frontier against the tree `parent`: the new entries by path, None for a removed
    file. `changed`: the rows of the frontier that were changed."""
    steps = tree.lookup(parent, [row.path for row in changed], directories)
    before = await trees.drive(steps, load, len(changed), directories)
    after = {row.path: frontier.entry_of(row) for row in changed}
    return {path: entry for path, entry in after.items() if before.get(path) != entry}


def _nothing_to_seal(ref: RefRow, parent: bytes | None) -> Prepared:
    return Prepared(
        prepare_id="",
        bytes="",
        digest="",
        content_digest=(parent or tree.EMPTY_ROOT).hex(),
        at=ref.seq,
        expires_at=rfc3339(now_ms()),
        changes=[],
        unchanged=True,
    )


async def _may_be_many(
    load: trees.Load, view: View, ref: RefRow, changes: dict[str, TreeEntry | None]
) -> bool:
    """Whether the tree may have too many files for a seal. Each file that is not in the branch's base was
    created by a live update. So the tree has at most as many files as the base plus the updates of the
    branch."""
    if ref.base is None or not any(changes.values()):
        return ref.seq > limits.TREE_ENTRIES
    files = await view.node.files.count(load, [ref.base])
    return ref.seq + files[ref.base] > limits.TREE_ENTRIES


async def _require_budget(tx: Tx, load: trees.Load, view: View, ref: RefRow, built: Built) -> None:
    if ref.base is None:
        files, blobs = (await tx.one(lanes.TOTALS, branch_id=ref.id)) or (0, 0)
        require_budget(view, files, blobs)
        return

    async def either(digests: list[bytes]) -> dict[bytes, bytes]:
        in_memory = {digest: built.directories[digest] for digest in digests if digest in built.directories}
        return {**await load([digest for digest in digests if digest not in in_memory]), **in_memory}

    entries = await trees.drive(tree.walk(built.root), either)
    require_budget(view, len(entries), sum(entry.size for entry in entries.values() if entry.kind != "text"))


def require_budget(view: View, files: int, blobs: int) -> None:
    """Raise SealBudgetExceeded if a seal has too many files, or too many bytes of binary files."""
    if files > limits.TREE_ENTRIES:
        raise SealBudgetExceeded(f"a seal holds at most {limits.TREE_ENTRIES} files; this one has {files}")
    if view.repo.kind not in BULK_KINDS and blobs > limits.BLOB_TREE:
        raise SealBudgetExceeded(
            f"binaries of one seal add up to at most {limits.BLOB_TREE} bytes in this kind of repository; "
            f"these add up to {blobs}: remove some, or keep them in a model or dataset repository"
        )


@dataclass(slots=True, frozen=True)
class SealsToStore:
    """Seals to store as prepared. `at`: the number of the live frontier that they seal, or None if they are
    not made from the live frontier. `subject`: a text that says which merge or which suggestions
    the seals are for (`PrepareRow`)."""

    purpose: Purpose
    ref: RefRow
    key: KeyRow
    drafts: list[SealDraft]
    at: int | None = None
    subject: str | None = None


async def store(
    view: View,
    plan: SealsToStore,
    texts: LaneTexts,
    directories: dict[bytes, bytes],
    settling: PrepareRequest | None = None,
    files: dict[bytes, bytes] | None = None,
) -> int:
    """Store prepared seals. Returns the time at which they expire.

    `directories`, `files`: objects to store first, by digest. One transaction then stores the seals, and
    makes these objects and `texts` reachable from the repository. `settling`: a request that says which
    answers to live updates the device has received; they are deleted.
    """
    now = now_ms()
    expires = now + limits.PREPARE * 1000
    ref, key = plan.ref, plan.key
    objects, repo_id = view.node.objects, view.repo.id
    placed_directories = await objects.place(directories, repo_id) if directories else []
    placed_files = await objects.place(files, repo_id) if files else []
    async with view.write() as tx:
        if plan.purpose in ("seal", "seals"):
            await protection.check(tx, view, ref.name, "write")
        if texts.digests:
            await objects.admit(tx, texts.placed, repo_id, texts.digests)
        if directories:
            await objects.admit(tx, placed_directories, repo_id, list(directories), directories=True)
        if files:
            await objects.admit(tx, placed_files, repo_id, list(files))
        if settling is not None and settling.replica is not None:
            replica = await replicas.find_own(tx, view, ref, key, settling.replica)
            await replicas.settle(tx, replica, min(settling.settled, replica.highest), replica.highest)
        await tx.many(rows.PURGE_PREPARED, [{"before": now - KEEP_PREPARED}])
        own = {"branch_id": ref.id, "device_key_id": key.id, "purpose": plan.purpose}
        await tx.many(rows.CROWD_OUT, [{**own, "keep": PREPARED_AT_ONCE - 1}])
        await tx.run(
            rows.PREPARE,
            id=plan.drafts[-1].id,
            **own,
            subject=plan.subject,
            account_id=view.me.account_id,
            expected_head=ref.head,
            at_seq=plan.at,
            seals=msgspec.msgpack.encode(plan.drafts),
            expires_at=expires,
        )
    return expires
