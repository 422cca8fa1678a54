"""Who sends a request: a session cookie, a capability token bound to a key, or a device key on its own.

A token's verdict is remembered by its digest; that its session and account still live is read from the
database every time. Mutations with a token, and everything a device key does on its own, are signed
(`localstore.core.request_signature`); the nonce of a signed mutation goes to the Caller, whose effect spends
it.
"""

from __future__ import annotations

import asyncio
import hmac
from datetime import UTC, datetime
from typing import Literal

from sanic.request import Request

from localstore.core import bearer, request_signature
from localstore.core.errors import Forbidden, Invalid, NotBound, Unauthorized
from localstore.core.limits import MIB, SIGNATURE_MAX_AGE
from localstore.core.request_signature import SAFE_METHODS, ParsedSignature
from relay import cookies
from relay.address import client_address
from relay.body import Incoming
from relay.caller import Caller, Principal, Sight
from relay.clock import now_ms
from relay.db import device_key as device_keys
from relay.db import gate
from relay.db import session as sessions
from relay.node import Node
from relay.routing import Anonymous, Read, Route, SignedIn, Write
from relay.sign_in import Verdict

USED_AGAIN = 10 * 60 * 1000  # milliseconds; `last_used_at` is this coarse, so that reading rarely writes

Op = Literal["read", "write", "admin"]


async def identify(
    node: Node, request: Request, incoming: Incoming, body: bytes, route: Route, params: dict[str, str]
) -> Caller:
    """The caller of this request.

    A bad Authorization header or signature is refused wherever it is sent (Unauthorized, NotBound). A stale
    cookie counts as none on routes that are open to anybody, since browsers send it unasked, and is refused
    elsewhere. Forbidden: a token narrowed to something else, or a cookie mutation from another site.
    """
    caller = Caller(node=node, principal=None, address=client_address(request, node.config.proxy_hops))
    headers = request.headers
    if "authorization" in headers:
        await _by_token(caller, request, incoming, body, route, params)
    elif "signature-input" in headers or "signature" in headers:
        await _by_key(caller, request, incoming, body, route)
    else:
        await _by_cookie(caller, request, route, params)
    return caller


def op_of(route: Route) -> Op:
    """The operation a token must include for this route."""
    access = route.access
    open_to_all = isinstance(access, Anonymous) or (isinstance(access, Read) and access.anonymous)
    if route.method in SAFE_METHODS or open_to_all:  # a POST that anybody may send carries a question
        return "read"
    if isinstance(access, SignedIn):
        return access.op
    if isinstance(access, Write) and access.role in ("owner", "admin"):
        return "admin"
    return "write"


async def _by_token(
    caller: Caller,
    request: Request,
    incoming: Incoming,
    body: bytes,
    route: Route,
    params: dict[str, str],
) -> None:
    values = request.headers.getall("authorization")
    if len(values) != 1:
        raise Unauthorized("Authorization appears twice; send it once")
    verdict = await _authorized(caller.node, bearer.text_in_authorization(values[0]), route, params)
    bound = verdict.token.capability.bound_key
    signed = "signature-input" in request.headers or "signature" in request.headers
    if request.method not in SAFE_METHODS or signed:
        if bound is None:
            raise NotBound("this token is bound to no key and cannot sign a change; run: svc login")
        parsed = request_signature.parse(request.headers.items())
        await _verify(caller, request, incoming, body, route.stream, parsed, bound)
    await _sign_in(caller, verdict, "bearer", route, params)


async def _by_cookie(caller: Caller, request: Request, route: Route, params: dict[str, str]) -> None:
    config = caller.node.config
    text = request.cookies.get(cookies.session_name(config))
    if not text:
        return
    if request.method not in SAFE_METHODS or "upgrade" in request.headers:  # no foreign page opens a socket
        cookies.require_own_page(config, request)
    try:
        verdict = await _authorized(caller.node, text, route, params)
        if verdict.device_key_id is not None:  # it would change things here without its key's signature
            raise Unauthorized("a token bound to a key is no cookie; send it as Authorization, signed")
        await _sign_in(caller, verdict, "cookie", route, params)
    except Unauthorized:
        if not isinstance(route.access, Anonymous):
            raise


async def _by_key(caller: Caller, request: Request, incoming: Incoming, body: bytes, route: Route) -> None:
    parsed = request_signature.parse(request.headers.items())
    found = await caller.node.db.lookup(device_keys.SELF, id=parsed.key_id)
    if found is None:
        raise Unauthorized("this device key is not registered here, or was revoked; run: svc login")
    public, words, used_at, account_id, kind, handle, phase = found
    await _verify(caller, request, incoming, body, route.stream, parsed, public)
    caps = frozenset(words.split())
    if op_of(route) not in caps:
        raise Forbidden(
            f"this device key may not {op_of(route)!r} on its own, only beside a token; run: svc login"
        )
    now = now_ms()
    if now - (used_at or 0) > USED_AGAIN:
        async with caller.node.db.write() as tx:
            await tx.run(device_keys.TOUCH, key_id=parsed.key_id, used_at=now)
    caller.principal = Principal(
        account_id=account_id,
        handle=handle,
        kind=kind,
        phase=phase,
        session_id=parsed.key_id,  # there is none; the sockets of this key close by its id
        session_kind="self",
        expires_at=(parsed.created + SIGNATURE_MAX_AGE) * 1000,
        caps=caps,
        device_key_id=parsed.key_id,
        via="self",
    )


async def _authorized(node: Node, text: str, route: Route, params: dict[str, str]) -> Verdict:
    """The verdict on a token, once the guard and its own limits let it through."""
    verdict = await node.sign_in.tokens.inspect(text, node.signer.public_keys)
    audience = request_signature.authority_of(node.config.public_url)
    verdict.token.authorize(
        op_of(route),
        datetime.fromtimestamp(now_ms() / 1000, UTC),
        repo=_repo(route, params),
        audience=audience,
    )
    return verdict


def _repo(route: Route, params: dict[str, str]) -> bytes | None:
    """The id of the repository a route is about, as tokens name it."""
    if not route.path.startswith("/api/v1/repos/{id}"):
        return None
    try:
        return bytes.fromhex(params["id"])
    except ValueError:
        return None


async def _sign_in(
    caller: Caller, verdict: Verdict, via: Literal["cookie", "bearer"], route: Route, params: dict[str, str]
) -> None:
    """Set the principal, and the sight of the repository where the route is about one: both live in the
    database, read at every request in one statement."""
    node, capability = caller.node, verdict.token.capability
    now = now_ms()
    whose = {"session_id": verdict.session_id, "account": verdict.account_id, "now": now}
    if isinstance(route.access, (Read, Write)):
        found = await node.db.lookup(gate.LIVE_AND_VISIBLE, repo_id=params["id"], **whose)
    else:
        found = await node.db.lookup(sessions.LIVE, **whose)
    if found is None:
        raise Unauthorized("the session has ended; run: svc login", reason="ended")
    if isinstance(route.access, (Read, Write)):
        found, row = gate.parts(found)
        caller.sight = Sight(row)
    live = sessions.live(found)
    bound = verdict.device_key_id
    if bound is not None and not hmac.compare_digest(bound, live.device_key_id or ""):
        raise Unauthorized("the token does not belong to its session; run: svc login", reason="token")
    if now - (live.last_used_at or 0) > USED_AGAIN:
        async with node.db.write() as tx:
            await tx.run(sessions.TOUCH, session_id=live.id, used_at=now)
            if live.device_key_id is not None:
                await tx.run(device_keys.TOUCH, key_id=live.device_key_id, used_at=now)
    caller.principal = Principal(
        account_id=live.account_id,
        handle=live.handle,
        kind=live.account_kind,  # type: ignore[arg-type]  # the column holds nothing else
        phase=live.phase,
        session_id=live.id,
        session_kind=live.kind,
        expires_at=min(live.expires_at, verdict.ends),
        caps=capability.caps,
        device_key_id=live.device_key_id,
        via=via,
        narrowed=len(capability.revocation_ids) > 1,
        session_ends=live.expires_at,
    )


async def _verify(
    caller: Caller,
    request: Request,
    incoming: Incoming,
    body: bytes,
    streamed: bool,
    parsed: ParsedSignature,
    public: bytes,
) -> None:
    """NotBound unless `public` signed this request; a body still to come is compared when it has arrived."""
    try:
        request_signature.verify(
            parsed,
            request.method,
            _authority(caller.node, request),
            request.path,
            request.query_string,
            public_key=public,
            now=now_ms() // 1000,
        )
    except NotBound as error:
        error.extra["expected_origin"] = caller.node.config.public_url
        raise
    except Invalid as error:
        raise NotBound(error.detail) from None
    if request.method in SAFE_METHODS:
        return
    if parsed.body is None:
        raise NotBound("the signature covers no body digest")
    if streamed:
        incoming.expect(parsed.body)
    elif len(body) > MIB:
        await asyncio.to_thread(parsed.body.check_body, body)
    else:
        parsed.body.check_body(body)
    caller.nonce = (parsed.key_id, parsed.nonce)


def _authority(node: Node, request: Request) -> str:
    """The authority the signature must name. Host only chooses among our own names; it is never believed."""
    own = node.config.authorities()
    host = (request.headers.get("host") or "").lower()
    return host if host in own else request_signature.authority_of(node.config.public_url)
