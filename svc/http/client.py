"""HTTP requests to one server: signing, retries, clock correction, redirects.

Every request that changes something is signed (RFC 9421) with the key that the session is bound to, for the
origin that was stored at sign-in. Redirects to another origin are not followed. After a failure, a request is
repeated if it only reads, has an Idempotency-Key, or belongs to live sync. A server that answers with
Retry-After has done nothing, so any request may be repeated then. Every attempt is signed anew."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec

from localstore.core.encoding import b64u
from localstore.core.endpoint import Endpoint
from localstore.core.errors import ServerMisbehaved, ServerUnreachable
from localstore.core.identity.keys import DeviceKey
from localstore.core.identity.request_signature import SAFE_METHODS, ContentDigest, authority_of, sign
from localstore.core.identity.ssh import TALKS
from localstore.core.model.base import Page
from localstore.core.model.limits import PAGE_MAX
from localstore.core.names import TURN_HEADER, turn
from localstore.core.numbers import whole_number
from localstore.core.paths import terminal_safe
from svc import __version__
from svc.http import answer, bounds
from svc.http.checked import argument, require_valid
from svc.http.connection_limits import ConnectionLimitExceeded
from svc.http.credential import Credential
from svc.http.outgoing import Outgoing
from svc.http.target import Query, full_target, query_of

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

ATTEMPTS = 4
TURN_VARIABLE = "SVC_TURN"
STALLS = 2  # attempts on a line that is stuck (`silence`): it may have been lost
BACKOFF = 0.25  # seconds before the second attempt; doubles each time
TLS_FAILED = r"(?i)_ssl|SSL:|handshake|CERTIFICATE"
WAIT_MAX = 30.0  # seconds that a server may ask us to wait
REDIRECTS_MAX = 3
EMPTY_PAGES, PAGES_MAX = 100, 100_000  # of one list: in a row, and in all
CONNECT_TIMEOUT, WRITE_TIMEOUT = 10.0, 60.0  # `silence` says how long an answer is waited for


class Http:
    """Sends requests to `origin` (http(s)://host[:port]), with the session `credential` if it is given. If
    the attribute `hold` is set, this function is called with each change instead of sending it. It must raise
    an exception."""

    def __init__(
        self,
        origin: str,
        credential: Credential | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.origin = origin
        self.credential = credential
        self.attempts = ATTEMPTS  # how often a request is sent at most
        self.hold: Callable[[Endpoint[Any], Any, Query, dict[str, str]], NoReturn] | None = None
        self.waiting: Callable[[], AbstractContextManager[None]] = nullcontext  # around waits for answers
        self._sleep, self._clock = sleep, clock
        self._skew = 0.0  # seconds that the server's clock is ahead of ours
        self._opened: httpx.Client | None = None

    def send(self, endpoint: Endpoint[T], body: Any = None, query: Any = None, **path: str) -> T:
        """Send a request to an endpoint, and return its decoded answer. `path` has the parameters of the
        endpoint's path. `body` and `query` are structs of the types that the endpoint declares. A body of
        bytes is sent unchanged.

        Raises UsageError for an invalid struct, before anything is sent. Also raises the error that the
        server answers, ServerUnreachable, or ServerMisbehaved for an invalid answer."""
        members = query_of(query)
        if self.hold is not None and endpoint.takes_key:
            self.hold(endpoint, body, members, path)
        key = b64u(os.urandom(16)) if endpoint.takes_key and not endpoint.repeatable else None
        return self.send_under(key, endpoint, body, members, path)

    def send_under(
        self, key: str | None, endpoint: Endpoint[T], body: Any, query: Query, path: dict[str, str]
    ) -> T:
        """Send a request to an endpoint with the Idempotency-Key `key`, or without a key if it is None. A
        request may be sent several times with the same key, and the server carries it out once. Returns and
        raises the same as `send`."""
        outgoing = self._request(endpoint, path, body, query)
        if key is not None:
            outgoing.headers["Idempotency-Key"] = key
            outgoing.repeatable = True
        if endpoint.returns is type(None):
            return self._attempt(outgoing, answer.nothing)  # type: ignore[return-value]
        return self._attempt(outgoing, lambda response: answer.json(response, endpoint.returns, endpoint.cap))

    def items(
        self, endpoint: Endpoint[Page[T]], query: Any = None, *, limit: int | None = None, **path: str
    ) -> Iterator[T]:
        """Yields the items of a paged endpoint, at most `limit`. Each page is requested when the iteration
        reaches it."""
        remaining = limit
        cursor: str | None = None
        seen: set[str] = set()
        empty = 0
        parameters = query_of(query)
        while remaining is None or remaining > 0:
            size = PAGE_MAX if remaining is None else min(remaining, PAGE_MAX)
            outgoing = self._request(endpoint, path, None, {**parameters, "limit": size, "cursor": cursor})
            page = self._attempt(
                outgoing, lambda response: answer.json(response, endpoint.returns, endpoint.cap)
            )
            taken = page.items if remaining is None else page.items[:remaining]
            yield from taken
            remaining = None if remaining is None else remaining - len(taken)
            cursor = page.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                raise ServerMisbehaved(f"{self.origin} sent the same page of a list twice")
            seen.add(cursor)
            empty = 0 if page.items else empty + 1
            if empty == EMPTY_PAGES or len(seen) == PAGES_MAX:
                raise ServerMisbehaved(f"{self.origin} sends pages of a list without end")

    def exchange(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        cap: int = answer.RAW_MAX,
    ) -> answer.Raw:
        """Send any request, for `svc repo api`. Returns status, headers and body unchanged. The body has at
        most `cap` bytes."""
        outgoing = Outgoing(method, path, body, headers=dict(headers), repeatable=method in SAFE_METHODS)
        return self._attempt(outgoing, lambda response: answer.raw(response, cap))

    def read(self, endpoint: Endpoint[bytes], cap: int, query: Any = None, **path: str) -> bytes:
        """Send a GET request to an endpoint, and return the bytes of its answer, at most `cap`."""
        outgoing = self._request(endpoint, path, None, query_of(query))
        return self._attempt(outgoing, lambda response: answer.body(response, cap))

    @contextmanager
    def stream(
        self, endpoint: Endpoint[bytes], cap: int, body: bytes | None = None, query: Any = None, **path: str
    ) -> Iterator[Iterator[bytes]]:
        """A context that yields the answer as pieces of bytes, at most `cap` bytes in all. If the answer
        breaks off, it is not requested again."""
        with self.stream_from(endpoint, 0, cap, body, query, **path) as (_, pieces):
            yield pieces

    @contextmanager
    def stream_from(
        self, endpoint: Endpoint[bytes], start: int, cap: int, body: Any, query: Any, **path: str
    ) -> Iterator[tuple[int, Iterator[bytes]]]:
        """A context that requests the bytes of an answer from byte `start` on. It yields (offset of the first
        byte, pieces of bytes). The offset is `start`, or 0 if the server sends everything. The pieces have at
        most `cap` bytes in all."""
        outgoing = self._request(endpoint, path, body, query_of(query))
        outgoing.headers |= {"Range": f"bytes={start}-"} if start else {}
        response = self._attempt(outgoing, answer.require_success, keep=True)
        try:
            yield answer.read_start(response, start), answer.pieces(response, cap)
        finally:
            response.close()

    def upload(
        self,
        endpoint: Endpoint[T],
        parts: Callable[[], Iterable[bytes]],
        length: int,
        digest: bytes,
        *,
        query: Any = None,
        media: str = "application/octet-stream",
        **path: str,
    ) -> T:
        """Send `length` bytes, and return the decoded answer. `parts` is called for each attempt, and returns
        the bytes in pieces. `digest` is the BLAKE3 of the bytes, which the request's signature covers."""
        outgoing = self._request(endpoint, path, None, query_of(query))
        outgoing.body, outgoing.length, outgoing.digest = parts, length, ContentDigest.of_stream(digest)
        outgoing.headers["Content-Type"] = media
        return self._attempt(outgoing, lambda response: answer.json(response, endpoint.returns, endpoint.cap))

    def upgrade(self, path: str, headers: Mapping[str, str]) -> httpx.Response:
        """Ask the server to switch to another protocol. This uses a connection of its own, which stays open
        until the response is closed. The request is signed. Redirects are not followed."""
        outgoing = Outgoing("GET", path, headers=dict(headers), repeatable=True, upgrades=True)
        return self._attempt(outgoing, answer.require_switch, keep=True)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _request(
        self,
        endpoint: Endpoint[Any],
        path: dict[str, str],
        body: Any = None,
        query: Query | None = None,
    ) -> Outgoing:
        target = full_target(endpoint.target(**path), query)
        repeatable = endpoint.repeatable or endpoint.method in SAFE_METHODS
        outgoing = Outgoing(endpoint.method, target, repeatable=repeatable)
        if isinstance(body, bytes):
            outgoing.body = body
            outgoing.headers["Content-Type"] = "application/octet-stream"
        elif body is not None:
            outgoing.body = msgspec.json.encode(
                require_valid(body) if isinstance(body, msgspec.Struct) else body
            )
            outgoing.headers["Content-Type"] = "application/json"
        return outgoing

    def _attempt(self, outgoing: Outgoing, read: Callable[[httpx.Response], T], *, keep: bool = False) -> T:
        """Send the request and return the result of calling `read` with the response. The request is repeated
        where that is allowed. With `keep`, the response is left open, and the caller must close it."""
        try:
            bounds.check(bounds.current())
            return self._until_answered(outgoing, read, keep)
        except bounds.Stopped as stop:
            remedy = answer.remedy_of(outgoing.repeatable)
            raise stop.bound.error(self.origin, remedy) from None

    def _until_answered(self, outgoing: Outgoing, read: Callable[[httpx.Response], T], keep: bool) -> T:
        httpx = load()
        attempt, corrected = 0, False
        while True:
            attempt += 1
            stays_open = False
            try:
                with nullcontext() if callable(outgoing.body) else self.waiting():
                    response = self._follow(outgoing)
            except httpx.TransportError as error:
                bounds.pause(self._after_failure(error, outgoing, attempt), self._sleep)
                continue
            outgoing.may_have_arrived = True
            try:
                wait = self._retry_after(response, outgoing, attempt)
                if wait is None and not corrected and self._correct_clock(response):
                    corrected, wait = True, 0.0
                if wait is None and self._needs_key(response, outgoing):
                    outgoing.alone, wait = True, 0.0
                if wait is None:
                    result = read(response)
                    stays_open = keep
                    return result
            finally:
                if not stays_open:
                    response.close()
            bounds.pause(wait, self._sleep)

    def _after_failure(self, error: httpx.TransportError, outgoing: Outgoing, attempt: int) -> float:
        """Return how many seconds to wait before the next attempt. Raises the error if no further attempt is
        allowed."""
        httpx = load()
        tls = terminal_safe(str(error)[:200])
        if self.origin.startswith("https:") and re.search(TLS_FAILED, tls):  # a repeat would fail as this one
            raise ServerUnreachable(
                f"{self.origin} did not complete the TLS handshake ({tls}); check the address (plain HTTP is "
                "written http://), the certificate, and this machine's clock"
            ) from None
        never_sent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
        outgoing.may_have_arrived |= not never_sent
        once = isinstance(error, (httpx.WriteTimeout, httpx.ConnectTimeout))  # long enough
        stalled = isinstance(error, httpx.ReadTimeout)
        most = min(self.attempts, 1 if once else STALLS if stalled else self.attempts)
        if attempt < most and (never_sent or outgoing.repeatable):
            return float(BACKOFF * 2 ** (attempt - 1))
        if isinstance(error, httpx.ProtocolError):
            raise ServerMisbehaved(
                f"{self.origin} sent an invalid HTTP response ({terminal_safe(str(error)[:200])}); "
                "check the address"
            ) from None
        why = terminal_safe(str(error)[:200]) or type(error).__name__
        raise ServerUnreachable(
            f"cannot reach {self.origin} ({why}); check the address (--server, SVC_SERVER), your network, "
            "and that the node is running",
            sent=outgoing.may_have_arrived,
        ) from None

    def _follow(self, outgoing: Outgoing) -> httpx.Response:
        """Send the request once, and return the response. If the request only reads, redirects within the
        origin are followed. Any other redirect raises ServerMisbehaved."""
        target = outgoing.target
        for _ in range(REDIRECTS_MAX + 1):
            response = self._transmit(outgoing, target)
            if not response.has_redirect_location:
                return response
            response.close()
            where = urljoin(self.origin + target, response.headers["location"])
            parts = urlsplit(where)
            if not outgoing.is_read or f"{parts.scheme}://{parts.netloc}" != self.origin:
                raise ServerMisbehaved(
                    f"{self.origin} redirects to {terminal_safe(where[:200])}; it was not followed. If "
                    "the server moved, sign in at its new address: svc login --server URL"
                )
            target = parts.path + (f"?{parts.query}" if parts.query else "")
        raise ServerMisbehaved(f"{self.origin} redirects in a circle")

    def _transmit(self, outgoing: Outgoing, target: str) -> httpx.Response:
        client = self._client()
        content = outgoing.body() if callable(outgoing.body) else outgoing.body
        headers = dict(outgoing.headers)
        if callable(outgoing.body):
            headers["Content-Length"] = str(outgoing.length)
        url, wait = self.origin + target, load().Timeout(WRITE_TIMEOUT, connect=CONNECT_TIMEOUT)
        request = client.build_request(outgoing.method, url, content=content, headers=headers, timeout=wait)
        if self.credential is not None:
            self._sign(request, outgoing, self.credential)
        try:
            response = client.send(request, stream=True)
        except ConnectionLimitExceeded as error:
            remedy = answer.remedy_of(outgoing.repeatable)
            raise ServerUnreachable(f"{self.origin} {error}; {remedy}") from None
        response.extensions[answer.REPEATABLE] = outgoing.repeatable
        return response

    def _sign(self, request: httpx.Request, outgoing: Outgoing, credential: Credential) -> None:
        key: DeviceKey = credential.key
        authorization: str | None = credential.authorization
        if outgoing.alone and credential.alone is not None:
            key, authorization = credential.alone, None
        else:
            request.headers["Authorization"] = credential.authorization
        if outgoing.is_read:
            return
        path, _, query = request.url.raw_path.decode("ascii").partition("?")
        body = outgoing.digest
        if body is None and isinstance(outgoing.body, bytes):
            body = ContentDigest.of(outgoing.body)
        request.headers.update(
            sign(
                key,
                outgoing.method,
                authority_of(self.origin),
                path,
                query,
                body=body,
                authorization=authorization,
                now=int(self._clock() + self._skew),
            )
        )

    def _retry_after(self, response: httpx.Response, outgoing: Outgoing, attempt: int) -> float | None:
        """Return how many seconds to wait before sending the request again. Returns None if it is not sent
        again, so that this response is its result."""
        if attempt >= self.attempts or response.status_code not in (429, 502, 503, 504):
            return None
        seconds = whole_number(response.headers.get("retry-after", ""), 5)
        if seconds is not None:
            return float(seconds) if seconds <= WAIT_MAX else None
        return BACKOFF * 2 ** (attempt - 1) if outgoing.repeatable else None

    def _needs_key(self, response: httpx.Response, outgoing: Outgoing) -> bool:
        """Return whether to send a refused request again, signed with the user's device key. That is so if
        the server refused it because the token allows only reading and talking, and a device key can sign it
        instead."""
        if response.status_code != 403 or outgoing.alone or outgoing.is_read:
            return False
        able = self.credential is not None and self.credential.alone is not None
        return able and answer.reason(response) == TALKS

    def _correct_clock(self, response: httpx.Response) -> bool:
        """Adopt the server's time for later signatures, if the server refused this one because of its time
        (401). Returns whether the server's time differed from this machine's."""
        if response.status_code != 401 or self.credential is None:
            return False
        theirs = answer.server_time(response)
        if theirs is None:
            return False
        skew = theirs - self._clock()
        if abs(skew - self._skew) < 5:
            return False
        self._skew = skew
        return True

    def _client(self) -> httpx.Client:
        if self._opened is None:
            httpx = load()
            from svc.http.pool import Pool  # it needs httpx, which offline commands do not load

            self._opened = httpx.Client(
                transport=Pool(self.origin),
                trust_env=False,
                headers={
                    "User-Agent": f"svc/{__version__}",
                    "Accept": "application/json, application/problem+json;q=0.9, */*;q=0.5",
                    "Accept-Encoding": "identity",
                    **_turn(os.environ),
                },
            )
        return self._opened


def _turn(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the header with the turn (the name of an AI agent's piece of work) from SVC_TURN. Returns {} if
    the variable is not set. Raises UsageError for an invalid name."""
    name = environment.get(TURN_VARIABLE, "")
    return {TURN_HEADER: argument(turn, name)} if name else {}


def load() -> Any:
    """Import httpx without its command line, whose imports (rich, pygments, click) take 35 ms of CPU."""
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    import httpx

    return httpx
