"""Reads the answers of a server. Limits their size while they arrive, decodes them, and makes the texts in
them safe for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from localstore.core import paths
from localstore.core.errors import (
    NotFound,
    RateLimited,
    ServerMisbehaved,
    ServerUnreachable,
    SvcError,
    Unauthorized,
    from_problem,
)
from localstore.core.model.limits import MIB
from localstore.core.numbers import whole_number
from svc.http.bounds import Stopped
from svc.http.connection_limits import ConnectionLimitExceeded

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

RAW_MAX = 256 * MIB
PROBLEM_MAX = 1 * MIB
DETAIL_CHARS = 2000
SWITCHING_PROTOCOLS, PARTIAL_CONTENT = 101, 206
BODY = "svc.body"  # extension of a response: what it held, or the error that reading it ended with
NOTHING_HERE = "it does not exist, or you may not see it; check the name, or sign in: svc login"  # a bare 404
REPEATABLE = "svc.repeatable"  # extension of a response: its request may be sent again


class Raw(msgspec.Struct, frozen=True):
    """An answer as it was received. `headers` has (name, value) of each header. A header that was sent
    several times is listed several times."""

    status: int
    headers: list[tuple[str, str]]
    content_type: str
    body: bytes


def json(response: httpx.Response, returns: type[T], cap: int) -> T:
    """Decode the body of a successful answer, at most `cap` bytes, as the type `returns`. Raises the error
    that the server answered, or ServerMisbehaved for an invalid answer."""
    require_success(response)
    if not _media(response).endswith("json"):
        raise _misbehaviour(
            response, f"answered with {_media(response) or 'no content type'} instead of JSON"
        )
    content = _receive_body(response, cap)
    try:
        return msgspec.json.decode(content, type=returns)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        why = paths.terminal_safe(str(error)[:200])
        raise _misbehaviour(response, f"sent an answer that cannot be read ({why})") from None


def nothing(response: httpx.Response) -> None:
    """Raise the error of an answer that is not a success. If it is a success, its body is ignored."""
    require_success(response)


def body(response: httpx.Response, cap: int) -> bytes:
    """Return the body of a successful answer, at most `cap` bytes. Raises the error of any other answer."""
    return bytes(_receive_body(require_success(response), cap))


def raw(response: httpx.Response, cap: int) -> Raw:
    """Read the whole answer, at most `cap` bytes, whether or not it is a success."""
    return Raw(response.status_code, response.headers.multi_items(), _media(response), _read(response, cap))


def require_success(response: httpx.Response) -> httpx.Response:
    """Return the response itself, with its body unread, if it is a success. Otherwise raises the error that
    the response contains."""
    if response.is_success:
        return response
    raise problem(response)


def require_switch(response: httpx.Response) -> httpx.Response:
    """Return the response itself if the server has switched to the requested protocol. Otherwise raises the
    error that the response contains, or ServerMisbehaved if it is a success of another kind."""
    if response.status_code == SWITCHING_PROTOCOLS:
        return response
    if response.is_success:
        raise _misbehaviour(
            response, f"answered {response.status_code} and opens no socket; check the address"
        )
    raise problem(response)


def pieces(response: httpx.Response, cap: int) -> Iterator[bytes]:
    """Yields the body in pieces.

    Raises ServerMisbehaved if the body is compressed or longer than `cap` bytes, ServerUnreachable if the
    connection ends early or is too slow.
    """
    import httpx

    if response.headers.get("content-encoding", "identity") != "identity":
        raise _misbehaviour(response, "sent an encoded answer that nobody asked for")
    total = 0
    try:
        for piece in response.iter_raw():
            total += len(piece)
            if total > cap:
                raise _misbehaviour(response, f"sent more than {cap} bytes")
            yield piece
    except ConnectionLimitExceeded as error:
        raise _interruption_error(response, f"it {error}") from None
    except Stopped as stop:
        remedy = remedy_of(response.extensions.get(REPEATABLE, False))
        raise stop.bound.error(_origin(response), remedy) from None
    except httpx.TransportError as error:
        why = "no more data arrived" if isinstance(error, httpx.TimeoutException) else "it was closed"
        raise _interruption_error(response, why) from None


def read_start(response: httpx.Response, start: int) -> int:
    """Return the offset of the first byte in an answer to a request for the bytes from `start` on. It is
    `start`, or 0 if the server sends everything. Raises ServerMisbehaved for any other range."""
    if response.status_code != PARTIAL_CONTENT:
        return 0
    if not response.headers.get("content-range", "").startswith(f"bytes {start}-"):
        raise _misbehaviour(response, "sent other bytes than it was asked for")
    return start


def problem(response: httpx.Response) -> SvcError:
    """Return the error to raise for a failed answer. It is made from the answer's problem document (RFC
    9457), or else from its status."""
    document = _document(response)
    if document is None:
        return _misbehaviour(
            response, f"answered {response.status_code} and not as a svc server does; check the address"
        )
    safe = safe_problem(document)
    error = from_problem(safe, response.status_code)
    if type(error) is Unauthorized and not safe.get("detail"):
        error.detail = "this needs a session; run: svc login"
    if isinstance(error, NotFound) and not safe.get("detail"):
        error.detail = NOTHING_HERE
    if isinstance(error, RateLimited) and "detail" not in safe:
        error.detail = "too many requests; wait a moment and try again"
    return error


def safe_problem(document: dict[str, Any]) -> dict[str, Any]:
    """Return the server's problem document with control characters in its texts escaped for a terminal."""
    safe: dict[str, Any] = _escape_texts(document)
    if not isinstance(safe.get("detail"), str):
        safe.pop("detail", None)
    return safe


def server_time(response: httpx.Response) -> float | None:
    """Return the server's time in Unix seconds, which a 401 answer contains if the time of the request's
    signature was wrong. None for other answers. The body can be read again later."""
    document = _document(response) or {}
    seconds = document.get("server_time")
    refused = document.get("code") == "request_not_bound"
    return float(seconds) if refused and isinstance(seconds, int) and 0 < seconds < 1 << 40 else None


def reason(response: httpx.Response) -> str | None:
    """Return the member `reason` of a refusal; None if there is none. The body can be read again later."""
    text = (_document(response) or {}).get("reason")
    return text if isinstance(text, str) else None


def _document(response: httpx.Response) -> dict[str, Any] | None:
    if _media(response) not in ("application/problem+json", "application/json"):
        return None
    try:
        document = msgspec.json.decode(_read(response, PROBLEM_MAX))
    except (ServerMisbehaved, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return document if isinstance(document, dict) and isinstance(document.get("code"), str) else None


def _escape_texts(value: Any) -> Any:
    """Return a JSON value with all its texts escaped for a terminal, and cut to at most DETAIL_CHARS
    characters."""
    if isinstance(value, str):
        return paths.terminal_safe(value[:DETAIL_CHARS])
    if isinstance(value, list):
        return [_escape_texts(item) for item in value]
    if isinstance(value, dict):
        return {paths.terminal_safe(str(key)): _escape_texts(item) for key, item in value.items()}
    return value


def _media(response: httpx.Response) -> str:
    value: str = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return paths.terminal_safe(value[:100])


def _read(response: httpx.Response, cap: int) -> bytes:
    """Read the whole body, and cache it so that it can be read again. If reading fails, the error is cached
    and raised again, too."""
    content: bytes | SvcError | None = response.extensions.get(BODY)
    if content is None:
        try:
            content = bytes(_receive_body(response, cap))
        except SvcError as error:
            content = error
        response.extensions[BODY] = content
    if isinstance(content, SvcError):
        raise content
    return content


def _receive_body(response: httpx.Response, cap: int) -> bytearray:
    """Read the whole body from the connection, at most `cap` bytes. The result is not cached."""
    declared = whole_number(response.headers.get("content-length", ""))
    if declared is not None and declared > cap:
        raise _misbehaviour(response, f"sent more than {cap} bytes")
    content = bytearray()
    for piece in pieces(response, cap):
        content += piece
    return content


def _interruption_error(response: httpx.Response, why: str) -> ServerUnreachable:
    """Return the error for an answer that broke off because of `why`. It tells the user whether the request
    may be repeated."""
    announced = whole_number(response.headers.get("content-length", ""))
    of = f" of {announced}" if announced is not None else ""
    remedy = remedy_of(response.extensions.get(REPEATABLE, False))
    return ServerUnreachable(
        f"the connection to {_origin(response)} broke off after {response.num_bytes_downloaded}{of} bytes of "
        f"the answer ({why}); {remedy}"
    )


def remedy_of(repeatable: bool) -> str:
    """Return the end of a sentence that says what to do about a request without an answer. `repeatable` says
    whether the request may be repeated without harm."""
    if repeatable:
        return "check your network, then run the command again"
    return "the request may have taken effect; check before you run the command again"


def _origin(response: httpx.Response) -> str:
    url = response.request.url
    return f"{url.scheme}://{url.netloc.decode('ascii')}"


def _misbehaviour(response: httpx.Response, what: str) -> ServerMisbehaved:
    return ServerMisbehaved(f"{_origin(response)} {what}")
