"""Rules of organisations: owners with a handle, for whom several people act. An organisation is visible only
to its members.
"""

from __future__ import annotations

from localstore.core import names
from localstore.core.errors import Conflict, Forbidden, NotFound
from localstore.core.model import limits
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.organisation import (
    Organisation,
    OrganisationChange,
    OrganisationCreate,
    OrganisationOwns,
)
from relay.base.clock import now_ms, rfc3339
from relay.base.ids import new_account_id
from relay.caller import Caller
from relay.db import paging
from relay.db.engine.database import Row, Tx
from relay.domain.access.organisation_roles import set_base_role, write_all
from relay.domain.access.rows import organisation as rows
from relay.domain.access.rows.organisation import OrganisationRow
from relay.domain.identity import account as accounts
from relay.domain.identity import audit


async def page(caller: Caller, query: PageQuery) -> Page[Organisation]:
    """Organisations that the caller is a member of, sorted by handle"""
    async with caller.read() as tx:
        return await paging.read_page(tx, rows.MINE, query, _to_wire, who=caller.me.account_id)


async def create(caller: Caller, body: OrganisationCreate) -> Organisation:
    """Create an organisation; the caller is its first admin"""
    me = caller.me
    if me.handle is None:
        raise Forbidden("an organisation needs an admin with a handle; choose one first: svc login")
    handle = names.handle(body.handle)
    async with caller.write(f"handle {handle}") as tx:
        await require_few(tx, me.account_id)
        await caller.count_created(tx, "organisations")
        account = await accounts.create(tx, handle, new_account_id(), kind="org")
        now = now_ms()
        await tx.run(rows.ADD, org_id=account.id, account_id=me.account_id, role="admin", created_at=now)
        await audit.record(
            tx, me.account_id, "organisation.create", account.id, account_id=account.id, handle=handle
        )
        return await _read_organisation(tx, caller, account.id)


async def get(caller: Caller, org: str) -> Organisation:
    """An organisation that the caller is a member of"""
    async with caller.read() as tx:
        return _row_to_wire(await member_of(tx, caller, org))


async def update(caller: Caller, org: str, body: OrganisationChange) -> Organisation:
    """Change the handle of an organisation, or the role that all members have in all its repositories"""
    handle = None if body.handle is None else names.handle(body.handle)
    async with caller.read() as tx:
        row = await admin_of(tx, caller, org)
    org_id, former = row.id, row.handle

    async def act(tx: Tx) -> Organisation:
        await admin_again(tx, caller, org_id, org)
        about = (caller.me.account_id, "organisation.update", org_id)
        if handle is not None:
            await accounts.rename(tx, org_id, former, handle)
            await audit.record(tx, *about, account_id=org_id, old=former, new=handle)
        if body.base_role is not None:
            await set_base_role(tx, org_id, body.base_role)
            await audit.record(tx, *about, account_id=org_id, base_role=body.base_role)
        return await _read_organisation(tx, caller, org_id)

    handles = () if handle is None else (f"handle {handle}", f"handle {former}")
    return await write_all(caller, org_id, act, *handles)


async def delete(caller: Caller, org: str) -> None:
    """Delete an organisation that owns nothing

    The handle becomes free again.
    """
    async with caller.read() as tx:
        row = await admin_of(tx, caller, org)
    org_id, handle = row.id, row.handle

    async def act(tx: Tx) -> None:
        await admin_again(tx, caller, org_id, org)
        owned = await tx.value(rows.OWNED_COUNT, of_org=org_id)
        if owned:
            raise OrganisationOwns(
                f"{handle} owns {owned} {'repository' if owned == 1 else 'repositories'}, those that can be "
                f"restored among them; give them away first: svc repo transfer HANDLE -R {handle}/NAME"
            )
        now = now_ms()
        await tx.run(rows.CANCEL_INVITES, of_org=org_id)
        await tx.run(rows.CANCEL_TRANSFERS_TO, of_org=org_id)
        await tx.run(rows.REMOVE_ALL, of_org=org_id)
        await tx.run(rows.DROP_BASE, of_org=org_id)
        await tx.run(rows.DISBAND, of_org=org_id, now=now)
        await audit.record(
            tx, caller.me.account_id, "organisation.delete", org_id, account_id=org_id, handle=handle
        )

    await write_all(caller, org_id, act)


async def member_of(tx: Tx, caller: Caller, org: str) -> OrganisationRow:
    """Find an organisation of the caller. Raises NotFound if the caller is not a member."""
    handle = org.removeprefix("@").lower()
    values = await tx.one(rows.BY_HANDLE, handle=handle, who=caller.me.account_id)
    if values is None:
        raise NotFound
    return rows.to_row(values)


async def admin_of(tx: Tx, caller: Caller, org: str) -> OrganisationRow:
    """Find an organisation that the caller is an admin of. Raises NotFound if the caller is not a member, and
    Forbidden if the caller is a member but no admin."""
    row = await member_of(tx, caller, org)
    if row.role != "admin":
        raise Forbidden(f"this needs an admin of {row.handle}; to see them: svc org member list {row.handle}")
    return row


async def admin_again(tx: Tx, caller: Caller, org_id: str, org: str) -> None:
    """Check inside a write transaction that the caller is still an admin, and that `org` still names this
    organisation. Raises NotFound or Forbidden."""
    if (await admin_of(tx, caller, org)).id != org_id:
        raise NotFound


async def require_few(tx: Tx, who: str, new: int = 1) -> None:
    """Raise Conflict if `new` further organisations would make the account an admin of too many."""
    if await tx.value(rows.ADMINISTERED, who=who) + new > limits.ORGANISATIONS:
        raise Conflict(f"an account is an admin of at most {limits.ORGANISATIONS} organisations")


async def _read_organisation(tx: Tx, caller: Caller, org_id: str) -> Organisation:
    values = await tx.one(rows.BY_ID, of_org=org_id, who=caller.me.account_id)
    if values is None:
        raise NotFound
    return _to_wire(values)


def _to_wire(values: Row) -> Organisation:
    return _row_to_wire(rows.to_row(values))


def _row_to_wire(row: OrganisationRow) -> Organisation:
    return Organisation(
        id=row.id,
        handle=row.handle,
        role=row.role,
        members=row.members,
        created_at=rfc3339(row.created_at),
        base_role=row.base_role or "none",
    )
