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
from relay.domain.access import through
from relay.domain.access.access import account_of, require_room
from relay.domain.access.rows import access as rows


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
            await tx.run(rows.SET_INVITED_ROLE, of_id=invited[0], new_role=body.role)
            await view.node.hub.announce(
                tx, view.repo.id, "invite.change", audience="owner", invite=invited[0], role=body.role
            )
            created = rfc3339(invited[11])
            account = to_actor(*invited[4:7])
            return Collaborator(account=account, role=body.role, created_at=created, state="pending")
        if had is not None and had[5] is not None and had[6] is None:  # so far as a member alone
            await require_room(tx, view.repo.id)
        await tx.run(rows.SET_ROLE, **values, new_role=body.role)
        role = await through.restore_role(tx, view.repo.id, who)
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
            await tx.run(rows.END_INVITE, of_id=invited[0], new_state="cancelled")
            await view.node.hub.announce(
                tx, view.repo.id, "invite.cancel", audience="owner", invite=invited[0], account=who
            )
            return
        await _require_own_role(tx, view, who, remove=True)
        await tx.run(rows.REMOVE, of_repo=view.repo.id, who=who)
        role = await through.restore_role(tx, view.repo.id, who)
        about: dict[str, Any] = {"audience": "owner", "account": who}
        if role is None:
            await view.node.hub.announce(tx, view.repo.id, "access.remove", **about)
        else:
            await view.node.hub.announce(tx, view.repo.id, "access.change", **about, role=role)


async def _find_account(tx: Tx, view: View, handle: str) -> tuple[str, Row | None]:
    """Find a collaborator or an invited account of the repository by its handle; "me" means the caller.
    Returns (account id, row of its open invitation); the row is None if the account has a role. Raises
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
    return who, invited


async def _require_own_role(tx: Tx, view: View, who: str, remove: bool = False) -> Row | None:
    """Find the row of the collaborator `who`, whose role may be changed here; None if there is none. Raises
    ThroughOrganisation for an admin of the organisation that owns the repository. If the role is to be
    removed (`remove`), raises it also for a member who has only the base role."""
    row = await tx.one(rows.COLLABORATOR, of_repo=view.repo.id, who=who)
    if row is None or row[5] is None:
        return row
    if row[3] == "owner":
        raise ThroughOrganisation(
            f"@{row[1]} is an admin of {row[5]}, which owns {view.repo.full_name}; that is changed with: "
            f"svc org member role {row[5]} {row[1]} member"
        )
    if remove and row[6] is None:
        raise ThroughOrganisation(
            f"@{row[1]} has the role {row[3]} as every member of {row[5]}; that is changed with: "
            f"svc org edit {row[5]} --base-role none"
        )
    return row


def _to_wire(row: Row) -> Collaborator:
    id, handle, kind, role, created, by_org, _ = row
    account = to_actor(id, handle, kind)
    return Collaborator(account=account, role=role, created_at=rfc3339(created), through=by_org)
