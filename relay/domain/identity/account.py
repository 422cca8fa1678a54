"""Accounts: local sign-up and sign-in, and handles."""

from __future__ import annotations

import unicodedata
from typing import Literal

from localstore.core import names
from localstore.core.errors import Invalid, Unauthorized
from localstore.core.model import limits
from localstore.core.model.auth import Handle, SignUpClosed
from localstore.core.model.repo import NameTaken
from relay.base.clock import now_ms
from relay.base.ids import new_account_id
from relay.caller import Caller
from relay.capacity import quota
from relay.capacity.limiter import Attempts
from relay.db.engine.database import Tx, UniqueViolation
from relay.domain.identity import audit
from relay.domain.identity import session as sessions
from relay.domain.identity.guesses import Guesses, is_known
from relay.domain.identity.rows import account as rows
from relay.domain.identity.rows.account import AccountRow
from relay.domain.identity.session import NewSession

PHASE = "local"  # an account with a password or device key on this node
ASK = (
    "ask its operator for one (relay account add HANDLE), then run: svc login --device-key --handle HANDLE "
    "--pair CODE"
)

Kind = Literal["user", "org"]
_PASSWORDS = Guesses("password", 100, 3600, "passwords")
_PER_ADDRESS = Attempts(
    "password.address", 40, 600, "passwords of a network that are tried, whatever the handles"
)
_SIGN_UPS = Attempts("sign_up.address", 200, 3600, "accounts that a network makes with a password")


async def sign_up(caller: Caller, handle: str, password: str) -> NewSession:
    """Create an account with a password and sign it in. Raises NameTaken, or Invalid for an impossible handle
    or password."""
    config, state = caller.node.config, caller.node.sign_in
    if not config.local_sign_up:
        raise SignUpClosed(f"this node does not offer sign-up by password; {ASK}")
    name = names.handle(handle)
    _check_password(password, name)
    _SIGN_UPS.count(caller.node.limiter, caller.network)
    async with caller.read() as tx:
        await require_free(tx, name)
    password_hash = await state.passwords.hash(password)
    async with caller.write(f"handle {name}") as tx:
        account = await create_counted(tx, caller, name, new_account_id(), password_hash)
        await audit.record(tx, account.id, "account.create", account.id, handle=name, address=caller.address)
    return await sessions.start_browser(caller, account, "password")


async def sign_in(caller: Caller, handle: str, password: str) -> NewSession:
    """Create a browser session for a handle and its password. A wrong password and an unknown handle get the
    same answer and take equally long."""
    state = caller.node.sign_in
    name = handle.strip().lower()[: limits.HANDLE_CHARS]
    _PER_ADDRESS.count(caller.node.limiter, caller.network)
    account, known_network = await _find_by_handle(caller, name)
    _PASSWORDS.count(caller, name, known_network)
    stored = account.password_hash if account else None
    if len(password.encode("utf-8", "replace")) > limits.PASSWORD_BYTES_MAX:
        password = ""
    if not await state.passwords.matches(stored, password) or account is None:
        async with caller.write() as tx:
            of = account.id if account else None
            await audit.record(
                tx, "", "session.refused", name, account_id=of, how="password", address=caller.address
            )
        raise Unauthorized("the handle or the password is wrong")
    _PASSWORDS.give_back(caller, name, known_network)
    _PER_ADDRESS.give_back(caller.node.limiter, caller.network)
    return await sessions.start_browser(caller, account, "password")


async def create_counted(
    tx: Tx,
    caller: Caller,
    handle: str,
    account_id: str,
    password_hash: str | None = None,
    phase: str = PHASE,
) -> AccountRow:
    """Create an account at sign-up. Raises NameTaken, and QuotaExceeded if too many accounts were created
    from the caller's address."""
    caller.node.reserve.require()
    await quota.count_account(tx, caller.network, caller.node.config.quota)
    return await create(tx, handle, account_id, password_hash, phase=phase)


async def create(
    tx: Tx,
    handle: str,
    account_id: str,
    password_hash: str | None = None,
    kind: Kind = "user",
    phase: str = PHASE,
) -> AccountRow:
    """Insert an account of a person or organisation. Raises NameTaken if the handle is not free. `phase`: how
    the account came about, such as `local` (with a password or device key) or `oidc_linked`."""
    await require_free(tx, handle)
    account = AccountRow(account_id, kind, handle, None, None, password_hash, phase)
    try:
        await tx.run(
            rows.INSERT,
            id=account.id,
            kind=account.kind,
            handle=account.handle,
            email=None,
            name=None,
            password_hash=password_hash,
            phase=account.phase,
            operator=False,
            created_at=now_ms(),
            disabled_at=None,
        )
    except UniqueViolation:
        raise _handle_taken(handle) from None
    return account


async def require_free(tx: Tx, handle: str, account_id: str = "") -> None:
    """Raise NameTaken if the handle belongs, or recently belonged, to somebody else."""
    owner = await tx.value(rows.HANDLE_OWNER, handle=handle)
    owner = owner or await tx.value(rows.HANDLE_FORMER_OWNER, handle=handle, now=now_ms())
    if owner not in (None, account_id):
        raise _handle_taken(handle)


async def handle(caller: Caller) -> Handle:
    """The caller's handle"""
    me = caller.me
    return Handle(handle=me.handle, user_id=me.account_id)


async def change_handle(caller: Caller, body: str) -> Handle:
    """Change the caller's handle

    Repositories stay reachable under the old handle for 90 days, during which nobody else may take it.
    """
    me, name = caller.me, names.handle(body)
    if name == me.handle:
        return Handle(handle=name, user_id=me.account_id)
    async with caller.write(f"handle {name}", f"handle {me.handle}") as tx:
        await rename(tx, me.account_id, me.handle, name)
        await audit.record(tx, me.account_id, "account.rename", me.account_id, old=me.handle, new=name)
    return Handle(handle=name, user_id=me.account_id)


async def rename(tx: Tx, account_id: str, old_handle: str | None, handle: str) -> None:
    """Give a person or organisation another handle. Repositories stay reachable under the old one. Raises
    NameTaken."""
    await require_free(tx, handle, account_id)
    try:
        await tx.run(rows.SET_HANDLE, account_id=account_id, new_handle=handle)
    except UniqueViolation:
        raise _handle_taken(handle) from None
    await tx.run(rows.DROP_ALIASES, handle=handle)
    if old_handle is not None:
        await _leave_aliases(tx, account_id, old_handle)


async def _leave_aliases(tx: Tx, account_id: str, old_handle: str) -> None:
    until = now_ms() + limits.HANDLE_RESERVED * 1000
    owned = await tx.all(rows.OWNED_REPOS, account_id=account_id)
    for _, name in owned:
        await tx.run(rows.DROP_ALIAS, handle=old_handle, name=name)
    await tx.many(
        rows.INSERT_ALIAS,
        [{"owner": old_handle, "name": name, "repo_id": repo, "expires_at": until} for repo, name in owned],
    )


async def _find_by_handle(caller: Caller, name: str) -> tuple[AccountRow | None, bool]:
    """Find the account with this handle. Returns (account, whether it signed in from the caller's network
    recently). A network is an address range."""
    async with caller.read() as tx:
        row = await tx.one(rows.BY_HANDLE, handle=name)
        known_network = await is_known(tx, caller, name)
    return rows.to_row(row) if row else None, known_network


def _check_password(password: str, handle: str) -> None:
    if len(password) < limits.PASSWORD_CHARS_MIN:
        raise Invalid(f"a password has at least {limits.PASSWORD_CHARS_MIN} characters", pointer="/password")
    if len(password.encode("utf-8", "replace")) > limits.PASSWORD_BYTES_MAX:
        raise Invalid(f"a password has at most {limits.PASSWORD_BYTES_MAX} bytes", pointer="/password")
    if len(set(unicodedata.normalize("NFKC", password))) < 3 or handle in password.lower():
        raise Invalid("this password is too easy to guess; choose another", pointer="/password")


def _handle_taken(handle: str) -> NameTaken:
    return NameTaken(f"the handle {handle} is taken; choose another")
