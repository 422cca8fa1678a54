"""The live updates of a seal. They are stored when they are accepted, and assigned to the seal when it is
made. Reading them needs the role write.

Readers of a seal see the sealed state. Text that was typed and removed again before sealing is visible only
to those who could see it while it was live.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from localstore.core.model.base import Actor, Page
from localstore.core.model.history import PathUpdates, SealUpdate
from localstore.core.model.limits import MIB
from localstore.core.model.live import UpdateAnswer
from relay.base.clock import now_ms, rfc3339
from relay.caller import View, repo_name
from relay.capacity import quota
from relay.db.engine.database import Tx
from relay.db.live import live_batch as rows
from relay.db.paging import Cursor, page_size
from relay.db.ref import RefRow
from relay.domain.history import live_update_format as forms
from relay.domain.history import sealed
from relay.domain.history.live_update_format import Asked, AuthorChanges, Change, SignedEdit
from relay.node import Node

ROWS_AT_ONCE = 4  # of at most about a batch's bytes each
PAGE_BYTES = 2 * MIB  # of operations, after which a page ends
TALLY_BYTES = 300  # that one path of a tally takes in memory
TURN = 16  # rows after which the event loop serves others
MANY = 32  # rows of one seal that are worth joining
JOINED_BYTES, JOINED_ROWS = 128 * 1024, 500  # of a joined row, and rows read for it
JOIN_AFTER = 60_000  # milliseconds: a push is over by then
KIND = "live_record"


class Range(NamedTuple):
    branch_id: str
    after_seq: int
    upto_seq: int


class _Tally:
    """How often one device changed one path, with the first and last time."""

    __slots__ = ("count", "first", "last")

    def __init__(self, at: int) -> None:
        self.count, self.first, self.last = 0, at, at

    def add(self, at: int) -> None:
        self.count += 1
        self.first, self.last = min(self.first, at), max(self.last, at)


async def keep(
    tx: Tx,
    view: View,
    branch_id: str,
    device_key_id: str,
    replica: int,
    before: int,
    sent: list[Asked],
    answers: list[UpdateAnswer],
) -> None:
    """Store those updates of one request that have changed the branch, and count their bytes. `before`: the
    number that the branch had before these updates. Raises QuotaExceeded if they exceed the quota of the
    repository's owner; deletions are never refused."""
    changes, edits = forms.changed_by(sent, answers, before, now_ms())
    if changes:
        author = AuthorChanges(view.me.account_id, device_key_id, replica, changes)
        named, signed = forms.pack_changes([author]), forms.pack_edits(edits)
        row = {"branch_id": branch_id, "seq": changes[-1].seq, "changes": named, "edits": signed}
        await tx.many(rows.INSERT, [row])
        deletes = all(update.kind == "delete" for update, _ in sent)
        limits = None if deletes else view.node.config.quota
        await quota.count(tx, view.repo.id, 0, _weigh(named, signed), limits)


async def drop_unsealed(tx: Tx, ref: RefRow) -> None:
    """Delete the updates that are in no seal, because the branch is deleted."""
    size = await tx.value(rows.UNSEALED_BYTES, branch_id=ref.id, sealed=ref.sealed_seq)
    if size:
        await tx.run(rows.DROP_UNSEALED, branch_id=ref.id, sealed=ref.sealed_seq)
        await quota.count(tx, ref.repo_id, 0, -int(size), None)


async def assign_to_seal(tx: Tx, node: Node, ref: RefRow, seal_id: str, at: int) -> None:
    """Assign the updates since the previous seal, up to number `at`, to this seal."""
    updates = Range(ref.id, min(ref.sealed_seq, at), at)
    await tx.many(rows.SEALED, [{"seal_id": seal_id, **updates._asdict()}])
    if await tx.value(rows.COUNT, **updates._asdict()) > MANY:
        data = {"seal_id": seal_id, "repo_id": ref.repo_id}
        await node.jobs.add(tx, KIND, data, key=f"{KIND}:{seal_id}", run_at=now_ms() + JOIN_AFTER)


async def page(view: View, seal_id: str, cursor: str | None, limit: int | None) -> Page[SealUpdate]:
    """A page of the updates that the seal contains, in order. The page ends early if the updates are long."""
    view.require_whole()
    size = page_size(limit)
    (after,) = (int(part) for part in Cursor.read(cursor, 0))
    page_rows: list[tuple[AuthorChanges, Change, SignedEdit | None]] = []
    async with view.read() as tx:
        sealed_range = await _find_range(tx, view, seal_id)
        if sealed_range is None:
            return Page(items=[], next_cursor=None)
        at = max(after, sealed_range.after_seq)
        weight, more = 0, True
        while more and len(page_rows) <= size and weight < PAGE_BYTES:
            update_rows = await tx.all(
                rows.SOME, **sealed_range._replace(after_seq=at)._asdict(), limit=ROWS_AT_ONCE
            )
            more = len(update_rows) == ROWS_AT_ONCE
            for seq, changes, edits in update_rows:
                view.lease.reserve(len(changes) + len(edits or b""))
                at, weight = seq, weight + len(edits or b"")
                page_rows += [
                    item
                    for item in await asyncio.to_thread(_list_updates, changes, edits)
                    if item[1].seq > after
                ]
        more_rows = more or len(page_rows) > size
        page_rows = page_rows[:size]
        people = await _find_actors(tx, {author.account_id for author, _, _ in page_rows})
    items = [_to_wire(sealed_range.branch_id, people, *item) for item in page_rows]
    return Page(items=items, next_cursor=Cursor.write(items[-1].seq) if more_rows and items else None)


async def by_path(view: View, seal_id: str, cursor: str | None, limit: int | None) -> Page[PathUpdates]:
    """Sum up the live updates of a seal by path and device, sorted by path. Each item has the author, the
    number of changes, and the times of the first and the last change."""
    view.require_whole()
    size = page_size(limit)
    after = Cursor.read(cursor, "", "", "")
    tallies: dict[tuple[str, ...], _Tally] = {}
    async with view.read() as tx:
        sealed_range = await _find_range(tx, view, seal_id)
        if sealed_range is None:
            return Page(items=[], next_cursor=None)
        met = 0
        async for (changes,) in tx.stream(rows.CHANGES, **sealed_range._asdict()):
            before = len(tallies)
            for author in forms.changes_of(changes):
                for change in author.changes:
                    key = (change.path, author.account_id, author.device_key_id)
                    if key > after:
                        tallies.setdefault(key, _Tally(change.at)).add(change.at)
            view.lease.reserve((len(tallies) - before) * TALLY_BYTES)
            met += 1
            if met % TURN == 0:
                await asyncio.sleep(0)
        ordered = sorted(tallies)
        page_rows = ordered[:size]
        people = await _find_actors(tx, {account for _, account, _ in page_rows})
    items = [
        PathUpdates(
            path=path,
            who=people[account],
            device_key_id=device,
            updates=tallies[path, account, device].count,
            first_at=rfc3339(tallies[path, account, device].first),
            last_at=rfc3339(tallies[path, account, device].last),
        )
        for path, account, device in page_rows
    ]
    return Page(items=items, next_cursor=Cursor.write(*page_rows[-1]) if len(ordered) > size else None)


async def join(node: Node, data: Mapping[str, Any]) -> None:
    """Merge the many rows that store the live updates of one seal into a few. Repeating it does no harm, and
    readers see no difference."""
    repo_id, seal_id = data["repo_id"], data["seal_id"]
    async with node.db.read() as tx:
        range_row = await tx.one(rows.RANGE_OF, seal_id=seal_id, repo_id=repo_id)
    if range_row is None:
        return
    sealed_range = Range(*range_row)
    while True:
        async with node.db.write(repo_name(repo_id)) as tx:
            update_rows = await tx.all(rows.SOME, **sealed_range._asdict(), limit=JOINED_ROWS)
            if not update_rows:
                return
            weight, many = 0, 0
            while many < len(update_rows) and weight < JOINED_BYTES:
                weight += _weigh(*update_rows[many][1:])
                many += 1
            part = update_rows[:many]
            if many > 1:
                changes, edits = await asyncio.to_thread(_join_rows, part)
                await tx.run(rows.DROP, branch_id=sealed_range.branch_id, seqs=[row[0] for row in part])
                await tx.run(
                    rows.INSERT,
                    branch_id=sealed_range.branch_id,
                    seq=part[-1][0],
                    changes=changes,
                    edits=edits,
                )
                await quota.count(tx, repo_id, 0, _weigh(changes, edits) - weight, None)
        sealed_range = sealed_range._replace(after_seq=part[-1][0])


def _weigh(changes: bytes, edits: bytes | None) -> int:
    return len(changes) + len(edits or b"")


def _join_rows(part: list[Any]) -> tuple[bytes, bytes | None]:
    authors: list[AuthorChanges] = []
    for _, changes, _ in part:
        for group in forms.changes_of(changes):
            if authors and _is_same_author(authors[-1], group):
                authors[-1].changes.extend(group.changes)
            else:
                authors.append(group)
    edits = [edit for _, _, held in part for edit in forms.edits_of(held)]
    return forms.pack_changes(authors), forms.pack_edits(edits)


def _is_same_author(author: AuthorChanges, other: AuthorChanges) -> bool:
    return (author.account_id, author.device_key_id, author.replica) == (
        other.account_id,
        other.device_key_id,
        other.replica,
    )


async def _find_range(tx: Tx, view: View, seal_id: str) -> Range | None:
    """Find which live updates the seal contains. Returns None for a seal that was not made from the live
    frontier (such as a merge), and for an old seal without stored updates. Raises NotFound for an unknown
    seal."""
    await sealed.seal(view, seal_id, tx)
    row = await tx.one(rows.RANGE_OF, seal_id=seal_id, repo_id=view.repo.id)
    return Range(*row) if row else None


def _list_updates(
    changes: bytes, edits: bytes | None
) -> list[tuple[AuthorChanges, Change, SignedEdit | None]]:
    signed = {edit.seq: edit for edit in forms.edits_of(edits)}
    return [
        (author, change, signed.get(change.seq))
        for author in forms.changes_of(changes)
        for change in author.changes
    ]


async def _find_actors(tx: Tx, ids: set[str]) -> dict[str, Actor]:
    account_rows = await tx.all(rows.ACCOUNTS, ids=sorted(ids)) if ids else []
    gone = {id: Actor(id=id, kind="guest") for id in ids}  # accounts of guests are deleted
    return gone | {id: Actor(id=id, handle=handle, kind=kind) for id, handle, kind in account_rows}


def _to_wire(
    branch_id: str,
    people: Mapping[str, Actor],
    author: AuthorChanges,
    change: Change,
    edit: SignedEdit | None,
) -> SealUpdate:
    return SealUpdate(
        seq=change.seq,
        at=rfc3339(change.at),
        who=people[author.account_id],
        device_key_id=author.device_key_id,
        branch_id=branch_id,
        replica=author.replica,
        path=change.path,
        kind=change.kind,
        update=edit.update(change.path) if edit else None,
    )
