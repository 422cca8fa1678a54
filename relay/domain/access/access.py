"""Rules that invitations, requests and transfers share."""

from __future__ import annotations

from typing import Any

from localstore.core.errors import Conflict, Invalid, NotFound
from localstore.core.model import limits
from localstore.core.model.access import (
    AlreadyCollaborator,
    RepoName,
)
from relay.base.clock import now_ms
from relay.caller import Caller
from relay.db import repo as repos
from relay.db.engine.database import Tx
from relay.domain.access import organisation_roles
from relay.domain.access.rows import access as rows
from relay.domain.access.rows.access import RepoOfferRow
from relay.domain.identity.rows import account as accounts
from relay.domain.identity.rows.account import AccountRow


def repo_name_of(row: RepoOfferRow) -> RepoName:
    """Id and full name of the repository that an invitation or a transfer is about."""
    return RepoName(id=row.repo_id, full_name=f"{row.owner_handle}/{row.name}")


async def account_of(tx: Tx, handle: str, pointer: str) -> tuple[str, str]:
    """Find the person with this handle. Returns (id, handle). Raises Invalid if nobody has the handle, or if
    an organisation has it."""
    account = await owner_of(tx, handle, pointer)
    if account.kind == "org":
        raise Invalid(f"{account.handle} is an organisation; name a person", pointer=pointer)
    return account.id, str(account.handle)


async def owner_of(tx: Tx, handle: str, pointer: str) -> AccountRow:
    """The person or organisation with this handle. Raises Invalid if there is none."""
    name = handle.removeprefix("@").lower()
    row = await tx.one(accounts.BY_HANDLE, handle=name)
    if row is None:
        raise Invalid(f"there is no account {name}", pointer=pointer)
    return accounts.to_row(row)


async def add_collaborator(
    tx: Tx, caller: Caller, repo_id: str, account_id: str, role: str, *, on_request: bool = False
) -> None:
    """Give an account a role in a repository, and end its invitations and requests there.

    Call it in a transaction that locks the repository. `on_request`: the account requested the role. Raises
    AlreadyCollaborator if the account has a role other than the base role of an organisation.
    """
    repo_row = await tx.one(repos.ONE, id=repo_id, account=account_id)
    if repo_row is None:
        raise NotFound
    collaborator = await tx.one(rows.COLLABORATOR, of_repo=repo_id, who=account_id)
    has_base_role_only = collaborator is not None and rows.to_collaborator(collaborator).has_base_role_only
    if repos.to_role(repo_row) is not None and not has_base_role_only:
        raise AlreadyCollaborator("this account has a role in the repository already")
    await require_room(tx, repo_id, invites=False)  # the account's own invitation may be one of them
    if has_base_role_only:
        await tx.run(rows.REMOVE, of_repo=repo_id, who=account_id)
    values = {"repo_id": repo_id, "account_id": account_id, "role": role, "created_at": now_ms()}
    await tx.run(rows.ADD, **values)
    role = await organisation_roles.restore_role(tx, repo_id, account_id) or role
    await tx.run(rows.CANCEL_INVITE_OF, of_repo=repo_id, who=account_id)
    await tx.run(rows.DROP_REQUEST, of_repo=repo_id, who=account_id)
    data: dict[str, Any] = {"account": account_id, "role": role, **({"asked": True} if on_request else {})}
    await caller.node.hub.announce(tx, repo_id, "access.grant", audience="owner", **data)


async def require_room(tx: Tx, repo_id: str, *, invites: bool = True) -> None:
    """Raise Conflict if the repository cannot have one more collaborator. With `invites`, open invitations
    count as collaborators too."""
    used = await tx.value(rows.COUNT, of_repo=repo_id)
    used += await tx.value(rows.OPEN_INVITES, of_repo=repo_id, now=now_ms()) if invites else 0
    if used + 1 > limits.COLLABORATORS:
        raise Conflict(f"a repository has at most {limits.COLLABORATORS} collaborators; remove one first")
