"""The operator's commands on repositories and accounts, which work while a relay runs."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from localstore.core import names
from localstore.core.errors import Conflict, NotFound
from localstore.core.identity import device_grant
from relay import migrations
from relay.base.clock import now_ms, rfc3339, rfc3339_or_none
from relay.base.ids import new_account_id
from relay.caller import repo_name
from relay.capacity.quota import What
from relay.db import operator as rows
from relay.db.engine import connect
from relay.db.engine.database import Author, Database
from relay.db.identity import device_key
from relay.db.storage import usage
from relay.db.storage.usage import UsageRow
from relay.domain.identity import account as accounts
from relay.domain.identity import audit
from relay.domain.identity.audit import OPERATOR
from relay.events import log

LISTED = 1000  # accounts, highest usage first
HOUR = 3600_000  # milliseconds
TAKEN_OFF = {"suspend": "suspended", "kill": "killed"}


async def set_state(url: str, full_name: str, action: str) -> str:
    """Apply `action` to a repository: suspend, resume or kill it. Returns the new state, which takes effect
    with the next request, because the gate reads the state each time. Raises NotFound for an unknown
    repository, and Conflict if its present state does not allow the action."""
    async with _open_database(url) as db:
        return await _set_state(db, full_name, action)


async def add_account(url: str, handle: str, hours: int) -> str:
    """Create an account without keys or password. Returns the pairing code for its first device, valid for
    `hours`. Raises NameTaken, or Invalid for an impossible handle."""
    name = names.handle(handle)
    code, now = device_grant.new_pairing_code(), now_ms()
    async with _open_database(url) as db, db.write(f"handle {name}") as tx:
        account = await accounts.create(tx, name, new_account_id())
        await tx.run(
            device_key.INSERT_PAIRING,
            hash=hashlib.sha256(code.encode("ascii")).digest(),
            account_id=account.id,
            expires_at=now + hours * HOUR,
            used_at=None,
        )
        await audit.record(tx, OPERATOR, "account.create", account.id, account_id=account.id, handle=name)
    return code


async def suspend_account(url: str, handle: str, suspend: bool) -> None:
    """Suspend a person's account, or resume it if not `suspend`. This takes effect with the next request;
    open sockets end within seconds. Raises NotFound for an unknown handle, and Conflict if the account is in
    that state already."""
    async with _open_database(url) as db, db.write(f"handle {handle}") as tx:
        row = await tx.one(rows.DISABLED_AT, of_handle=handle)
        if row is None:
            raise NotFound(f"there is no account {handle} of a person")
        account_id, disabled_at = row
        if (disabled_at is not None) == suspend:
            raise Conflict(f"{handle} is {'suspended already' if suspend else 'not suspended'}")
        await tx.run(rows.SET_DISABLED, of_handle=handle, at=now_ms() if suspend else None)
        action = "account.suspend" if suspend else "account.resume"
        await audit.record(tx, OPERATOR, action, account_id, account_id=account_id)


class ListedAccount(msgspec.Struct, frozen=True):
    """An account in the operator's list. `account`: its handle, or the id of a guest. `last_sign_in`: the
    latest known sign-in or use of a key. `bytes`: size of its repositories, including deleted ones."""

    account: str
    kind: str
    state: str
    created_at: str
    last_sign_in: str | None
    bytes: int
    repositories: int


async def list_accounts(
    url: str, kind: str | None, after: str | None, limit: int
) -> tuple[list[ListedAccount], str | None]:
    """List one page of the accounts, in the order of names. `after`: the name after which the page begins.
    `kind`: list only accounts of this kind. Returns (the page, the value of `after` for the next page or None
    on the last one)."""
    keyset = rows.ACCOUNTS if kind is None else rows.ACCOUNTS_OF_KIND
    values: dict[str, Any] = {"limit": limit + 1} | ({} if kind is None else {"of_kind": kind})
    async with _open_database(url) as db, db.read() as tx:
        if after is None:
            rows_read = await tx.all(keyset.first, **values)
        else:
            rows_read = await tx.all(keyset.next, **values, **dict(zip(keyset.names, [after], strict=True)))
        page = rows_read[:limit]
        ids = [row[1] for row in page]
        seen: dict[str, int] = {}
        for statement in rows.SIGNED_IN:
            for account_id, at in await tx.all(statement, accounts=ids):
                seen[account_id] = max(at or 0, seen.get(account_id, 0))
        used = {row[0]: row[1:] for row in await tx.all(rows.USED, accounts=ids)}
    listed = [
        ListedAccount(
            name,
            kind_of,
            "active" if disabled_at is None else "suspended",
            rfc3339(created_at),
            rfc3339_or_none(seen.get(account_id) or None),
            *used.get(account_id, (0, 0)),
        )
        for name, account_id, kind_of, created_at, disabled_at in page
    ]
    return listed, listed[-1].account if len(rows_read) > limit else None


async def list_usages(url: str, handle: str | None) -> list[tuple[str, UsageRow]]:
    """The usage of the account `handle`; without a handle the usage of all accounts, highest first. Raises
    NotFound for an unknown handle."""
    async with _open_database(url) as db, db.read() as tx:
        if handle is None:
            listed = await tx.all(usage.LISTED, limit=LISTED)
            return [(str(row[0]), usage.to_row(row[1:])) for row in listed]
        account_id = await tx.value(usage.ACCOUNT_ID, handle=handle)
        if account_id is None:
            raise NotFound(f"there is no account {handle}")
        row = await tx.one(usage.ONE, of_account=account_id)
    return [(handle, usage.to_row(row or [*usage.unused_row(account_id).values()]))]


async def set_limits(url: str, handle: str, limits: Mapping[What, int | None]) -> None:
    """Set limits for one account. A limit of None means that of the node. Content that already exceeds a
    limit stays stored."""
    async with _open_database(url) as db, db.write() as tx:
        account_id = await tx.value(usage.ACCOUNT_ID, handle=handle)
        if account_id is None:
            raise NotFound(f"there is no account {handle}")
        await tx.many(usage.ENSURE_ACCOUNT, [usage.unused_row(account_id)])
        row = await tx.one(usage.ONE, of_account=account_id)
        assert row is not None  # noqa: S101  # it was made
        used = usage.to_row(row)
        whats: tuple[What, ...] = ("bytes", "objects", "repositories")
        new_limits = {what: limits.get(what, getattr(used, f"max_{what}")) for what in whats}
        await tx.run(
            usage.SET_LIMITS, of_account=account_id, **{f"new_{k}": n for k, n in new_limits.items()}
        )
        await audit.record(tx, OPERATOR, "account.quota", account_id, account_id=account_id, **new_limits)


@contextlib.asynccontextmanager
async def _open_database(url: str) -> AsyncIterator[Database]:
    await asyncio.to_thread(migrations.check, url)
    db = connect.make_database(url)
    try:
        await db.open()
        yield db
    finally:
        await db.close()


async def _set_state(db: Database, full_name: str, action: str) -> str:
    owner, _, name = full_name.partition("/")
    async with db.read() as tx:
        repo_id = await tx.value(rows.STATE, owner=owner, name=name)
    if repo_id is None:
        raise NotFound(f"there is no repository {full_name}")
    async with db.write(repo_name(repo_id)) as tx:
        row = await tx.one(rows.STATE, owner=owner, name=name)
        if row is None or row[0] != repo_id:
            raise Conflict(f"{full_name} was renamed just now; try again")
        _, state, resume = row
        if action == "resume":
            if state not in TAKEN_OFF.values():
                raise Conflict(f"{full_name} is {state}; there is nothing to resume")
            state, resume = resume or "active", None
        elif state == TAKEN_OFF[action]:
            raise Conflict(f"{full_name} is {state} already")
        else:
            resume = resume if state in TAKEN_OFF.values() else state
            state = TAKEN_OFF[action]
        now = now_ms()
        await tx.run(rows.SET_STATE, repo_id=repo_id, new_state=state, resume=resume, now=now)
        by = Author(OPERATOR)
        await log.append(tx, f"repo.{action}", repo_id=repo_id, author=by, data={"state": state})
    return str(state)
