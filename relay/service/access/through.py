"""Roles through an organisation: its admins have the role owner in everything that it owns, as rows of
collaborators with their source, so that the one query of the gate sees them. Whoever changes who is an admin,
or what an organisation owns, rewrites these rows in the same transaction, which locks the organisation and
the repositories."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from localstore.core.errors import Conflict
from relay.base.clock import now_ms
from relay.caller import Caller, account_name, repo_name
from relay.db.collaboration import organisation as rows
from relay.db.engine.database import Tx
from relay.events import log

T = TypeVar("T")
TRIES = 10  # times that an organisation may get a repository while its members are locked out


class _Moved(Exception):
    """The organisation has a repository that the transaction does not lock."""


async def write_all(caller: Caller, org_id: str, act: Callable[[Tx], Awaitable[T]], *names: str) -> T:
    """`act` in a transaction that locks the organisation, all its repositories, and `names`."""
    for _ in range(TRIES):
        async with caller.read() as tx:
            known = {str(row[0]) for row in await tx.all(rows.OWNED, of_org=org_id)}
        with contextlib.suppress(_Moved):
            async with caller.write(account_name(org_id), *map(repo_name, known), *names) as tx:
                if not {str(row[0]) for row in await tx.all(rows.OWNED, of_org=org_id)} <= known:
                    raise _Moved
                await caller.recheck(tx)
                return await act(tx)
    raise Conflict("the repositories of this organisation are changing; try again")


async def raise_all(tx: Tx, org_id: str, who: str) -> None:
    """The account becomes an admin: the role owner in every repository of the organisation."""
    values = {"of_org": org_id, "who": who}
    before = {row[0] for row in await tx.all(rows.ROLES, **values)}
    await _run(tx, rows.RAISE, **values, now=now_ms())
    for repo_id, *_ in await tx.all(rows.ROLES, **values):
        kind = "access.change" if repo_id in before else "access.grant"
        await _announce(tx, repo_id, kind, who, "owner")


async def lower_all(tx: Tx, org_id: str, who: str) -> None:
    """The account is not an admin any more: it keeps the roles that were given to it."""
    values = {"of_org": org_id, "who": who}
    before = [row for row in await tx.all(rows.ROLES, **values) if row[2] is not None]
    await _run(tx, rows.LOWER, **values)
    for repo_id, _, _, given in before:
        kind = "access.remove" if given is None else "access.change"
        await _announce(tx, repo_id, kind, who, given)


async def drop_all(tx: Tx, org_id: str, who: str) -> None:
    """The account is not a member any more: it loses every role, invitation and request in the organisation's
    repositories, those that were given to it too."""
    values = {"of_org": org_id, "who": who}
    before = await tx.all(rows.ROLES, **values)
    await _run(tx, rows.DROP, **values)
    for repo_id, *_ in before:
        await _announce(tx, repo_id, "access.remove", who, None)


async def enter(tx: Tx, repo_id: str) -> None:
    """The repository has a new owner: if that is an organisation, its admins get the role."""
    await _run(tx, rows.ENTER, of_repo=repo_id, now=now_ms())


async def leave(tx: Tx, repo_id: str) -> None:
    """The repository gets another owner. Whoever was given a role keeps it."""
    await _run(tx, rows.LEAVE, of_repo=repo_id)


async def is_admin(tx: Tx, org_id: str, who: str) -> bool:
    return await tx.one(rows.IS_ADMIN, of_org=org_id, who=who) is not None


async def acts_for(tx: Tx, owner_id: str, who: str) -> bool:
    """Whether the account is this owner, or an admin of this organisation."""
    return owner_id == who or await is_admin(tx, owner_id, who)


async def _run(tx: Tx, statements: Sequence[Any], **values: Any) -> None:
    for one in statements:
        await tx.run(one, **values)


async def _announce(tx: Tx, repo_id: str, kind: str, who: str, role: str | None) -> None:
    data = {"account": who} if role is None else {"account": who, "role": role}
    await log.append(tx, kind, repo_id=repo_id, audience="owner", data=data)
