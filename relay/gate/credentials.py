"""Identifies the sender of a request by a session cookie, by a capability token bound to a key, or by a
device key alone.

The verification of a token is cached by its digest. Whether the session and account of the token are still
active is read from the database for every request. A request must be signed
(`localstore.core.identity.request_signature`) if it changes something by a token, or is made by a device key
alone. The nonce of a signed change is recorded as used in the transaction with the effect of the change.
"""

from __future__ import annotations

import asyncio
import hmac
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

from sanic.request import Request

from localstore.core.errors import Forbidden, Invalid, NotBound, Unauthorized
from localstore.core.identity import bearer, request_signature, ssh
from localstore.core.identity.request_signature import SAFE_METHODS, ParsedSignature
from localstore.core.model.limits import MIB, SIGNATURE_MAX_AGE
from localstore.core.model.rights import choose_capability
from relay.base.clock import now_ms
from relay.caller import Caller, Principal, Sight
from relay.db.identity import device_key as device_keys
from relay.db.identity import gate
from relay.db.identity import session as sessions
from relay.gate import named
from relay.http import cookies
from relay.http.body import Incoming
from relay.http.routing import Route
from relay.node import Node
from relay.signing.sign_in import Verdict

USED_AGAIN = 10 * 60 * 1000  # milliseconds; precision of `last_used_at`, so that reads rarely write


class Credentials:
    """Identifies the callers of one route. Values that depend only on the route and the node are computed
    once."""

    def __init__(self, node: Node, route: Route) -> None:
        self._node = node
        self._op = route.operation.needs
        self._streamed = route.stream
        self._password = route.password
        self._open_to_all = route.operation.about == "node"
        self._reads_repository = route.about_repo  # with the session the gate reads the repository
        self._path_names_repository = route.path.startswith("/api/v1/repos/{id}")
        self._audience = request_signature.authority_of(node.config.public_url)
        self._cookie = cookies.session_name(node.config)

    async def identify(
        self, caller: Caller, request: Request, incoming: Incoming, body: bytes, params: dict[str, str]
    ) -> None:
        """Find out who sent the request, and record it in `caller`. `params`: the parameters in the request's
        path by name.

        An invalid Authorization header or signature is refused on every route (Unauthorized, NotBound). A
        stale cookie is refused too, but ignored on open routes, because browsers send cookies unasked. Raises
        Forbidden for a token whose restrictions do not allow this request, and for a change by cookie that
        another site caused. Routes for git ignore cookies. If a token's restrictions exclude the repository,
        these routes answer as if it did not exist.
        """
        headers = request.headers
        if "authorization" in headers:
            await self._by_token(caller, request, incoming, body, params)
        elif "signature-input" in headers or "signature" in headers:
            await self._by_key(caller, request, incoming, body)
        elif "cookie" in headers and not self._password:
            await self._by_cookie(caller, request, params)

    async def _by_token(
        self, caller: Caller, request: Request, incoming: Incoming, body: bytes, params: dict[str, str]
    ) -> None:
        headers = request.headers
        values = headers.getall("authorization")
        if len(values) != 1:
            raise Unauthorized("Authorization appears twice; send it once")
        if self._password:
            verdict = await self._authorize_seeing(caller, bearer.text_in_password(values[0]), params)
        else:
            verdict = await self._authorize(bearer.text_in_authorization(values[0]), params)
        bound = verdict.token.capability.bound_key
        changes = request.method not in SAFE_METHODS and not self._password
        if changes or "signature-input" in headers or "signature" in headers:
            if bound is None:
                raise NotBound("this token is bound to no key and cannot sign a change; run: svc login")
            parsed = request_signature.parse(headers.items())
            await self._verify(caller, request, incoming, body, parsed, bound)
        await self._sign_in(caller, verdict, "bearer", params)

    async def _by_cookie(self, caller: Caller, request: Request, params: dict[str, str]) -> None:
        try:
            text = cookies.read_cookie(request, self._cookie)
            if text is None:
                return
            # Pages of other sites may neither change anything nor open a socket.
            if request.method not in SAFE_METHODS or "upgrade" in request.headers:
                cookies.require_own_page(self._node.config, request)
            verdict = await self._authorize(text, params)
            if verdict.device_key_id is not None:  # it would change things here without its key's signature
                raise Unauthorized(
                    "a token bound to a key cannot be used as a cookie; send it in a signed request"
                )
            # Forms of pages ask for the session's rights.
            if len(verdict.token.capability.revocation_ids) > 1:
                raise Unauthorized(
                    "a token that was narrowed cannot be used as a cookie; send it as a bearer"
                )
            await self._sign_in(caller, verdict, "cookie", params)
        except Unauthorized:
            if not self._open_to_all:
                raise

    async def _by_key(self, caller: Caller, request: Request, incoming: Incoming, body: bytes) -> None:
        parsed = request_signature.parse(request.headers.items())
        row = await self._node.db.lookup(device_keys.SELF, id=parsed.key_id)
        if row is None:
            raise Unauthorized("this device key is not registered here, or was revoked; run: svc login")
        public, words, used_at, account_id, kind, handle, phase = row
        await self._verify(caller, request, incoming, body, parsed, public)
        caps = frozenset(words.split())
        needed = choose_capability(self._op, caps)
        if needed not in caps:
            raise Forbidden(f"this device key may not {needed!r} without a token; run: svc login")
        now = now_ms()
        if now - (used_at or 0) > USED_AGAIN:
            async with self._node.db.write() as tx:
                await tx.run(device_keys.TOUCH, key_id=parsed.key_id, used_at=now)
        caller.principal = Principal(
            account_id=account_id,
            handle=handle,
            kind=kind,
            phase=phase,
            session_id=parsed.key_id,  # no session; sockets of this key are closed by its id
            session_kind="self",
            expires_at=(parsed.created + SIGNATURE_MAX_AGE) * 1000,
            caps=caps,
            device_key_id=parsed.key_id,
            via="self",
        )

    async def _authorize(self, text: str, params: dict[str, str]) -> Verdict:
        """Verify the token `text` and check that its restrictions allow this request. Returns the verified
        token. Raises Unauthorized or Forbidden."""
        verdict = await self._node.sign_in.tokens.inspect(text, self._node.signer.public_keys)
        repo = _to_token_repo(params["id"]) if self._path_names_repository else None
        caps = verdict.token.capability.caps
        needed = choose_capability(self._op, caps)
        if needed not in caps and "talk" in caps:
            raise Forbidden(ssh.READS_AND_TALKS, reason=ssh.TALKS)
        verdict.token.authorize(needed, _rounded_now(now_ms() // 1000), repo=repo, audience=self._audience)
        return verdict

    async def _authorize_seeing(self, caller: Caller, text: str, params: dict[str, str]) -> Verdict:
        """Verify the token `text` on a route for git, and read the repository into `caller.sight`. If the
        token's restrictions exclude the repository, it counts as missing. Returns the verified token. Raises
        Unauthorized for an invalid token."""
        verdict = await self._node.sign_in.tokens.inspect(text, self._node.signer.public_keys)
        row = await named.row_at(
            self._node.db, params["owner"], params["name"].removesuffix(".git"), verdict.account_id
        )
        repo = _to_token_repo(row[0]) if row is not None else None
        moment = _rounded_now(now_ms() // 1000)
        try:
            verdict.token.authorize(self._op, moment, repo=repo, audience=self._audience)
        except Forbidden:
            row = None
        caller.sight = Sight(row)
        return verdict

    async def _sign_in(
        self, caller: Caller, verdict: Verdict, via: Literal["cookie", "bearer"], params: dict[str, str]
    ) -> None:
        """Record in `caller` who is signed in and, if the route is about a repository, the repository's row.
        One statement reads both from the database. `verdict`: the verified token. Raises Unauthorized if its
        session has ended."""
        db, capability, now = self._node.db, verdict.token.capability, now_ms()
        session_id, account = verdict.session_id, verdict.account_id
        if self._reads_repository:
            session_row = await db.lookup(
                gate.LIVE_AND_VISIBLE, repo_id=params["id"], session_id=session_id, account=account, now=now
            )
        else:
            session_row = await db.lookup(sessions.LIVE, session_id=session_id, account=account, now=now)
        if session_row is None:
            raise Unauthorized("the session has ended; run: svc login", reason="ended")
        if self._reads_repository:
            session_row, row = gate.split_row(session_row)
            caller.sight = Sight(row)
        live = sessions.to_live_session(session_row)
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
        """Raise NotBound unless the key `public` signed this request. If the body has not arrived yet, its
        digest is compared later."""
        try:
            request_signature.verify(
                parsed,
                request.method,
                _expected_authority(self._node, request),
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


def _to_token_repo(repo_id: str) -> bytes | None:
    """The repository id in the form that tokens use; None if the text is not a repository id."""
    try:
        return bytes.fromhex(repo_id)
    except ValueError:
        return None


@lru_cache(2)
def _rounded_now(second: int) -> datetime:
    """The time rounded to a whole second, at which a token must still be valid. The verification of the token
    can then be cached for all requests within one second."""
    return datetime.fromtimestamp(second, UTC)


def _expected_authority(node: Node, request: Request) -> str:
    """The host name that the request's signature must cover. It is always one of this node's own names; the
    Host header only chooses between them."""
    own = node.config.authorities()
    host = (request.headers.get("host") or "").lower()
    return host if host in own else request_signature.authority_of(node.config.public_url)
