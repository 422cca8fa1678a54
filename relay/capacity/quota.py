"""Counts what accounts use on this node, and limits sign-ups for each address. Each change is counted in the
transaction that makes it.

The bytes of a repository are the uncompressed sizes of the objects that it reaches. An object counts once for
each repository, even if several repositories share it. A deleted repository does not count against the limit,
but stays stored until it is purged. So live and deleted repositories together may have twice the limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from localstore.core.errors import QuotaExceeded
from relay.base.clock import now_ms
from relay.capacity import creation
from relay.db.engine.database import Tx
from relay.db.storage import usage as rows
from relay.db.storage.usage import UsageRow

DAY = 24 * 3600_000  # milliseconds
GUESTS = 20  # guests of an address for each account that it may make in a day
What = Literal["bytes", "objects", "repositories"]
WHATS: tuple[What, ...] = ("bytes", "objects", "repositories")


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of this node for each account. `accounts`: how many new accounts may be created from one
    network address in a day. `creations`: for each kind of thing, how many an account may create in an
    hour."""

    bytes: int
    objects: int
    repositories: int
    accounts: int
    creations: Mapping[str, int] = field(default_factory=lambda: creation.DEFAULTS)

    def limit(self, used: UsageRow, what: What) -> int:
        """The account's limit for `what`. This is the account's own limit if its row `used` has one,
        otherwise the limit of this node."""
        own: int | None = getattr(used, f"max_{what}")
        return own if own is not None else int(getattr(self, what))

    def check(self, used: UsageRow) -> None:
        """Raise QuotaExceeded if the account's usage `used` is above a limit."""
        for what in WHATS:
            limit = self.limit(used, what)
            living, deleted = getattr(used, what), getattr(used, f"deleted_{what}")
            if living > limit:
                raise QuotaExceeded(
                    f"the owner's repositories would have {_amount(living, what)} together; the limit is "
                    f"{_amount(limit, what)}: delete what is not needed, or ask the operator of this node "
                    "for more (relay quota)",
                    what,
                    living,
                    limit,
                )
            if living + deleted > 2 * limit:
                raise QuotaExceeded(
                    f"the owner's repositories, with those deleted in the last 30 days, would have "
                    f"{_amount(living + deleted, what)}; with those the limit is {_amount(2 * limit, what)}: "
                    "wait until they are purged, or ask the operator of this node for more (relay quota)",
                    what,
                    living + deleted,
                    2 * limit,
                )


async def count(tx: Tx, repo_id: str, objects: int, size: int, quota: Quota | None) -> None:
    """Count the objects that a repository newly reaches: their number `objects` and their total `size` in
    bytes. Both are negative if it no longer reaches them. `quota`: the limits of this node; None if nothing
    is limited. Raises QuotaExceeded if the owner is then above the limit; this rolls the transaction back."""
    more = {"more_bytes": size, "more_objects": objects}
    marked = await tx.one(rows.COUNT_REPO, of_repo=repo_id, **more)
    if marked is None:
        await _ensure_rows(tx, repo_id)
        marked = await tx.one(rows.COUNT_REPO, of_repo=repo_id, **more)
    deleted = marked is not None and bool(marked[0])
    statement = rows.COUNT_DELETED if deleted else rows.COUNT
    usage = await tx.one(statement, of_repo=repo_id, **more)
    if usage is None:
        await _ensure_rows(tx, repo_id)
        usage = await tx.one(statement, of_repo=repo_id, **more)
    if quota is not None and usage is not None and (size > 0 or objects > 0):
        quota.check(rows.to_row(usage))


async def require(tx: Tx, repo_id: str, sizes: Sequence[tuple[bytes, int]], quota: Quota) -> None:
    """Raise QuotaExceeded if storing some objects would exceed the owner's quota. `sizes`: the objects, as
    (digest, size in bytes). Nothing is written."""
    usage = await tx.one(rows.OF_OWNER, of_repo=repo_id)
    used = rows.to_row(usage) if usage else _empty_usage("")
    try:
        quota.check(_add_usage(used, len(sizes), sum(size for _, size in sizes)))
    except QuotaExceeded:
        held = {
            bytes(row[0]) for row in await tx.all(rows.HELD, of_repo=repo_id, digests=[d for d, _ in sizes])
        }
        fresh = [size for digest, size in sizes if digest not in held]
        if fresh:
            quota.check(_add_usage(used, len(fresh), sum(fresh)))


async def count_repository(tx: Tx, account_id: str, repo_id: str, quota: Quota) -> None:
    """Count a new repository. Raises QuotaExceeded when its owner has too many."""
    await tx.many(rows.ENSURE_ACCOUNT, [rows.unused_row(account_id)])
    await tx.many(rows.ENSURE_REPO, [rows.empty_row(repo_id)])
    usage = await tx.one(rows.COUNT_REPOSITORY, of_account=account_id)
    if usage is not None:
        quota.check(rows.to_row(usage))


async def delete(tx: Tx, repo_id: str) -> None:
    """Count a deleted repository: its bytes no longer count against its owner's limit."""
    await _move(tx, repo_id, True)


async def restore(tx: Tx, repo_id: str) -> None:
    """Count a restored repository against its owner's limit. Restoring is never refused, so the owner may be
    above the limit afterwards."""
    await _move(tx, repo_id, False)


async def transfer(tx: Tx, repo_id: str, old_owner: str, new_owner: str, quota: Quota) -> None:
    """Move the counts of a repository from its old owner to its new owner. Raises QuotaExceeded if the new
    owner would exceed a limit."""
    counts = await tx.one(rows.OF_REPO, of_repo=repo_id)
    if counts is None:
        await _ensure_rows(tx, repo_id)
        counts = (0, 0, False)
    await tx.many(rows.ENSURE_ACCOUNT, [rows.unused_row(new_owner)])
    values = {"all_bytes": counts[0], "all_objects": counts[1]}
    await tx.run(rows.GIVEN_AWAY, of_account=old_owner, **values)
    used = await tx.one(rows.RECEIVED, of_account=new_owner, **values)
    if used is not None:
        quota.check(rows.to_row(used))


async def purge(tx: Tx, repo_id: str) -> None:
    """Remove the counts of a deleted repository whose rows are about to be deleted."""
    counts = await tx.one(rows.OF_REPO, of_repo=repo_id)
    if counts is not None:
        if not counts[2]:
            await _move(tx, repo_id, True)
        await tx.run(rows.PURGED, of_repo=repo_id, all_bytes=counts[0], all_objects=counts[1])


async def count_account(tx: Tx, address: str, quota: Quota, guest: bool = False) -> None:
    """Count a new account or guest against the network address that created it. Raises QuotaExceeded for too
    many in a day."""
    key, limit = (f"guest {address}", quota.accounts * GUESTS) if guest else (address, quota.accounts)
    now = now_ms()
    await tx.many(rows.ENSURE_ADDRESS, [{"address": key, "accounts": 0, "expires_at": now + DAY}])
    created = await tx.value(rows.COUNT_ADDRESS, of_address=key, now=now, until=now + DAY)
    if created > limit:
        raise QuotaExceeded(
            f"this address made {limit} {'guests' if guest else 'accounts'} within a day, and may make no "
            "more; try again tomorrow, or ask the operator of this node for an account (relay account add "
            "HANDLE)",
            "accounts",
            int(created) - 1,
            limit,
        )


async def _ensure_rows(tx: Tx, repo_id: str) -> None:
    owner = await tx.value(rows.OWNER, of_repo=repo_id)
    await tx.many(rows.ENSURE_ACCOUNT, [rows.unused_row(owner)])
    await tx.many(rows.ENSURE_REPO, [rows.empty_row(repo_id)])


async def _move(tx: Tx, repo_id: str, deleted: bool) -> None:
    counts = await tx.one(rows.OF_REPO, of_repo=repo_id)
    if counts is None:
        await _ensure_rows(tx, repo_id)
        counts = (0, 0, not deleted)
    if bool(counts[2]) == deleted:
        return
    await tx.run(rows.MARK_DELETED, of_repo=repo_id, is_deleted=deleted)
    statement = rows.TO_DELETED if deleted else rows.FROM_DELETED
    await tx.run(statement, of_repo=repo_id, all_bytes=counts[0], all_objects=counts[1])


def _empty_usage(account_id: str) -> UsageRow:
    return UsageRow(account_id, 0, 0, 0, 0, 0, 0, None, None, None)


def _add_usage(used: UsageRow, objects: int, size: int) -> UsageRow:
    values = {name: getattr(used, name) for name in used.__struct_fields__}
    return UsageRow(**values | {"bytes": used.bytes + size, "objects": used.objects + objects})


def _amount(count: int, what: What) -> str:
    return f"{count} {what}"
