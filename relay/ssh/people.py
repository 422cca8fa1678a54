"""Accounts that connect over SSH, and their sessions."""

from __future__ import annotations

from dataclasses import dataclass

from localstore.core.identity.keys import DeviceKey, key_id
from localstore.core.identity.ssh import SessionStart
from localstore.core.model import limits
from relay.base.clock import now_ms, rfc3339
from relay.caller import account_name
from relay.db.engine.database import Author
from relay.db.identity import device_key as device_keys
from relay.db.identity import ssh as rows
from relay.domain.identity import audit
from relay.domain.identity import session as sessions
from relay.domain.identity.rows import account as accounts
from relay.node import Node

CAPS = ("read", "talk")
REVOKED = "this device key was revoked; use another one, or make a new one: svc auth device ssh"
SUSPENDED = "this account is suspended; ask who runs this relay"


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The holder of a registered key. `public`: the public key. `refusal`: the reason why the holder gets no
    session, or ""."""

    account_id: str
    handle: str | None
    public: bytes
    refusal: str

    @property
    def key_id(self) -> str:
        return key_id(self.public)


@dataclass(frozen=True, slots=True)
class Visit:
    """An open session over SSH, with its token and the seed of the key to which the token is bound."""

    person: KeyHolder
    session_id: str
    token: str
    seed: bytes
    expires_at: int

    def welcome(
        self, node: Node, words: list[str], terminal: bool, own_user: bool, signs: bool
    ) -> SessionStart:
        return SessionStart(
            origin=node.config.public_url,
            token=self.token,
            seed=self.seed,
            user_id=self.person.account_id,
            session_id=self.session_id,
            handle=self.person.handle,
            expires_at=rfc3339(self.expires_at),
            agent=self.person.public if signs else b"",
            words=words,
            terminal=terminal,
            own_user=own_user,
        )


async def find(node: Node, public: bytes) -> KeyHolder | None:
    """The holder of a key. Returns None if no account has the key, or if the key works only together with a
    script token."""
    row = await node.db.lookup(rows.KEY, id=key_id(public))
    if row is None:
        return None
    account_id, kind, handle, caps, revoked_at, disabled_at = row
    if kind != "user" or not {"read", "write"} <= set(caps.split()):
        return None
    refusal = REVOKED if revoked_at is not None else SUSPENDED if disabled_at is not None else ""
    return KeyHolder(account_id, handle, public, refusal)


async def is_somebody_else(node: Node, person: KeyHolder, name: str) -> bool:
    """Whether `name`, the user name that the SSH client sent, is the handle of another account."""
    owner = await node.db.lookup(accounts.HANDLE_OWNER, handle=name.lower())
    return owner is not None and owner[0] != person.account_id


async def begin(node: Node, person: KeyHolder, address: str) -> Visit:
    """Start a session of this person. The session's token is bound to a new key, which the relay forgets
    after sending it to the confined process."""
    binding = DeviceKey.generate()
    plan = await sessions.plan_session(
        node,
        person.account_id,
        "ssh",
        f"ssh from {address}"[: limits.LABEL_CHARS],
        now_ms() + limits.CLI_SESSION * 1000,
        bound_key=binding.public,
        caps=CAPS,
    )
    async with node.db.write(account_name(person.account_id)) as tx:
        tx.author = Author(person.account_id, person.key_id)
        await plan.write(tx)
        await tx.run(device_keys.TOUCH, key_id=person.key_id, used_at=now_ms())
        await audit.record(tx, person.account_id, "session.start", plan.id, how="ssh", address=address)
    return Visit(person, plan.id, plan.token, binding.seed, plan.expires_at)


async def end(node: Node, visit: Visit) -> None:
    """End the session, unless it has ended."""
    account_id = visit.person.account_id
    async with node.db.write(account_name(account_id)) as tx:
        tx.author = Author(account_id, visit.person.key_id)
        if await sessions.end(tx, node, account_id, visit.session_id):
            await audit.record(tx, account_id, "session.end", visit.session_id, how="ssh")


async def why_ended(node: Node, visit: Visit) -> str:
    """The reason why this session must end now, or "" if it may continue."""
    row = await node.db.lookup(
        rows.STATE, session_id=visit.session_id, key_id=visit.person.key_id, now=now_ms()
    )
    if row is None:
        return "this session is a day old; connect again"
    session_ended, key_revoked, suspended = row
    if key_revoked is not None:
        return REVOKED
    if suspended is not None:
        return SUSPENDED
    return "this session was revoked" if session_ended is not None else ""
