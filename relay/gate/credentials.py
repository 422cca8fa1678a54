"""Who sends a request: a session cookie, a capability token bound to a key, or a device key on its own.

A token's verdict is remembered by its digest; that its session and account still live is read from the
database every time. Mutations with a token, and everything a device key does on its own, are signed
(`localstore.core.identity.request_signature`); the nonce of a signed mutation goes to the Caller, whose
effect spends it.
"""

from __future__ import annotations

import asyncio
import hmac
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

from sanic.request import Request

from localstore.core.errors import Forbidden, Invalid, NotBound, Unauthorized
from localstore.core.identity import bearer, request_signature
from localstore.core.identity.request_signature import SAFE_METHODS, ParsedSignature
from localstore.core.limits import MIB, SIGNATURE_MAX_AGE
from relay.base.clock import now_ms
from relay.caller import Caller, Principal, Sight
from relay.db.identity import device_key as device_keys
from relay.db.identity import gate
from relay.db.identity import session as sessions
from relay.http import cookies
from relay.http.body import Incoming
from relay.http.routing import Route
from relay.node import Node
from relay.signing.sign_in import Verdict

USED_AGAIN = 10 * 60 * 1000  # milliseconds; `last_used_at` is this coarse, so that reading rarely writes


class Credentials:
    """Who sends the requests for one route. What follows from the route and the node is settled once."""

    def __init__(self, node: Node, route: Route) -> None:
        self._node = node
        self._op = route.operation.needs
        self._streamed = route.stream
        self._open_to_all = route.operation.about == "node"
        self._seen = route.about_repo  # with the session the gate reads the repository
        self._about_repo = route.path.startswith("/api/v1/repos/{id}")
        self._audience = request_signature.authority_of(node.config.public_url)
        self._cookie = cookies.session_name(node.config)

    async def identify(
        self, caller: Caller, request: Request, incoming: Incoming, body: bytes, params: dict[str, str]
    ) -> None:
        """Find out who this is, and tell `caller`.

        A bad Authorization header or signature is refused wherever it is sent (Unauthorized, NotBound). A
        stale cookie counts as none on routes that are open to anybody, since browsers send it unasked, and is
        refused elsewhere. Forbidden: a token narrowed to something else, or a cookie mutation from another
        site.
        """
        headers = request.headers
        if "authorization" in headers:
            await self._by_token(caller, request, incoming, body, params)
        elif "signature-input" in headers or "signature" in headers:
            await self._by_key(caller, request, incoming, body)
        elif "cookie" in headers:
            await self._by_cookie(caller, request, params)

    async def _by_token(
        self, caller: Caller, request: Request, incoming: Incoming, body: bytes, params: dict[str, str]
    ) -> None:
        headers = request.headers
        values = headers.getall("authorization")
        if len(values) != 1:
            raise Unauthorized("Authorization appears twice; send it once")
        verdict = await self._authorized(bearer.text_in_authorization(values[0]), params)
        bound = verdict.token.capability.bound_key
        if request.method not in SAFE_METHODS or "signature-input" in headers or "signature" in headers:
            if bound is None:
                raise NotBound("this token is bound to no key and cannot sign a change; run: svc login")
            parsed = request_signature.parse(headers.items())
            await self._verify(caller, request, incoming, body, parsed, bound)
        await self._sign_in(caller, verdict, "bearer", params)

    async def _by_cookie(self, caller: Caller, request: Request, params: dict[str, str]) -> None:
        try:
            text = cookies.value(request, self._cookie)
            if text is None:
                return
            # A foreign page changes nothing, and opens no socket.
            if request.method not in SAFE_METHODS or "upgrade" in request.headers:
                cookies.require_own_page(self._node.config, request)
            verdict = await self._authorized(text, params)
            if verdict.device_key_id is not None:  # it would change things here without its key's signature
                raise Unauthorized("a token bound to a key is no cookie; send it as Authorization, signed")
            await self._sign_in(caller, verdict, "cookie", params)
        except Unauthorized:
            if not self._open_to_all:
                raise

    async def _by_key(self, caller: Caller, request: Request, incoming: Incoming, body: bytes) -> None:
        parsed = request_signature.parse(request.headers.items())
        found = await self._node.db.lookup(device_keys.SELF, id=parsed.key_id)
        if found is None:
            raise Unauthorized("this device key is not registered here, or was revoked; run: svc login")
        public, words, used_at, account_id, kind, handle, phase = found
        await self._verify(caller, request, incoming, body, parsed, public)
        caps = frozenset(words.split())
        if self._op not in caps:
            raise Forbidden(
                f"this device key may not {self._op!r} on its own, only beside a token; run: svc login"
            )
        now = now_ms()
        if now - (used_at or 0) > USED_AGAIN:
            async with self._node.db.write() as tx:
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

    async def _authorized(self, text: str, params: dict[str, str]) -> Verdict:
        """The verdict on a token, once the guard and its own limits let it through."""
        verdict = await self._node.sign_in.tokens.inspect(text, self._node.signer.public_keys)
        repo = _repo(params["id"]) if self._about_repo else None
        verdict.token.authorize(self._op, _moment(now_ms() // 1000), repo=repo, audience=self._audience)
        return verdict

    async def _sign_in(
        self, caller: Caller, verdict: Verdict, via: Literal["cookie", "bearer"], params: dict[str, str]
    ) -> None:
        """Set the principal, and the sight of the repository where the route is about one: both live in the
        database, read at every request in one statement."""
        db, capability, now = self._node.db, verdict.token.capability, now_ms()
        session_id, account = verdict.session_id, verdict.account_id
        if self._seen:
            found = await db.lookup(
                gate.LIVE_AND_VISIBLE, repo_id=params["id"], session_id=session_id, account=account, now=now
            )
        else:
            found = await db.lookup(sessions.LIVE, session_id=session_id, account=account, now=now)
        if found is None:
            raise Unauthorized("the session has ended; run: svc login", reason="ended")
        if self._seen:
            found, row = gate.parts(found)
            caller.sight = Sight(row)
        live = sessions.live(found)
        bound = verdict.device_key_id
        if bound is not None and not hmac.compare_digest(bound, live.device_key_id or ""):
            raise Unauthorized("the token does not belong to its session; run: svc login", reason="token")
        if now - (live.last_used_at or 0) > USED_AGAIN:
            await self._touch(session_id, live.device_key_id, now)
        caller.principal = Principal(
            account_id=account,
            handle=live.handle,
            kind=live.account_kind,  # type: ignore[arg-type]  # the column holds nothing else
            phase=live.phase,
            session_id=session_id,
            session_kind=live.kind,
            expires_at=min(live.expires_at, verdict.ends),
            caps=capability.caps,
            device_key_id=live.device_key_id,
            via=via,
            narrowed=len(capability.revocation_ids) > 1,
            session_ends=live.expires_at,
        )

    async def _touch(self, session_id: str, key_id: str | None, now: int) -> None:
        async with self._node.db.write() as tx:
            await tx.run(sessions.TOUCH, session_id=session_id, used_at=now)
            if key_id is not None:
                await tx.run(device_keys.TOUCH, key_id=key_id, used_at=now)

    async def _verify(
        self,
        caller: Caller,
        request: Request,
        incoming: Incoming,
        body: bytes,
        parsed: ParsedSignature,
        public: bytes,
    ) -> None:
        """NotBound unless `public` signed this request; a body still to come is compared when it is here."""
        try:
            request_signature.verify(
                parsed,
                request.method,
                _authority(self._node, request),
                request.path,
                request.query_string,
                public_key=public,
                now=now_ms() // 1000,
            )
        except NotBound as error:
            error.extra["expected_origin"] = self._node.config.public_url
            raise
        except Invalid as error:
            raise NotBound(error.detail) from None
        if request.method in SAFE_METHODS:
            return
        if parsed.body is None:
            raise NotBound("the signature covers no body digest")
        if self._streamed:
            incoming.expect(parsed.body)
        elif len(body) > MIB:
            await asyncio.to_thread(parsed.body.check_body, body)
        else:
            parsed.body.check_body(body)
        caller.nonce = (parsed.key_id, parsed.nonce)


def _repo(repo_id: str) -> bytes | None:
    """The id of the repository a route is about, as tokens name it."""
    try:
        return bytes.fromhex(repo_id)
    except ValueError:
        return None


@lru_cache(2)
def _moment(second: int) -> datetime:
    """Tokens end with a second, so that requests of the same one may share its moment."""
    return datetime.fromtimestamp(second, UTC)


def _authority(node: Node, request: Request) -> str:
    """The authority the signature must name. Host only chooses among our own names; it is never believed."""
    own = node.config.authorities()
    host = (request.headers.get("host") or "").lower()
    return host if host in own else request_signature.authority_of(node.config.public_url)
