"""Rules of transfers: a repository gets another owner when that owner accepts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from localstore.core.errors import Conflict, Invalid, NotFound
from localstore.core.model import limits
from localstore.core.model.access import Transfer, TransferCreate, TransferPending
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.repo import NameTaken
from relay.base.clock import now_ms, rfc3339
from relay.base.ids import new_id
from relay.caller import Caller, View, account_name, repo_name
from relay.capacity import quota
from relay.db import paging
from relay.db import repo as repos
from relay.db.engine.database import Row, Tx, UniqueViolation
from relay.db.repo import RepoRow
from relay.domain.access import organisation_roles
from relay.domain.access.access import owner_of, repo_name_of
from relay.domain.access.offer import OFFER_MS, Offers
from relay.domain.access.organisation_roles import acts_for
from relay.domain.access.rows import access as rows
from relay.domain.access.rows.access import RepoOfferRow
from relay.domain.attention import social
from relay.domain.identity.rows import account as accounts
from relay.domain.webhook import webhook as webhooks

_TRANSFERS = Offers("transfer", rows.TRANSFER, rows.to_transfer)


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
        return _row_to_wire(await _TRANSFERS.find(tx.one, transfer_id))


async def accept(caller: Caller, transfer: str) -> Transfer:
    """Accept a transfer: the caller becomes the owner

    If the repository was offered to an organisation, the organisation becomes the owner. If the old owner is
    a person, that person gets the role admin. The old address redirects for 90 days; webhooks are switched
    off. If accepting fails with NameTaken or QuotaExceeded, the transfer stays open.
    """
    before = await _find_my_transfer(caller, transfer)
    async with caller.write(
        repo_name(before.repo_id), account_name(before.account_id), account_name(before.owner_id)
    ) as tx:  # whose names are taken and reserved, and whose quotas count
        row = await _TRANSFERS.find_open(tx.one, transfer)
        if not await acts_for(tx, row.account_id, caller.me.account_id):
            raise NotFound
        repo_row = await tx.one(repos.ONE, id=row.repo_id, account=caller.me.account_id)
        if repo_row is None or row.account_handle is None or row.owner_id != before.owner_id:
            raise NotFound
        old = repos.to_row(repo_row)
        await _change_owner(tx, caller, old, row.account_id, row.account_handle)
        await tx.run(rows.END_TRANSFER, of_id=transfer, new_state="accepted")
        await caller.node.hub.announce(
            tx,
            old.id,
            "repo.transfer",
            audience="reader",
            transfer=transfer,
            account=row.account_id,
            sender=old.owner_id,
        )
        return _row_to_wire(await _TRANSFERS.find(tx.one, transfer))


async def decline(caller: Caller, transfer: str) -> Transfer:
    """Decline a transfer

    Only the account that the repository was offered to may decline. For an organisation, its admins may.
    """
    return await _end_transfer(caller, transfer, _recipient, "declined", "transfer.decline")


async def cancel(caller: Caller, transfer: str) -> Transfer:
    """Cancel a transfer

    The account that offered the repository may cancel, and so may the repository's owner.
    """
    return await _end_transfer(caller, transfer, _givers, "cancelled", "transfer.cancel")


def _recipient(row: RepoOfferRow) -> tuple[str, ...]:
    return (row.account_id,)


def _givers(row: RepoOfferRow) -> tuple[str, ...]:
    return row.sender_id, row.owner_id


async def _end_transfer(
    caller: Caller, transfer: str, whose: Callable[[RepoOfferRow], tuple[str, ...]], state: str, kind: str
) -> Transfer:
    """End an open transfer and announce an event of the kind `kind`. `whose`: returns the ids of the accounts
    that may end a transfer. `state`: the new state of the transfer."""
    before = await _find_my_transfer(caller, transfer)
    owners = [account_name(owner) for owner in whose(before)]  # who is an admin of these stays so meanwhile
    async with caller.write(repo_name(before.repo_id), *owners) as tx:
        row = await _TRANSFERS.find_open(tx.one, transfer)
        if not await _acts_for_any(tx, whose(row), caller.me.account_id):
            raise NotFound
        await tx.run(rows.END_TRANSFER, of_id=transfer, new_state=state)
        await caller.node.hub.announce(
            tx,
            row.repo_id,
            kind,
            audience="owner",
            transfer=transfer,
            account=row.account_id,
            told=row.sender_id,
        )
        return _row_to_wire(await _TRANSFERS.find(tx.one, transfer))


async def _change_owner(tx: Tx, caller: Caller, old: RepoRow, new: str, handle: str) -> None:
    """Make the account with the id `new` and this handle the owner of the repository. Raises NameTaken or
    QuotaExceeded."""
    now = now_ms()
    holder = await tx.value(repos.ALIAS_OF, owner=handle, name=old.name, now=now)
    if holder is not None and holder != old.id:
        raise NameTaken(f"{handle}/{old.name} is reserved for a repository that was renamed")
    await quota.transfer(tx, old.id, old.owner_id, new, caller.node.config.quota)
    await organisation_roles.withdraw_roles_of_members(tx, old.id)
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
    await organisation_roles.grant_roles_to_members(tx, old.id)
    await social.watch_own(tx, old.id, caller.me.account_id)
    await webhooks.switch_off_all(tx, old.id)
    until = now + limits.ALIAS * 1000
    await tx.run(repos.ALIAS_DROP, owner=handle, name=old.name)
    await tx.run(repos.ALIAS_DROP, owner=old.owner, name=old.name)
    await tx.run(repos.ALIAS_INSERT, owner=old.owner, name=old.name, repo_id=old.id, expires_at=until)


async def _find_my_transfer(caller: Caller, transfer: str) -> RepoOfferRow:
    """Find a transfer. Raises NotFound unless the caller acts for the sender, the old owner or the new
    owner."""
    async with caller.read() as tx:
        row = await _TRANSFERS.find(tx.one, transfer)
        if not await _acts_for_any(tx, (*_recipient(row), *_givers(row)), caller.me.account_id):
            raise NotFound
    return row


async def _acts_for_any(tx: Tx, owners: Sequence[str], who: str) -> bool:
    return any([await acts_for(tx, owner, who) for owner in owners])


def _to_wire(values: Row) -> Transfer:
    return _row_to_wire(rows.to_transfer(values))


def _row_to_wire(row: RepoOfferRow) -> Transfer:
    return Transfer(
        id=row.id,
        repo=repo_name_of(row),
        to=row.account,
        sender=row.sender,
        state=row.state,
        created_at=rfc3339(row.created_at),
        expires_at=rfc3339(row.valid_until),
        org=row.account_kind == "org",
    )
