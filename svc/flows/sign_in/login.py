"""Signs in, either by approval in a browser or with this machine's device key (docs/design/005)."""

from __future__ import annotations

import getpass
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import ClientError, Invalid, NotFound, ServerMisbehaved, ServerUnreachable
from localstore.core.identity.device_grant import (
    CHALLENGE_ID_BYTES,
    GRANT_TYPE,
    OpenedChallenge,
    Purpose,
    fingerprint,
    normalise_pairing_code,
    open_grant,
)
from localstore.core.identity.keys import sign_registration
from localstore.core.model import auth
from localstore.core.model.auth import (
    AuthorizationPending,
    DeviceCode,
    DeviceCodeStart,
    DeviceKeyPatch,
    DeviceKeyProof,
    DeviceKeyStart,
    ExpiredToken,
    RegisteredKey,
    SlowDown,
    TokenRequest,
)
from localstore.core.model.auth import Challenge as ChallengeBody
from localstore.core.model.limits import LABEL_CHARS
from localstore.core.names import handle as check_handle
from localstore.core.times import rfc3339
from svc.api import Api
from svc.http.checked import argument
from svc.http.client import Http
from svc.http.credential import Credential
from svc.http.identity import Identity
from svc.http.origin import same_server
from svc.http.session import Session, Sessions

INTERVAL_MAX = 60  # seconds between polls, however much the server asks for


class Approval(msgspec.Struct, frozen=True):
    """What the user needs to approve a sign-in in a browser: the address and the code, and the fingerprint to
    compare there."""

    fingerprint: str
    user_code: str
    url: str
    url_with_code: str


def machine_name() -> str:
    """Return the default name of this machine, `user@host`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = ""
    return "@".join(part for part in (user, platform.node() or "nameless") if part)[:LABEL_CHARS]


def by_browser(
    origin: str,
    sessions: Sessions,
    show: Callable[[Approval], None],
    name: str = "",
    *,
    sleep: Callable[[float], None] = time.sleep,
    missed: Callable[[ServerUnreachable | None], None] | None = None,
) -> Session:
    """Ask the server for a sign-in, wait until a person approves it in a browser, and store the session.
    Returns the session. `show` is called once with the address and code, before the wait. `name` is the name
    of this machine. With `missed`, a server that does not answer during the wait is asked again; `missed` is
    called with its error, and with None once it answers. Raises AccessDenied, ExpiredToken."""
    api, identity = Api(Http(origin)), sessions.identity
    device, transport = identity.device.public, identity.transport.public
    start = DeviceCodeStart(
        transport_x25519=b64u(transport), device_ed25519=b64u(device), label=name or machine_name()
    )
    code = api.send(auth.DEVICE_CODE, start)
    _check_address(origin, code)
    show(
        Approval(
            fingerprint(transport, device),
            code.user_code,
            code.verification_uri,
            code.verification_uri_complete,
        )
    )
    sealed = _wait(api, code, sleep, missed)
    grant = open_grant(
        unb64u(sealed),
        identity.transport,
        origin=_origin_of(code.verification_uri),
        device_code=_raw(code.device_code),
    )
    token = Credential(grant.token, identity.device)
    me = Api(Http(origin, token)).send(auth.USER_INFO)
    session = Session(
        origin=origin,
        token=grant.token,
        user_id=me.user_id,
        session_id=me.session_id,
        handle=me.handle,
        expires_at=rfc3339(grant.expires_at),
        device_name=name,
    )
    _require_running(session)
    sessions.save(session)
    if name:
        _rename(Api(Http(origin, token)), identity, name)
    return session


def by_device_key(
    origin: str, sessions: Sessions, handle: str, pair: str | None = None, name: str = ""
) -> Session:
    """Sign in by proving that this machine has its device key. Stores the session and returns it.

    If the handle is free, a new account with this handle is created. If the account with this handle already
    has this machine's key, the machine is signed in. Otherwise `pair` is needed, which is a code from `svc
    auth device add`. Without a code HandleTaken is raised."""
    identity = sessions.identity
    account = argument(check_handle, handle)
    code = argument(normalise_pairing_code, pair) if pair else None
    api = Api(Http(origin))
    body = api.send(auth.SIGN_IN_CHALLENGE, _start(identity, account, name))
    challenge = _decrypt_challenge(origin, identity, body, Purpose.LOGIN, account)
    grant = api.send(auth.SIGN_IN, _proof(identity, body, challenge, code))
    if not grant.token:
        raise ServerMisbehaved(f"{origin} signed in without giving a session; try again")
    session = Session(
        origin=origin,
        token=grant.token,
        user_id=grant.user_id,
        session_id=grant.session_id,
        handle=grant.handle or account,
        expires_at=grant.expires_at,
        registered=True,
        device_name=name,
    )
    _require_running(session)
    sessions.save(session)
    if name:  # a key that the account knew keeps the name it had, until now
        _rename(Api(Http(origin, Credential(grant.token, identity.device))), identity, name)
    return session


def _require_running(session: Session) -> None:
    """Raise ClientError if a new session has already expired by this machine's clock. Otherwise every command
    would ask for another sign-in, which would expire, too."""
    now = datetime.fromtimestamp(time.time(), UTC)
    if session.seconds_left(now) < 0:
        raise ClientError(
            f"the session that {session.origin} gave now ends at {session.expires_at}, and this machine's "
            f"clock says {now:%Y-%m-%dT%H:%M:%SZ}; set the clock, then run: "
            f"svc login --server {session.origin}"
        )


def _rename(api: Api, identity: Identity, name: str) -> None:
    with suppress(NotFound):  # the first push registers it, by this name
        api.send(auth.RENAME_KEY, DeviceKeyPatch(name=name), key_id=identity.device.id)


def register_device(api: Api, identity: Identity, name: str = "") -> RegisteredKey:
    """Register this machine's key with the signed-in account under `name`, if it is not registered yet.
    Returns the key."""
    for key in api.items(auth.KEYS):
        if key.id == identity.device.id and key.revoked_at is None:
            return key
    body = api.send(auth.KEY_CHALLENGE, _start(identity, None, name))
    challenge = _decrypt_challenge(api.origin, identity, body, Purpose.REGISTER, body.account)
    return api.send(auth.REGISTER_KEY, _proof(identity, body, challenge, None))


def _start(identity: Identity, handle: str | None, name: str) -> DeviceKeyStart:
    return DeviceKeyStart(
        ed25519=b64u(identity.device.public),
        x25519=b64u(identity.transport.public),
        name=name or machine_name(),
        handle=handle,
    )


def _decrypt_challenge(
    origin: str, identity: Identity, body: ChallengeBody, purpose: Purpose, account: str
) -> OpenedChallenge:
    """Decrypt a challenge of the server. Raises ServerMisbehaved if it cannot be decrypted, or if it names
    another server as its origin. Otherwise the server could use the answer to sign in to the other server as
    the user."""
    if not same_server(origin, body.origin):
        raise ServerMisbehaved(
            f"{origin} says that its address is {body.origin!r}; if you trust it, sign in there (--server)"
        )
    try:
        return OpenedChallenge(
            purpose=purpose,
            origin=body.origin,
            account=account,
            challenge_id=unb64u(body.challenge_id, CHALLENGE_ID_BYTES),
            ed25519=identity.device.public,
            x25519=identity.transport.public,
            secret=identity.transport.unseal(unb64u(body.sealed_challenge)),
        )
    except Invalid as error:
        raise ServerMisbehaved(f"{origin} sent a challenge that cannot be opened ({error.detail})") from None


def _proof(
    identity: Identity, body: ChallengeBody, challenge: OpenedChallenge, pair: str | None
) -> DeviceKeyProof:
    return DeviceKeyProof(
        challenge_id=body.challenge_id,
        signature=b64u(challenge.prove(identity.device)),
        registration=b64u(sign_registration(identity.device, body.origin, body.account)),
        pair=pair,
    )


def _check_address(origin: str, code: DeviceCode) -> None:
    """Raise ServerMisbehaved if the approval page is not on the server where the user wants to sign in."""
    for url in (code.verification_uri, code.verification_uri_complete):
        if not same_server(origin, _origin_of(url)):
            raise ServerMisbehaved(
                f"{origin} wants the sign-in approved at {url!r}, which is another address; "
                "if the node moved, sign in there with --server"
            )


def _origin_of(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def _raw(device_code: str) -> bytes:
    try:
        return unb64u(device_code)
    except Invalid:
        raise ServerMisbehaved("the server sent a device code that cannot be read") from None


def _wait(
    api: Api,
    code: DeviceCode,
    sleep: Callable[[float], None],
    missed: Callable[[ServerUnreachable | None], None] | None,
) -> str:
    """Ask the server repeatedly until the sign-in is approved. Returns the encrypted session in base64url."""
    claim = TokenRequest(grant_type=GRANT_TYPE, device_code=code.device_code)
    interval = min(max(code.interval, 1), INTERVAL_MAX)
    waited = 0
    while waited <= code.expires_in:
        sleep(interval)
        waited += interval
        try:
            return api.send(auth.CLAIM, claim).sealed
        except ServerUnreachable as error:
            if missed is None:
                raise
            missed(error)
            continue
        except AuthorizationPending:
            pass
        except SlowDown:
            interval = min(interval + 5, INTERVAL_MAX)
        if missed is not None:
            missed(None)
    raise ExpiredToken("nobody approved the sign-in in time; run: svc login")
