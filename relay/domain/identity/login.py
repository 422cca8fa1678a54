"""Sign-in by an identity provider.

    browser ─ begin ─► provider ─► finish ─► session
                                      └────► choose_handle ─► session     (a new person)

The data of one sign-in is in a database row, which a cookie of the browser names. The provider must send back
the state of this row, so that nobody can finish a sign-in that somebody else began. The row can be used once.
A person is identified by issuer and subject, never by an e-mail address.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from localstore.core import names
from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import BadRequest, Invalid, NotFound, Unauthorized
from localstore.core.model.auth import IdentityLevel, LastWayIn, LoginTaken, SignUpClosed, StateInvalid
from localstore.core.model.limits import OIDC_SIGN_IN
from localstore.core.model.repo import NameTaken
from relay.base.clock import now_ms, rfc3339, rfc3339_or_none
from relay.base.ids import new_account_id
from relay.base.providers import Provider
from relay.caller import Caller, account_name
from relay.capacity.limiter import Attempts
from relay.db.engine.database import Tx, UniqueViolation
from relay.db.identity import session as session_rows
from relay.domain.identity import account as accounts
from relay.domain.identity import audit
from relay.domain.identity import session as sessions
from relay.domain.identity.rows import account as account_rows
from relay.domain.identity.rows import login as rows
from relay.domain.identity.rows.login import FlowRow
from relay.domain.identity.session import NewSession
from relay.outbound.identity_provider import ConfirmedPerson

PHASE = "oidc_linked"
SECRET_BYTES = 32
STATE_CHARS = 200  # of what comes back: longer is none of ours
CODE_CHARS = 4096

_BEGUN = Attempts("login.address", 60, 600, "sign-ins by a provider that a network begins")
_FINISHED = Attempts("login.finish.address", 60, 600, "sign-ins by a provider that a network ends")
_SIGN_UPS = Attempts("login.sign_up.address", 60, 3600, "accounts that a network makes by a provider")


@dataclass(frozen=True, slots=True)
class BegunSignIn:
    """A sign-in that has begun. `location`: the address to which the browser is sent. `flow`: the content of
    the cookie that the browser sends when it comes back."""

    location: str
    flow: str


@dataclass(frozen=True, slots=True)
class SignInOutcome:
    """The result of a sign-in. `session`: the new session, if the person is signed in now. `flow`: the new
    content of the cookie, if the person is new and must choose a handle first. Both are None if a provider
    was linked to an account."""

    return_to: str
    session: NewSession | None = None
    flow: str | None = None


@dataclass(frozen=True, slots=True)
class SignInWay:
    """An identity provider that an account uses to sign in. Its times are in RFC 3339."""

    provider: str
    label: str
    since: str
    last_used_at: str | None


@dataclass(frozen=True, slots=True)
class SignInWays:
    """All ways to sign in to an account. `unlinked`: providers of this node that are not linked to it."""

    password: bool
    device_keys: int
    providers: list[SignInWay]
    unlinked: list[Provider]


async def begin(caller: Caller, name: str, return_to: str, *, link: bool = False) -> BegunSignIn:
    """Start a sign-in by the provider `name`. `link`: link the provider to the signed-in account, which can
    use it to sign in from then on. Raises BadRequest for a provider that the node does not have, and
    Unavailable if the provider does not answer."""
    provider = _find_provider(caller, name)
    account = None
    if link:
        if caller.me.is_guest:
            raise IdentityLevel("a guest has no account that a provider could lead to; sign in with one")
        account = caller.me.account_id
    _BEGUN.count(caller.node.limiter, caller.network)
    state, nonce, verifier = _random_text(), _random_text(), _random_text()
    redirect_uri = _redirect_uri(caller, provider)
    location = await caller.node.providers.start(provider, redirect_uri, state, nonce, verifier)
    row = FlowRow(
        provider.name,
        _hash_text(state),
        nonce,
        verifier,
        return_to,
        account,
        None,
        None,
        None,
        now_ms() + OIDC_SIGN_IN * 1000,
    )
    return BegunSignIn(location, await _store(caller, row))


async def use_up(caller: Caller, flow: str | None) -> FlowRow:
    """Delete the row of the sign-in that this browser began, and return it. A row works once. Raises
    StateInvalid if there is none."""
    _FINISHED.count(caller.node.limiter, caller.network)
    async with caller.node.db.write() as tx:
        columns = await tx.one(rows.TAKE_FLOW, flow=_flow_hash(flow))
    row = None if columns is None else rows.flow_row(columns)
    if row is None or row.expires_at <= now_ms():
        raise _state_invalid()
    return row


async def finish(
    caller: Caller, row: FlowRow, path: str, state: str, code: str, issuer: str | None
) -> SignInOutcome:
    """Finish a sign-in with the answer that the provider sent to `path`. `row`: the stored data of the
    sign-in that this browser began. Raises StateInvalid if the answer belongs to another sign-in,
    Unauthorized if the provider confirms no person, and Unavailable if the provider does not answer."""
    if row.subject is not None or not secrets.compare_digest(row.state_hash, _hash_text(state[:STATE_CHARS])):
        raise _state_invalid()
    provider = caller.node.providers.find(row.provider)
    if provider is None or path != provider.callback or not 0 < len(code) <= CODE_CHARS:
        raise _state_invalid()
    if row.link_account is not None and (
        caller.principal is None or caller.principal.account_id != row.link_account
    ):
        raise _state_invalid()
    person = await caller.node.providers.redeem(
        provider, _redirect_uri(caller, provider), code, row.nonce, row.verifier, issuer
    )
    if row.link_account is not None:
        await _link(caller, provider, person)
        return SignInOutcome(row.return_to)
    async with caller.read() as tx:
        account_id = await tx.value(rows.OF_PERSON, issuer=person.issuer, subject=person.subject)
        account = None if account_id is None else await tx.one(account_rows.BY_ID, id=account_id)
    if account_id is None:
        return SignInOutcome(row.return_to, flow=await _keep_person(caller, row, person))
    if account is None:
        raise Unauthorized(
            f"the account that {provider.label} leads to is suspended; ask the operator of this node"
        )

    async def still_leads_there(tx: Tx) -> None:
        still = await tx.run(
            rows.TOUCH,
            of_account=account_id,
            of_issuer=person.issuer,
            of_subject=person.subject,
            of_provider=provider.name,
            now=now_ms(),
        )
        if not still:
            raise Unauthorized(f"{provider.label} has just been unlinked from this account")

    session = await sessions.start_browser(
        caller, account_rows.to_row(account), provider.name, still_leads_there
    )
    return SignInOutcome(row.return_to, session)


async def find_arriving(caller: Caller, flow: str | None) -> FlowRow:
    """Find the unfinished sign-in of a person who has to choose a handle. Raises StateInvalid if there is
    none."""
    async with caller.read() as tx:
        columns = await tx.one(rows.FLOW, flow=_flow_hash(flow))
    row = None if columns is None else rows.flow_row(columns)
    if row is None or row.subject is None or row.expires_at <= now_ms():
        raise _state_invalid()
    return row


async def choose_handle(caller: Caller, flow: str | None, handle: str) -> SignInOutcome:
    """Create the account of a person who signs in by a provider for the first time, and sign it in. After
    NameTaken or Invalid, the person may try another handle."""
    row = await find_arriving(caller, flow)
    if not caller.node.config.oidc_sign_up:
        raise _to_sign_up_closed(caller, row.provider)
    name = names.handle(handle)
    _SIGN_UPS.count(caller.node.limiter, caller.network)
    async with caller.write(f"handle {name}") as tx:
        taken = await tx.one(rows.TAKE_FLOW, flow=_flow_hash(flow))
        if taken is None:
            raise _state_invalid()
        account = await accounts.create_counted(tx, caller, name, new_account_id(), phase=PHASE)
        await _insert(tx, account.id, row.provider, row.issuer or "", row.subject or "")
        await audit.record(
            tx,
            account.id,
            "account.create",
            account.id,
            handle=name,
            how=row.provider,
            address=caller.address,
        )
    return SignInOutcome(row.return_to, await sessions.start_browser(caller, account, row.provider))


async def list_ways(caller: Caller) -> SignInWays:
    """All ways to sign in to the caller's account."""
    account = caller.me.account_id
    async with caller.read() as tx:
        password = bool(await tx.value(rows.HAS_PASSWORD, account=account))
        device_keys = await tx.value(rows.DEVICE_KEYS, account=account)
        logins = await tx.all(rows.OF_ACCOUNT, account=account)
    linked = [
        SignInWay(provider, label_of(caller, provider), rfc3339(since), rfc3339_or_none(used))
        for provider, since, used in logins
    ]
    names_of_linked = {way.provider for way in linked}
    unlinked = [provider for provider in caller.node.providers.all if provider.name not in names_of_linked]
    return SignInWays(password, device_keys, linked, unlinked)


async def other_sessions(caller: Caller, provider: str) -> int:
    """Count the caller's other open sessions that began by this provider."""
    me = caller.me
    async with caller.read() as tx:
        return int(
            await tx.value(
                session_rows.OTHERS_BY_WAY,
                account=me.account_id,
                by=provider,
                current=me.session_id,
                now=now_ms(),
            )
        )


async def unlink(caller: Caller, provider: str) -> None:
    """Unlink this provider from the caller's account. Sessions that began by it continue. Raises LastWayIn if
    it is the only way to sign in."""
    account = caller.me.account_id
    async with caller.write(account_name(account)) as tx:
        logins = await tx.all(rows.OF_ACCOUNT, account=account)
        if provider not in [row[0] for row in logins]:
            raise NotFound
        others = [row for row in logins if row[0] != provider and caller.node.providers.find(row[0])]
        by_key = caller.node.config.device_key_sign_in and await tx.value(rows.DEVICE_KEYS, account=account)
        if not others and not by_key and not await tx.value(rows.HAS_PASSWORD, account=account):
            raise LastWayIn(
                f"{label_of(caller, provider)} is the only way into this account; link another provider or "
                "register a machine's key first"
            )
        await tx.run(rows.DELETE, account=account, provider=provider)
        await audit.record(tx, account, "login.unlink", account, provider=provider, address=caller.address)


async def _link(caller: Caller, provider: Provider, person: ConfirmedPerson) -> None:
    account = caller.me.account_id
    async with caller.write(account_name(account)) as tx:
        owner = await tx.value(rows.OF_PERSON, issuer=person.issuer, subject=person.subject)
        if owner == account:
            return
        if owner is not None:
            raise LoginTaken(f"you at {provider.label} are linked to another account of this node already")
        if provider.name in [row[0] for row in await tx.all(rows.OF_ACCOUNT, account=account)]:
            raise LoginTaken(
                f"this account is linked to somebody else at {provider.label}; unlink that first"
            )
        await _insert(tx, account, provider.name, person.issuer, person.subject)
        await audit.record(tx, account, "login.link", account, provider=provider.name, address=caller.address)


async def _insert(tx: Tx, account: str, provider: str, issuer: str, subject: str) -> None:
    try:
        await tx.run(
            rows.INSERT,
            issuer=issuer,
            subject=subject,
            account_id=account,
            provider=provider,
            created_at=now_ms(),
            last_used_at=now_ms(),
        )
    except UniqueViolation:
        raise LoginTaken("this sign-in has just been linked to an account; sign in again") from None


async def _keep_person(caller: Caller, row: FlowRow, person: ConfirmedPerson) -> str:
    """Store the person whom the provider named, until that person has chosen a handle. Returns the new
    content of the cookie that names this sign-in."""
    if not caller.node.config.oidc_sign_up:
        raise _to_sign_up_closed(caller, row.provider)
    return await _store(
        caller,
        FlowRow(
            row.provider,
            b"",
            "",
            "",
            row.return_to,
            None,
            person.issuer,
            person.subject,
            await _suggest_handle(caller, person.handle),
            now_ms() + OIDC_SIGN_IN * 1000,
        ),
    )


async def _suggest_handle(caller: Caller, wished: str) -> str:
    """The name that the person has at the provider, if it is free as a handle here; else ""."""
    try:
        name = names.handle(wished)
        async with caller.read() as tx:
            await accounts.require_free(tx, name)
    except (Invalid, NameTaken):
        return ""
    return name


async def _store(caller: Caller, row: FlowRow) -> str:
    flow = _random_text()
    async with caller.node.db.write() as tx:
        await tx.run(rows.SWEEP_FLOWS, now=now_ms())
        await tx.run(
            rows.INSERT_FLOW,
            hash=_hash_text(flow),
            provider=row.provider,
            state_hash=row.state_hash,
            nonce=row.nonce,
            verifier=row.verifier,
            return_to=row.return_to,
            link_account=row.link_account,
            issuer=row.issuer,
            subject=row.subject,
            handle=row.handle,
            expires_at=row.expires_at,
        )
    return flow


def _find_provider(caller: Caller, name: str) -> Provider:
    provider = caller.node.providers.find(name)
    if provider is None:
        names_here = ", ".join(provider.name for provider in caller.node.providers.all)
        raise BadRequest(
            f"this node has no such identity provider; it has {names_here}"
            if names_here
            else "this node has no such identity provider; omit provider"
        )
    return provider


def label_of(caller: Caller, name: str) -> str:
    """The name of an identity provider, as people see it."""
    provider = caller.node.providers.find(name)
    return provider.label if provider else name


def _redirect_uri(caller: Caller, provider: Provider) -> str:
    return f"{caller.node.config.public_url}{provider.callback}"


def _random_text() -> str:
    return b64u(secrets.token_bytes(SECRET_BYTES))


def _hash_text(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _flow_hash(flow: str | None) -> bytes:
    try:
        unb64u(flow or "", SECRET_BYTES)
    except Invalid:
        raise _state_invalid() from None
    return _hash_text(flow or "")


def _to_sign_up_closed(caller: Caller, provider: str) -> SignUpClosed:
    return SignUpClosed(
        f"{label_of(caller, provider)} knows you, and this node lets nobody in that way who has no account "
        "yet; sign in as you did before, then link it: /settings?tab=sign-in"
    )


def _state_invalid() -> StateInvalid:
    return StateInvalid("this sign-in is over, or was begun in another browser; begin it again")
