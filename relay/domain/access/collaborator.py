"""Rules of collaborators. Roles are given by invitation; the owner changes and removes them. A member of the
organisation that owns the repository has a role through the organisation.
"""

from __future__ import annotations

from typing import Any

from localstore.core.errors import NotFound
from localstore.core.model.access import Collaborator, RoleChange
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.organisation import ThroughOrganisation
from relay.base.actors import to_actor
from relay.base.clock import now_ms, rfc3339
from relay.caller import View
from relay.db import paging
from relay.db.engine.database import Row, Tx
from relay.domain.access import organisation_roles
from relay.domain.access.access import account_of, require_room
from relay.domain.access.rows import access as rows
from relay.domain.access.rows.access import CollaboratorRow, InviteRow


async def page(view: View, query: PageQuery) -> Page[Collaborator]:
    """Collaborators and their roles, without the owner

    Ordered by the creation time of their accounts.
    """
    async with view.read() as tx:
        return await paging.read_page(tx, rows.COLLABORATORS, query, _to_wire, of_repo=view.repo.id)


async def set_role(view: View, handle: str, body: RoleChange) -> Collaborator:
    """Change a collaborator's role, or the role of an open invitation"""
    async with view.write() as tx:
        who, invited = await _find_account(tx, view, handle)
        values = {"of_repo": view.repo.id, "who": who}
        had = await _require_own_role(tx, view, who)
        if invited is not None:
            await tx.run(rows.SET_INVITED_ROLE, of_id=invited.id, new_role=body.role)
            await view.node.hub.announce(
                tx, view.repo.id, "invite.change", audience="owner", invite=invited.id, role=body.role
            )
            created = rfc3339(invited.created_at)
            return Collaborator(account=invited.account, role=body.role, created_at=created, state="pending")
        if had is not None and had.has_base_role_only:
            await require_room(tx, view.repo.id)
        await tx.run(rows.SET_ROLE, **values, new_role=body.role)
        role = await organisation_roles.restore_role(tx, view.repo.id, who)
        await view.node.hub.announce(
            tx, view.repo.id, "access.change", audience="owner", account=who, role=role
        )
        row = await tx.one(rows.COLLABORATOR, **values)
        if row is None:
            raise NotFound
        return _to_wire(row)


async def remove(view: View, handle: str) -> None:
    """Remove a collaborator or an invitation; anybody may remove themselves"""
    async with view.write() as tx:
        who, invited = await _find_account(tx, view, handle)
        view.require_author(who)
        if invited is not None:
            await tx.run(rows.END_INVITE, of_id=invited.id, new_state="cancelled")
            await view.node.hub.announce(
                tx, view.repo.id, "invite.cancel", audience="owner", invite=invited.id, account=who
            )
            return
        await _require_own_role(tx, view, who, remove=True)
        await tx.run(rows.REMOVE, of_repo=view.repo.id, who=who)
        role = await organisation_roles.restore_role(tx, view.repo.id, who)
        about: dict[str, Any] = {"audience": "owner", "account": who}
        if role is None:
            await view.node.hub.announce(tx, view.repo.id, "access.remove", **about)
        else:
            await view.node.hub.announce(tx, view.repo.id, "access.change", **about, role=role)


async def _find_account(tx: Tx, view: View, handle: str) -> tuple[str, InviteRow | None]:
    """Find a collaborator or an invited account of the repository by its handle; "me" means the caller.
    Returns (account id, its open invitation); the invitation is None if the account has a role. Raises
    NotFound if it has neither a role nor an invitation. Raises Forbidden if the caller may not change other
    people's roles; this right is not needed to find the caller's own role."""
    if handle.removeprefix("@").lower() in ("me", view.me.handle):
        who = view.me.account_id
    else:
        view.require_author("")  # somebody else's is the owner's to change
        who, _ = await account_of(tx, handle, "/handle")
    values = {"of_repo": view.repo.id, "who": who}
    if await tx.one(rows.COLLABORATOR, **values) is not None:
        return who, None
    view.require_author("")
    invited = await tx.one(rows.OPEN_INVITE, **values, now=now_ms())
    if invited is None:
        raise NotFound
    return who, rows.to_invite(invited)


async def _require_own_role(tx: Tx, view: View, who: str, remove: bool = False) -> CollaboratorRow | None:
    """Find the collaborator `who`, whose role may be changed here; None if there is none. Raises
    ThroughOrganisation for an admin of the organisation that owns the repository. If the role is to be
    removed (`remove`), raises it also for a member who has only the base role."""
    values = await tx.one(rows.COLLABORATOR, of_repo=view.repo.id, who=who)
    if values is None:
        return None
    row = rows.to_collaborator(values)
    if row.org_handle is None:
        return row
    if row.role == "owner":
        raise ThroughOrganisation(
            f"@{row.handle} is an admin of {row.org_handle}, which owns {view.repo.full_name}; "
            f"that is changed with: svc org member role {row.org_handle} {row.handle} member"
        )
    if remove and row.given is None:
        raise ThroughOrganisation(
            f"@{row.handle} has the role {row.role} as every member of {row.org_handle}; "
            f"that is changed with: svc org edit {row.org_handle} --base-role none"
        )
    return row


def _to_wire(values: Row) -> Collaborator:
    row = rows.to_collaborator(values)
    account = to_actor(row.account_id, row.handle, row.kind)
    created = rfc3339(row.created_at)
    return Collaborator(account=account, role=row.role, created_at=created, through=row.org_handle)
