"""The gate that every request to a route passes. It checks rate limit, credential, signature, visibility,
rights and the shape of the body.

Handlers run only after it. Services receive a Caller or a View and never see the HTTP request.
"""

from __future__ import annotations

import asyncio
import random
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
from sanic.request import Request
from sanic.response import HTTPResponse

from localstore.core import names
from localstore.core.errors import (
    BadRequest,
    Conflict,
    EditionLacks,
    Forbidden,
    Invalid,
    NotFound,
    SvcError,
    Unauthorized,
    Unavailable,
    UnsupportedMediaType,
)
from localstore.core.model.auth import IdentityLevel
from localstore.core.model.rights import OPERATIONS, Operation
from localstore.core.model.sync import PROTOCOL
from localstore.core.validation import refusal
from relay.base.edition import EDITION
from relay.caller import Caller, Sight, View
from relay.db import repo as repos
from relay.db.engine.database import Contended, ForeignKeyViolation, Row
from relay.gate import credentials
from relay.gate.named import row_at
from relay.http import problems
from relay.http.address import client_address, network_of
from relay.http.body import Incoming
from relay.http.buffers import Lease
from relay.http.reply import SentAnswer, encode
from relay.http.routing import Route
from relay.http.storable import require_storable, require_storable_json
from relay.node import Node
from relay.once import AnsweredBefore, Once, StoredAnswer

SUBPROTOCOLS = (PROTOCOL,)
_OF_THE_WIRE = frozenset(
    {"content-length", "content-type", "connection", "date", "set-cookie", "x-request-id"}
)
FORM, FORM_FIELDS = "application/x-www-form-urlencoded", 64

RETRY_PAUSES = (0.01, 0.05, 0.2)  # seconds, randomised

T = TypeVar("T")
Handle = Callable[[Request, Mapping[str, str]], Awaitable[SentAnswer]]


def handler_of(route: Route, node: Node) -> Handle:
    """The function that answers requests for this route. `relay.http.app` turns its errors into answers."""
    decode_body = msgspec.json.Decoder(route.body) if route.body else None
    who = credentials.Credentials(node, route)
    operation, sees = route.operation, route.about_repo
    speaks = "socket" in route.wants
    filled = {parameter: name for parameter, name in route.filled.items() if name != "socket"}

    async def handle(request: Request, raw_params: Mapping[str, str]) -> SentAnswer:
        ctx = request.ctx
        address = client_address(request, node.config.proxy_hops)
        place = network_of(address)
        node.limiter.admit(place, route.cost, route.name, route.per_minute)
        lease = ctx.lease = Lease(node.buffers, place)
        params = {name: _decode_segment(value) for name, value in raw_params.items()}
        gzip = route.gzip and _content_coding(request) == "gzip"
        incoming = ctx.incoming = Incoming(request, route.max_body, lease, gzip=gzip)
        if not gzip:
            _require_plain(request)
        body = b"" if route.stream else await incoming.read()
        caller = Caller(node=node, principal=None, address=address, lease=lease)
        await who.identify(caller, request, incoming, body, params)
        if caller.principal is not None:
            ctx.account_id = caller.principal.account_id
            node.limiter.admit_account(caller.principal.account_id, route.cost)
        arguments: dict[str, Any] = {**params, "raw": body, "request": request}
        try:
            if not sees:
                arguments["caller"] = admit(operation, caller)
            await _read_marks(route, request, body, caller)
            if sees:
                arguments["view"] = caller = await view_of(operation, caller, params["id"])
            require_node_can(operation, node)
            strict = route.path.startswith("/api/")
            if route.query or strict:
                arguments["query"] = _read_query(request, route.query or NoQuery, strict)
            arguments["body"] = _read_body(request, route, body, decode_body) if decode_body else None
            arguments["upload"] = incoming
            handler_arguments = {parameter: arguments[name] for parameter, name in filled.items()}
            if speaks:
                return await _converse(route, request, caller, handler_arguments)
            return await _run_handler(route, request, caller, handler_arguments)
        except AnsweredBefore as before:
            await caller.spend_nonce()
            return _repeat_answer(before.answer)
        except SvcError:
            await caller.conclude(None)
            await caller.refuse_replay()
            raise
        except BaseException as error:
            await asyncio.shield(caller.abandon(error))
            raise

    return _answering_git(handle) if route.password else handle


def _answering_git(handle: Handle) -> Handle:
    """A handler that answers like `handle`, but sends Unauthorized and NotFound as text that git can show."""

    async def answer(request: Request, params: Mapping[str, str]) -> SentAnswer:
        try:
            return await handle(request, params)
        except (Unauthorized, NotFound) as error:
            return SentAnswer(problems.to_git(error))

    return answer


async def on_socket(caller: Caller, operation: str, repo_id: str, work: Callable[[View], Awaitable[T]]) -> T:
    """Run `work` for a message of a socket and return its result. The same rules apply as to a request for
    this operation: rate limits, current rights, and retries of transactions that the database aborted."""
    node, op = caller.node, OPERATIONS[operation]
    node.limiter.admit_message(caller.network, caller.me.account_id)
    lease = Lease(node.buffers, caller.network)
    asking = Caller(node, caller.principal, caller.address, lease=lease)

    async def attempt() -> T:
        view = await view_of(op, asking, repo_id)
        require_node_can(op, node)
        return await work(view)

    try:
        return await _retry_aborted(attempt)
    finally:
        lease.release()


async def _run_handler(route: Route, request: Request, caller: Caller, filled: dict[str, Any]) -> SentAnswer:
    """Run the handler and return its answer. `filled`: the handler's arguments by name. If the request has an
    Idempotency-Key, the answer is stored in the transaction with the request's effect."""

    async def attempt() -> SentAnswer:
        answer = await encode(request, route, await route.handler(**filled))
        await caller.conclude(_to_store(answer))
        return answer

    return await _retry_aborted(attempt, () if route.stream else RETRY_PAUSES)


async def _retry_aborted(attempt: Callable[[], Awaitable[T]], pauses: Sequence[float] = RETRY_PAUSES) -> T:
    """Run `attempt`, and again if the database aborted its transaction. `pauses`: seconds before each retry;
    empty if the body streams, because it can be read only once."""
    for pause in (*pauses, None):
        try:
            return await attempt()
        except ForeignKeyViolation:
            raise Conflict("something that this request refers to was deleted meanwhile; try again") from None
        except Contended:
            if pause is None:
                break
            await asyncio.sleep(pause * (0.5 + random.random()))  # noqa: S311  # spreads, hides nothing
    raise Unavailable("conflicting writes; try again")


async def _converse(route: Route, request: Request, caller: Caller, filled: dict[str, Any]) -> SentAnswer:
    """Open the WebSocket and run the handler. `filled`: the handler's other arguments by name. The socket
    closes when the handler returns or fails."""
    if request.headers.get("upgrade", "").lower() != "websocket":
        raise BadRequest("this path is a WebSocket; ask for an upgrade")
    offered = ",".join(request.headers.getall("sec-websocket-protocol", ()))
    if not {protocol.strip() for protocol in offered.split(",")} & set(SUBPROTOCOLS):
        raise BadRequest(f"this socket speaks {SUBPROTOCOLS[0]}; offer that as its subprotocol")
    protocol: Any = request.transport.get_protocol()
    node, place = caller.node, caller.network
    session = caller.principal.session_id if caller.principal else ""
    with node.sockets.one(session, place):
        toll = partial(node.limiter.frames, session, place)
        socket = await protocol.open_websocket(request, SUBPROTOCOLS, toll)
        request.ctx.upgraded = True
        try:
            await route.handler(**filled, socket=socket)
        finally:
            await socket.close()
    return SentAnswer(None)


def _to_store(answer: SentAnswer) -> StoredAnswer | None:
    """The answer in the form in which it is stored; None for a stream, which is not stored."""
    response = answer.response
    if response is None or answer.stream is not None:
        return None
    headers = [(str(name), str(value)) for name, value in response.headers.items()]
    return StoredAnswer(
        response.status,
        bytes(response.body or b""),
        response.content_type,
        [header for header in headers if header[0].lower() not in _OF_THE_WIRE],
    )


def _repeat_answer(stored: StoredAnswer) -> SentAnswer:
    return SentAnswer(HTTPResponse(stored.body, stored.status, dict(stored.headers), stored.media))


async def _read_marks(route: Route, request: Request, body: bytes, caller: Caller) -> None:
    """Read the turn and the Idempotency-Key of the request into `caller`. If the key has a stored answer,
    AnsweredBefore is raised, even if the repository of the request is now deleted or hidden."""
    caller.turn = _turn_of(request)
    if route.stream or not route.changes:
        return
    if not route.keyed:
        Once.of(request, body, None)
    elif caller.principal is not None:
        caller.once = Once.of(request, body, caller.principal.account_id)
        if (answer := await caller.once.find(caller.node.db.lookup)) is not None:
            raise AnsweredBefore(answer)


def _turn_of(request: Request) -> str | None:
    turn = request.headers.get(names.TURN_HEADER)
    return None if turn is None else names.turn(turn)


def admit(operation: Operation, caller: Caller) -> Caller:
    """Return the caller if it may perform the operation. Only for operations that are not about a repository.
    Raises IdentityLevel for a guest if the operation needs an account. Raises Forbidden for a caller with a
    token if the operation needs a browser session."""
    if operation.about == "account" and caller.me.is_guest and not operation.guest:
        raise IdentityLevel("a guest session cannot do this; sign in with an account: svc login")
    if operation.about == "browser" and caller.me.via != "cookie":
        raise Forbidden("this decision needs a browser session, not a token")
    return caller


async def view_of(operation: Operation, caller: Caller, repo_id: str) -> View:
    """A view of the repository for this operation. If the gate has read the repository's row together with
    the session, that row is used. Otherwise one query reads the repository and the caller's role. Hidden and
    missing repositories give the same answer at the same cost."""
    if caller.principal is None and not operation.anonymous:
        raise Unauthorized("sign in first; run: svc login")
    row = (caller.sight or await _read_sight(caller, repo_id)).row
    return await _make_view(operation, caller, row)


async def view_at(operation: Operation, caller: Caller, owner: str, name: str) -> View:
    """A view of the repository at OWNER/NAME for this operation. NAME may be an earlier name of the
    repository. If the gate has read the repository already (`caller.sight`), it is not read again. Raises
    NotFound if the repository is missing or hidden."""
    if caller.sight is not None:
        return await _make_view(operation, caller, caller.sight.row)
    account = caller.principal.account_id if caller.principal else ""
    return await _make_view(operation, caller, await row_at(caller.node.db, owner, name, account))


async def _make_view(operation: Operation, caller: Caller, row: Row | None) -> View:
    if row is None:
        raise NotFound
    view = View(
        node=caller.node,
        principal=caller.principal,
        address=caller.address,
        nonce=caller.nonce,
        lease=caller.lease,
        once=caller.once,
        turn=caller.turn,
        repo=repos.to_row(row),
        role=caller.role_of(row),
        operation=operation,
    )
    view.require_allowed()
    if view.repo.policy is not None:
        await view.load_policy()
    return view


async def _read_sight(caller: Caller, repo_id: str) -> Sight:
    account = caller.principal.account_id if caller.principal else ""
    return Sight(await caller.node.db.lookup(repos.VISIBLE, id=repo_id, account=account))


def require_node_can(operation: Operation, node: Node) -> None:
    """Raise EditionLacks if the node's edition does not have the operation. Raise NoSpace if the node has too
    little disk space for it."""
    if not operation.in_edition(EDITION):
        raise EditionLacks(f"this node is {EDITION}; {operation.name} needs {operation.edition}")
    if operation.grows:
        node.reserve.require()


def _require_plain(request: Request) -> None:
    """Raise UnsupportedMediaType for a compressed body, because a small one could unpack to a thousand times
    its size."""
    if _content_coding(request) != "identity":
        raise UnsupportedMediaType("send the body without Content-Encoding")


def _content_coding(request: Request) -> str:
    return ",".join(request.headers.getall("content-encoding", ("identity",))).strip().lower()


def _decode_segment(raw: str) -> str:
    """Percent-decode one path parameter, which Sanic does not do. Refuses a parameter that is not UTF-8."""
    if "%" not in raw:
        return raw  # printable ASCII, as all of a request line
    try:
        value = urllib.parse.unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest("the path is not UTF-8") from None
    if "\0" in value:
        raise Invalid("the path contains a NUL")
    return value


class NoQuery(msgspec.Struct, frozen=True):
    """The query of a route that takes no parameters."""


def _read_query(request: Request, shape: type[msgspec.Struct], strict: bool) -> msgspec.Struct:
    """Read the query of a request into the struct `shape`. `strict`: refuse unknown parameters, so that a
    misspelt filter is noticed. Pages are not strict, because other sites add parameters to links."""
    allowed = shape.__struct_encode_fields__ if strict else None
    parameters: dict[str, str] = {}
    for name, value in request.get_query_args(keep_blank_values=True):
        if name in parameters:
            raise Invalid(f"the query parameter {name[:40]!r} is given twice")
        if allowed is not None and name not in allowed:
            has = f"it has {', '.join(allowed)}" if allowed else "it has none"
            raise Invalid(f"the query has no parameter {name[:40]!r}; {has}")
        if "\ufffd" in value:
            raise Invalid(f"the query parameter {name[:40]!r} is not UTF-8")
        parameters[name] = value
    try:
        query = msgspec.convert(parameters, shape, strict=False)
        require_storable(msgspec.structs.asdict(query))
        return query
    except msgspec.ValidationError as error:
        raise refusal(error, shape) from None


def _read_body(request: Request, route: Route, body: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    media = (request.headers.get("content-type") or "").split(";")[0].strip().lower()
    if route.forms and media == FORM:
        return _read_form(route, body)
    if media != "application/json":
        raise UnsupportedMediaType(
            f"this route takes application/json, not {media[:60] or 'an untyped body'}"
        )
    try:
        value = decoder.decode(body)
    except msgspec.ValidationError as error:
        raise refusal(error, route.body) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    require_storable_json(body)
    return value


def _read_form(route: Route, body: bytes) -> Any:
    try:
        pairs = urllib.parse.parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FORM_FIELDS
        )
        value = msgspec.convert(dict(pairs), route.body, strict=False)
        require_storable(dict(pairs))
        return value
    except msgspec.ValidationError as error:
        raise refusal(error, route.body) from None
    except ValueError:
        raise BadRequest("the body is not a form") from None
