"""The HTTP server. Its single entry finds the route of each request, sends the answer, and turns every error
into an answer.

Sanic provides the protocol; paths, methods, errors, headers and log lines are handled here.
"""

from __future__ import annotations

import asyncio
import math
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from sanic import Sanic
from sanic.exceptions import SanicException
from sanic.request import Request
from sanic.response import HTTPResponse

from localstore.core.errors import NotFound, SvcError
from relay import domain, pages
from relay.base.logs import RequestLine, logger, request_line
from relay.domain.repository.place import PREFIXES
from relay.gate.gate import Handle, handler_of
from relay.http import problems
from relay.http.body import drain, skip_arrived
from relay.http.context import UNKNOWN
from relay.http.reply import SentAnswer, in_pieces
from relay.http.router import Router, allow_header
from relay.http.routing import TABLE, Route
from relay.http.turns import PipelineTurns
from relay.http.wire import FIELDS, REQUEST_BUFFER, StrictRequest
from relay.node import Node
from relay.render.templates import ALL, Templates

API_POLICY = "default-src 'none'; frame-ancestors 'none'"
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
TLS_ONLY = "max-age=31536000"  # for this host only, not for its subdomains
HEADER_BYTES = 16 * 1024
PIECE, PIECE_SECONDS = 64 * 1024, 60.0  # of an answer; a client that reads less in that time is cut off

Leaf = tuple[Route, Handle]


def build(node: Node) -> Sanic[Any, Any]:
    """Make Sanic's application for a node, with every route of the table. It belongs to one event loop."""
    domain.load()
    app = _App(
        f"relay-{secrets.token_hex(8)}",
        configure_logging=False,
        request_class=StrictRequest,
        env_prefix="NOT_FROM_ENV_",
    )
    app.config.update(
        ACCESS_LOG=False,
        REQUEST_TIMEOUT=30,  # seconds for the header; bodies have their own clock (relay.http.body)
        RESPONSE_TIMEOUT=24 * 3600,  # it would cancel slow handlers with 503
        KEEP_ALIVE_TIMEOUT=75,
        REQUEST_MAX_SIZE=64
        * 1024,  # lifted for each request: bodies have caps of their own (relay.http.body)
        REQUEST_MAX_HEADER_SIZE=HEADER_BYTES,
        REQUEST_BUFFER_SIZE=REQUEST_BUFFER,
        FALLBACK_ERROR_FORMAT="json",
        AUTO_EXTEND=False,
    )
    app.ctx.entry = entry = _Server(node)
    app.ctx.turns = PipelineTurns()
    app.enable_websocket()
    app.exception(Exception)(entry.answer_unreadable)
    return app


class _App(Sanic[Any, Any]):
    """Sanic's connections without its routes, middleware and signals: every request is passed to a single
    function."""

    def finalize(self) -> None:
        """Does nothing, because there are no Sanic routes."""

    @property
    def handle_request(self) -> Callable[[StrictRequest], Awaitable[None]]:  # type: ignore[override]
        """The function to which a connection passes its requests. Sanic calls this once for each
        connection."""
        entry: _Server = self.ctx.entry
        return entry.handle


class _Server:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._secure = node.config.secure
        self._router: Router[Leaf] = Router()
        flags = node.config.flags
        for route in TABLE:
            if route.flag is None or flags.on(route.flag):
                handle = handler_of(route, node)
                if route.media == pages.HTML:
                    folders = ALL if route.operation.name == "page.repository" else ALL[:1]
                    handle = _with_templates(node.templates, folders, handle)
                self._router.add(route.method, route.path, (route, handle))

    async def handle(self, request: StrictRequest) -> None:
        """Answer one request. Returns when the answer was sent or the WebSocket has ended."""
        ctx = request.ctx
        ctx.began, ctx.request_id = time.perf_counter(), _request_id()
        stream: Any = request.stream
        stream.request_max_size = math.inf
        try:
            answer = in_pieces(request, await self._answer(request))
            response = answer.response
            if response is None:
                return
            self._headers(request, response)
            if answer.stream is not None:
                await self._send(request, answer)
            elif request.well_formed and skip_arrived(request):
                await stream.answer(response)
            else:
                await _refuse_rest(request, response)
            ctx.status = response.status
        finally:
            if ctx.lease is not None:
                ctx.lease.release()
            self._record_end(request)

    async def _answer(self, request: StrictRequest) -> SentAnswer:
        if request.crowded:
            return SentAnswer(_too_many_fields())
        if not request.well_formed:
            return SentAnswer(_answer_malformed())
        try:
            handle, params = self._find(request)
            return await handle(request, params)
        except _WrongMethod as wrong:
            return SentAnswer(problems.method_not_allowed(wrong.allow))
        except SvcError as error:
            return SentAnswer(pages.refusal(error) if _wants_page(request) else problems.response(error))
        except SanicException as error:
            return SentAnswer(_answer_unreadable(error))
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # a PanicException of a Rust library is not an Exception
            logger().error(
                "request failed",
                request_id=request.ctx.request_id,
                route=request.ctx.route,
                exc_info=(type(error), error, error.__traceback__),
            )
            return SentAnswer(problems.internal(request.ctx.request_id))

    def _find(self, request: Request) -> tuple[Handle, dict[str, str]]:
        """Find (handler, path parameters) for a request. A path whose routes are all switched off by feature
        flags is treated as unknown."""
        match = self._router.find(request.path)
        if match is None:
            raise NotFound
        methods, params = match
        method = "GET" if request.method == "HEAD" and "HEAD" not in methods else request.method
        if method not in methods:
            raise _WrongMethod(allow_header(methods))
        route, handle = methods[method]
        request.ctx.route = route.name
        return handle, params

    async def _send(self, request: Request, answer: SentAnswer) -> None:
        """Send a streamed answer. If sending fails in the middle, the connection is cut, so that the answer
        does not look complete."""
        assert answer.stream is not None  # noqa: S101  # the caller asked
        try:
            response = await request.respond(answer.response)
            async for part in answer.stream:
                request.ctx.sent += len(part)
                for start in range(0, len(part), PIECE):
                    async with asyncio.timeout(PIECE_SECONDS):
                        await response.send(part[start : start + PIECE])
            async with asyncio.timeout(PIECE_SECONDS):
                await response.eof()
        except BaseException as error:
            transport: Any = request.transport
            if transport is not None:
                transport.abort()
            if isinstance(error, asyncio.CancelledError):
                raise
            if not isinstance(error, TimeoutError):  # the client stopped reading: not an error of the relay
                request.ctx.status = 500
                logger().error(
                    "stream cut", request_id=request.ctx.request_id, route=request.ctx.route, exc_info=True
                )
            raise asyncio.CancelledError from None
        finally:
            if hasattr(answer.stream, "aclose"):
                await answer.stream.aclose()

    def answer_unreadable(self, request: Request, error: Exception) -> HTTPResponse:
        """The answer to a request that Sanic could not read, or whose connection failed while the answer was
        sent."""
        ctx = request.ctx
        ctx.request_id = ctx.request_id or _request_id()
        if isinstance(error, SanicException):
            response = _answer_unreadable(error)
        else:
            logger().error("connection failed", request_id=ctx.request_id, exc_info=error)
            response = problems.internal(ctx.request_id)
        self._headers(request, response)
        return response

    def _headers(self, request: Request, response: HTTPResponse) -> None:
        _common_headers(request, response)
        if self._secure:
            response.headers["strict-transport-security"] = TLS_ONLY

    def _record_end(self, request: StrictRequest) -> None:
        ctx = request.ctx
        status = 101 if ctx.upgraded else ctx.status
        seconds = time.perf_counter() - ctx.began
        received = ctx.incoming.received if ctx.incoming else 0
        self._node.metrics.observe(ctx.route, status, seconds, received, ctx.sent)
        request_line(
            RequestLine(
                request_id=ctx.request_id,
                method=request.method[:16] if request.well_formed else UNKNOWN,
                route=ctx.route,
                status=status,
                us=int(seconds * 1_000_000),
                account=ctx.account_id,
            )
        )


class _WrongMethod(Exception):
    def __init__(self, allow: str) -> None:
        super().__init__(allow)
        self.allow = allow


def _with_templates(templates: Templates, folders: tuple[str, ...], handle: Handle) -> Handle:
    """A handler that calls `handle` after the templates in `folders` are compiled. They are compiled on a
    thread, so that the event loop is not blocked."""

    async def answer(request: Request, params: Mapping[str, str]) -> SentAnswer:
        await templates.ready(folders)
        return await handle(request, params)

    return answer


def _wants_page(request: Request) -> bool:
    """Whether a refusal should be shown as a page: for the address of a page, or if a browser requests
    HTML."""
    first, _, rest = request.path[1:].partition("/")
    if first in PREFIXES and rest.count("/") >= 1:
        return True
    reads = request.method in ("GET", "HEAD") and first not in ("api", "auth", "settings", "cli")
    return reads and "text/html" in request.headers.get("accept", "")


def _request_id() -> str:
    return f"{random.getrandbits(64):016x}"  # names a log line; need not be secret


def _common_headers(request: Request, response: HTTPResponse) -> None:
    """Set the headers that every answer has. A Content-Security-Policy that the route has set is kept."""
    headers = response.headers
    page = (response.content_type or "").startswith("text/html")
    headers["x-request-id"] = request.ctx.request_id
    headers.setdefault("x-content-type-options", "nosniff")
    headers.setdefault("referrer-policy", "no-referrer")
    headers.setdefault("content-security-policy", PAGE_POLICY if page else API_POLICY)
    headers.setdefault("cache-control", "no-store")


async def _refuse_rest(request: Request, response: HTTPResponse) -> None:
    """Send the answer, read the rest of the body for a moment, then close the connection. So a client that is
    still sending can read the answer."""
    stream: Any = request.stream
    stream.keep_alive = False
    sent = await request.respond(response)
    await sent.send(end_stream=True)
    await drain(request)


def _too_many_fields() -> HTTPResponse:
    return problems.plain(
        431, "Request Header Fields Too Large", f"the head has more than {FIELDS} fields; send fewer"
    )


def _answer_malformed() -> HTTPResponse:
    return problems.plain(400, "Bad Request", "the request cannot be read as HTTP/1.1")


def _answer_unreadable(error: SanicException) -> HTTPResponse:
    status = error.status_code or 500
    if status >= 500:
        return problems.plain(503, "Service Unavailable", "the request was not carried out; try again")
    titles = {408: "Request Timeout", 413: "Content Too Large", 417: "Expectation Failed"}
    return problems.plain(status, titles.get(status, "Bad Request"), "the request cannot be read as HTTP/1.1")
