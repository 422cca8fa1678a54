"""Roles through an organisation. Its admins have the role owner in all of its repositories, and its members
have its base role.

These roles are stored as rows of collaborators, so that the gate finds them with its single query. Code that
changes the admins, the base role or the repositories of an organisation rewrites these rows in the same
transaction. The transaction locks the organisation and its repositories.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from localstore.core.errors import Conflict
from localstore.core.model import limits
from relay.base.clock import now_ms
from relay.caller import Caller, account_name, repo_name
from relay.db.engine.database import Tx
from relay.domain.access.rows import access
from relay.domain.access.rows import organisation as rows
from relay.domain.access.rows import organisation_roles as roles
from relay.domain.access.rows.organisation_roles import HeldRow
from relay.events import log

T = TypeVar("T")
TRIES = 10  # times that an organisation may get a repository while its members are locked out


class _NewRepository(Exception):
    """Raised if the organisation owns a repository that the transaction has not locked."""


async def write_all(caller: Caller, org_id: str, act: Callable[[Tx], Awaitable[T]], *names: str) -> T:
    """Run `act` in a transaction that locks the organisation, all its repositories and `names`, which are
    further names to lock (see `Database.write`). If the organisation gets another repository meanwhile, tries
    again. Raises Conflict after TRIES attempts."""
    for _ in range(TRIES):
        async with caller.read() as tx:
            locked = {str(row[0]) for row in await tx.all(rows.OWNED, of_org=org_id)}
        with contextlib.suppress(_NewRepository):
            async with caller.write(account_name(org_id), *map(repo_name, locked), *names) as tx:
                if not {str(row[0]) for row in await tx.all(rows.OWNED, of_org=org_id)} <= locked:
                    raise _NewRepository
                return await act(tx)
    raise Conflict("the repositories of this organisation are changing; try again")


async def grant_roles(tx: Tx, org_id: str, who: str) -> None:
    """Give a new admin or member of an organisation the roles that admins or members have in its
    repositories, and write the events."""
    values = {"of_org": org_id, "who": who}
    before = {repo_id: role for repo_id, role, *_ in await tx.all(roles.ROLES, **values)}
    await _run_all(tx, roles.RAISE, **values, now=now_ms())
    for repo_id, role, *_ in await tx.all(roles.ROLES, **values):
        if role != before.get(repo_id):
            kind = "access.change" if repo_id in before else "access.grant"
            await _announce(tx, repo_id, kind, who, role)


async def withdraw_admin_roles(tx: Tx, org_id: str, who: str) -> None:
    """Remove the roles that an account had as an admin of the organisation, and write the events. The account
    keeps the base role, and roles that were given to it."""
    values = {"of_org": org_id, "who": who}
    through_org = [repo_id for repo_id, _, by, _ in await tx.all(roles.ROLES, **values) if by is not None]
    await _run_all(tx, roles.LOWER, **values)
    await _run_all(tx, roles.RAISE, **values, now=now_ms())
    after = {repo_id: role for repo_id, role, *_ in await tx.all(roles.ROLES, **values)}
    for repo_id in through_org:
        kind = "access.change" if repo_id in after else "access.remove"
        await _announce(tx, repo_id, kind, who, after.get(repo_id))


async def set_base_role(tx: Tx, org_id: str, role: str) -> None:
    """Set the base role of an organisation; "none" removes it. Raises Conflict if the number of members
    multiplied by the number of repositories is too large."""
    rows_needed = await tx.value(rows.COUNT, of_org=org_id) * await tx.value(rows.OWNED_COUNT, of_org=org_id)
    if role != "none" and rows_needed > limits.BASE_ROLES:
        raise Conflict(
            f"members times repositories are more than {limits.BASE_ROLES} here, too many for a role of all "
            "members; give roles in its repositories instead"
        )
    before = await _find_all_roles(tx, org_id)
    await _run_all(tx, roles.LOWER_ALL, of_org=org_id)
    if role == "none":
        await tx.run(rows.DROP_BASE, of_org=org_id)
    else:
        await tx.run(rows.SET_BASE, org_id=org_id, role=role)
    await _run_all(tx, roles.RAISE_ALL, of_org=org_id, now=now_ms())
    after = await _find_all_roles(tx, org_id)
    for pair in sorted(before.keys() | after.keys()):
        # Who has no role through the organisation has the role that was given to the account itself, if any.
        had = before[pair].role if pair in before else after[pair].given
        has = after[pair].role if pair in after else before[pair].given
        if has != had:
            kind = "access.remove" if has is None else "access.grant" if had is None else "access.change"
            repo_id, who = pair
            await _announce(tx, repo_id, kind, who, has)


async def _find_all_roles(tx: Tx, org_id: str) -> dict[tuple[str, str], HeldRow]:
    """The roles that accounts have through the organisation, by (repository id, account id)."""
    held = [roles.to_held(values) for values in await tx.all(roles.HELD, of_org=org_id)]
    return {(row.repo_id, row.account_id): row for row in held}


async def restore_role(tx: Tx, repo_id: str, who: str) -> str | None:
    """Give back to an account its role through the organisation, if it is higher than the role that the
    account was given itself. Call it after the account's row of collaborators was changed or deleted. Returns
    the role that applies now, or None."""
    values = {"of_repo": repo_id, "who": who}
    await tx.run(roles.NOT_BY_ORG, **values)
    await _run_all(tx, roles.LIFT, **values, now=now_ms())
    row = await tx.one(access.COLLABORATOR, **values)
    return access.to_collaborator(row).role if row else None


async def remove_all_roles(tx: Tx, org_id: str, who: str) -> None:
    """Remove every role, invitation and request that a former member has in the organisation's repositories.
    This includes roles that were given to the member personally."""
    values = {"of_org": org_id, "who": who}
    before = await tx.all(roles.ROLES, **values)
    await _run_all(tx, roles.DROP, **values)
    for repo_id, *_ in before:
        await _announce(tx, repo_id, "access.remove", who, None)


async def grant_roles_to_members(tx: Tx, repo_id: str) -> None:
    """If the repository's new owner is an organisation, give its members their roles."""
    await _run_all(tx, roles.ENTER, of_repo=repo_id, now=now_ms())


async def withdraw_roles_of_members(tx: Tx, repo_id: str) -> None:
    """Remove the roles that accounts have through the organisation that gives the repository away. Roles that
    were given to an account itself stay."""
    await _run_all(tx, roles.LEAVE, of_repo=repo_id)


async def is_admin(tx: Tx, org_id: str, who: str) -> bool:
    return await tx.one(rows.IS_ADMIN, of_org=org_id, who=who) is not None


async def acts_for(tx: Tx, owner_id: str, who: str) -> bool:
    """Whether the account `who` is `owner_id`, or an admin of the organisation `owner_id`."""
    return owner_id == who or await is_admin(tx, owner_id, who)


async def _run_all(tx: Tx, statements: Sequence[Any], **values: Any) -> None:
    for statement in statements:
        await tx.run(statement, **values)


async def _announce(tx: Tx, repo_id: str, kind: str, who: str, role: str | None) -> None:
    data = {"account": who} if role is None else {"account": who, "role": role}
    await log.append(tx, kind, repo_id=repo_id, audience="owner", data=data)
