"""What invitations, requests and transfers have in common."""

from __future__ import annotations

from typing import Any

from localstore.core import limits
from localstore.core.errors import Conflict, Invalid, NotFound
from localstore.core.model.collaboration.access import (
    AlreadyCollaborator,
    AlreadyDecided,
    InviteExpired,
    RepoName,
)
from relay.base.clock import now_ms
from relay.caller import Caller
from relay.db import repo as repos
from relay.db.engine.database import Row, Tx
from relay.domain.access import through
from relay.domain.access.rows import access as rows
from relay.domain.identity.rows import account as accounts
from relay.domain.identity.rows.account import AccountRow

OFFER_MS = limits.OFFER * 1000


def repo_name_of(found: Row) -> RepoName:
    """The repository of a row of invitations or transfers."""
    return RepoName(id=found[1], full_name=f"{found[2]}/{found[3]}")


async def account_of(tx: Tx, handle: str, pointer: str) -> tuple[str, str]:
    """Id and handle of the person that somebody typed. Raises Invalid if there is none, or it is an
    organisation."""
    found = await owner_of(tx, handle, pointer)
    if found.kind == "org":
        raise Invalid(f"{found.handle} is an organisation; name a person", pointer=pointer)
    return found.id, str(found.handle)


async def owner_of(tx: Tx, handle: str, pointer: str) -> AccountRow:
    """The person or organisation that somebody typed. Raises Invalid if there is none."""
    wanted = handle.removeprefix("@").lower()
    found = await tx.one(accounts.BY_HANDLE, handle=wanted)
    if found is None:
        raise Invalid(f"there is no account {wanted}", pointer=pointer)
    return accounts.row(found)


def require_pending(state: str, what: str) -> None:
    """AlreadyDecided or InviteExpired unless it still waits for an answer."""
    if state == "expired":
        raise InviteExpired(f"this {what} was not answered in {limits.OFFER // 86400} days and has expired")
    if state != "pending":
        raise AlreadyDecided(f"this {what} was {state} before")


async def add_collaborator(
    tx: Tx, caller: Caller, repo_id: str, account_id: str, role: str, *, asked: bool = False
) -> None:
    """Give an account a role in a repository that the transaction names, and end what it was offered or has
    asked for there. `asked`: because it asked. AlreadyCollaborator for whoever has one."""
    owner = await tx.one(repos.ONE, id=repo_id, account=account_id)
    if owner is None:
        raise NotFound
    had = await tx.one(rows.COLLABORATOR, of_repo=repo_id, who=account_id)
    by_org = had is not None and had[3] != "owner" and had[5] is not None and had[6] is None
    if repos.role(owner) is not None and not by_org:
        raise AlreadyCollaborator("this account has a role in the repository already")
    await require_room(tx, repo_id, 0)
    if by_org:
        await tx.run(rows.REMOVE, of_repo=repo_id, who=account_id)
    values = {"repo_id": repo_id, "account_id": account_id, "role": role, "created_at": now_ms()}
    await tx.run(rows.ADD, **values)
    role = await through.given(tx, repo_id, account_id) or role
    await tx.run(rows.CANCEL_INVITE_OF, of_repo=repo_id, who=account_id)
    await tx.run(rows.DROP_REQUEST, of_repo=repo_id, who=account_id)
    data: dict[str, Any] = {"account": account_id, "role": role, **({"asked": True} if asked else {})}
    await caller.node.hub.announce(tx, repo_id, "access.grant", audience="owner", **data)


async def require_room(tx: Tx, repo_id: str, more: int = 1) -> None:
    """Raise Conflict if the repository has as many collaborators, with those invited, as it may."""
    there = await tx.value(rows.COUNT, of_repo=repo_id)
    there += await tx.value(rows.OPEN_INVITES, of_repo=repo_id, now=now_ms()) if more else 0
    if there + more > limits.COLLABORATORS:
        raise Conflict(f"a repository has at most {limits.COLLABORATORS} collaborators; remove one first")
