"""Rules of transfers: a repository gets another owner when that owner accepts."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core.errors import Conflict, Invalid, NotFound
from localstore.core.model import limits
from localstore.core.model.access import Transfer, TransferCreate, TransferPending
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.repo import NameTaken
from relay.base.actors import to_actor
from relay.base.clock import now_ms, rfc3339
from relay.base.ids import new_id
from relay.caller import Caller, View, account_name, repo_name
from relay.capacity import quota
from relay.db import paging
from relay.db import repo as repos
from relay.db.engine.database import Row, Tx, UniqueViolation
from relay.db.repo import RepoRow
from relay.domain.access import through
from relay.domain.access.access import OFFER_MS, owner_of, repo_name_of, require_pending
from relay.domain.access.rows import access as rows
from relay.domain.access.through import acts_for
from relay.domain.attention import social
from relay.domain.identity.rows import account as accounts
from relay.domain.webhook import webhook as webhooks


async def page(caller: Caller, query: PageQuery) -> Page[Transfer]:
    """Open transfers that the caller sent or may accept"""
    who = caller.me.account_id
    async with caller.read() as tx:
        return await paging.read_page(tx, rows.MY_TRANSFERS, query, _to_wire, who=who, now=now_ms())


async def create(view: View, body: TransferCreate) -> Transfer:
    """Offer the repository to another owner

    Ownership does not move yet.
    """
    async with view.write() as tx:
        now = now_ms()
        to = await owner_of(tx, body.to, "/to")
        who, handle = to.id, to.handle
        if body.org and to.kind != "org":
            raise Invalid(f"{handle} is a person; omit --org", pointer="/org")
        if not body.org and to.kind == "org":
            raise Invalid(f"{handle} is an organisation; add --org", pointer="/to")
        if who == view.repo.owner_id:
            raise Conflict(f"@{handle} owns {view.repo.full_name} already")
        await tx.run(rows.EXPIRE_TRANSFER, of_repo=view.repo.id, now=now)
        transfer_id = new_id()
        try:
            await tx.run(
                rows.ADD_TRANSFER,
                id=transfer_id,
                repo_id=view.repo.id,
                sender_id=view.me.account_id,
                account_id=who,
                state="pending",
                created_at=now,
                valid_until=now + OFFER_MS,
            )
        except UniqueViolation:
            raise TransferPending(
                f"{view.repo.full_name} has an open transfer; see: svc repo transfer-list"
            ) from None
        await view.node.hub.announce(
            tx, view.repo.id, "transfer.create", audience="owner", transfer=transfer_id, account=who
        )
        return await _read_transfer(tx, transfer_id)


async def accept(caller: Caller, transfer: str) -> Transfer:
    """Accept a transfer: the caller becomes the owner

    If the repository was offered to an organisation, the organisation becomes the owner. If the old owner is
    a person, that person gets the role admin. The old address redirects for 90 days; webhooks are switched
    off. If accepting fails with NameTaken or QuotaExceeded, the transfer stays open.
    """
    before = await _find_my_transfer(caller, transfer)
    async with caller.write(
        repo_name(before[1]), account_name(before[4]), account_name(before[13])
    ) as tx:  # whose names are taken and reserved, and whose quotas count
        row = await _find_pending(tx, transfer)
        if not await acts_for(tx, row[4], caller.me.account_id):
            raise NotFound
        repo_row = await tx.one(repos.ONE, id=row[1], account=caller.me.account_id)
        if repo_row is None or row[5] is None or row[13] != before[13]:
            raise NotFound
        old = repos.to_row(repo_row)
        await _change_owner(tx, caller, old, row[4], row[5])
        await tx.run(rows.END_TRANSFER, of_id=transfer, new_state="accepted")
        await caller.node.hub.announce(
            tx,
            old.id,
            "repo.transfer",
            audience="reader",
            transfer=transfer,
            account=row[4],
            sender=old.owner_id,
        )
        return await _read_transfer(tx, transfer)


async def decline(caller: Caller, transfer: str) -> Transfer:
    """Decline a transfer

    Only the account that the repository was offered to may decline. For an organisation, its admins may.
    """
    return await _end_transfer(caller, transfer, (4,), "declined", "transfer.decline")


async def cancel(caller: Caller, transfer: str) -> Transfer:
    """Cancel a transfer

    The account that offered the repository may cancel, and so may the repository's owner.
    """
    return await _end_transfer(caller, transfer, (7, 13), "cancelled", "transfer.cancel")


async def _end_transfer(
    caller: Caller, transfer: str, whose: tuple[int, ...], state: str, kind: str
) -> Transfer:
    """End an open transfer and announce an event of the kind `kind`. `whose`: indexes of the row's columns
    with the accounts that may end it. `state`: the new state of the transfer."""
    before = await _find_my_transfer(caller, transfer)
    owners = [account_name(before[index]) for index in whose]  # who is an admin of these stays so meanwhile
    async with caller.write(repo_name(before[1]), *owners) as tx:
        row = await _find_pending(tx, transfer)
        if not await _acts_for_any(tx, [row[index] for index in whose], caller.me.account_id):
            raise NotFound
        await tx.run(rows.END_TRANSFER, of_id=transfer, new_state=state)
        await caller.node.hub.announce(
            tx, row[1], kind, audience="owner", transfer=transfer, account=row[4], told=row[7]
        )
        return await _read_transfer(tx, transfer)


async def _change_owner(tx: Tx, caller: Caller, old: RepoRow, new: str, handle: str) -> None:
    """Make the account with the id `new` and this handle the owner of the repository. Raises NameTaken or
    QuotaExceeded."""
    now = now_ms()
    holder = await tx.value(repos.ALIAS_OF, owner=handle, name=old.name, now=now)
    if holder is not None and holder != old.id:
        raise NameTaken(f"{handle}/{old.name} is reserved for a repository that was renamed")
    await quota.transfer(tx, old.id, old.owner_id, new, caller.node.config.quota)
    await through.withdraw_roles_of_members(tx, old.id)
    await tx.run(rows.REMOVE, of_repo=old.id, who=new)
    await tx.run(rows.CANCEL_INVITE_OF, of_repo=old.id, who=new)
    try:
        await tx.run(rows.SET_OWNER, of_repo=old.id, new_owner=new, now=now)
    except UniqueViolation:
        raise NameTaken(
            f"there is a repository {handle}/{old.name}; rename it, then accept: svc repo rename NEW -R "
            f"{handle}/{old.name}"
        ) from None
    if await tx.value(accounts.KIND, id=old.owner_id) != "org":  # an organisation has no roles elsewhere
        await tx.run(rows.ADD, repo_id=old.id, account_id=old.owner_id, role="admin", created_at=now)
    await through.grant_roles_to_members(tx, old.id)
    await social.watch_own(tx, old.id, caller.me.account_id)
    await webhooks.switch_off_all(tx, old.id)
    until = now + limits.ALIAS * 1000
    await tx.run(repos.ALIAS_DROP, owner=handle, name=old.name)
    await tx.run(repos.ALIAS_DROP, owner=old.owner, name=old.name)
    await tx.run(repos.ALIAS_INSERT, owner=old.owner, name=old.name, repo_id=old.id, expires_at=until)


async def _find_my_transfer(caller: Caller, transfer: str) -> Row:
    """The row of a transfer. Raises NotFound unless the caller acts for the sender, the old owner or the new
    owner."""
    async with caller.read() as tx:
        row = await tx.one(rows.TRANSFER, id=transfer, now=now_ms())
        me = caller.me.account_id
        if row is None or not await _acts_for_any(tx, (row[4], row[7], row[13]), me):
            raise NotFound
    return row


async def _acts_for_any(tx: Tx, owners: Sequence[str], who: str) -> bool:
    return any([await acts_for(tx, owner, who) for owner in owners])


async def _find_pending(tx: Tx, transfer: str) -> Row:
    """The row of an open transfer. Raises NotFound, AlreadyDecided or InviteExpired."""
    row = await tx.one(rows.TRANSFER, id=transfer, now=now_ms())
    if row is None:
        raise NotFound
    require_pending(row[10], "transfer")
    return row


async def _read_transfer(tx: Tx, transfer: str) -> Transfer:
    row = await tx.one(rows.TRANSFER, id=transfer, now=now_ms())
    if row is None:
        raise NotFound
    return _to_wire(row)


def _to_wire(row: Row) -> Transfer:
    return Transfer(
        id=row[0],
        repo=repo_name_of(row),
        to=to_actor(*row[4:7]),
        sender=to_actor(*row[7:10]),
        state=row[10],
        created_at=rfc3339(row[11]),
        expires_at=rfc3339(row[12]),
        org=row[6] == "org",
    )
