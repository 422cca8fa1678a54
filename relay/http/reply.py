"""Turns the results of handlers into HTTP responses."""

from __future__ import annotations

import asyncio
import gzip
import urllib.parse
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
from sanic.request import Request
from sanic.response import HTTPResponse

from localstore.core.errors import RangeUnsatisfiable
from localstore.core.model.base import Page
from relay.http.bytes_reply import cut, not_modified, parse_range
from relay.http.routing import Reply, Route

_ENCODER = msgspec.json.Encoder()
LARGE = 256 * 1024  # bytes
COMPRESSED_FROM = 1024  # bytes of a page
GZIP_LEVEL = 4  # 47 KB of coloured lines: 10.5 KB in 0.6 ms; level 2 11.3 KB in 0.5, level 6 9.9 KB in 1.1


@dataclass(slots=True)
class SentAnswer:
    """An HTTP answer. `stream`: parts of the body, which are sent after the header of `response`. `response`
    is None for a WebSocket."""

    response: HTTPResponse | None
    stream: AsyncIterator[bytes] | None = None


async def encode(request: Request, route: Route, result: Any) -> SentAnswer:
    """The answer for a handler's result: a struct becomes JSON with the route's status, None becomes 204, a
    Reply is sent unchanged."""
    if isinstance(result, Reply):
        return await _encode_reply(request, route, result)
    if result is None:
        return SentAnswer(HTTPResponse(b"", 204))
    headers = None
    if isinstance(result, Page) and result.next_cursor is not None:
        headers = {"link": _next_link(request, result.next_cursor)}
    return SentAnswer(_json(result, route.status, headers))


async def _encode_reply(request: Request, route: Route, reply: Reply) -> SentAnswer:
    headers = {name.lower(): value for name, value in reply.headers.items()}
    headers.setdefault("cache-control", "no-store")
    if reply.etag is not None:
        headers["etag"] = reply.etag
        if request.method in ("GET", "HEAD") and not_modified(
            request.headers.get("if-none-match"), reply.etag
        ):
            await _close(reply.stream)
            return SentAnswer(_with_cookies(HTTPResponse(b"", 304, headers=headers), reply))
    if reply.stream is not None:
        return await _encode_stream(request, reply, headers)
    if reply.body is None:
        return SentAnswer(_with_cookies(HTTPResponse(b"", reply.status, headers=headers), reply))
    if not isinstance(reply.body, (bytes, str)):
        return SentAnswer(_with_cookies(_json(reply.body, reply.status, headers), reply))
    body = reply.body.encode("utf-8") if isinstance(reply.body, str) else reply.body
    status = reply.status
    if reply.compress:
        headers["vary"] = f"{headers['vary']}, Accept-Encoding" if "vary" in headers else "Accept-Encoding"
        if len(body) > COMPRESSED_FROM and _takes_gzip(request):
            headers["content-encoding"] = "gzip"
            if reply.etag is not None:  # the bytes are others than those without compression
                headers["etag"] = f"W/{reply.etag}"
            body = await _compress(body)
    elif part := _part(request, reply, len(body), headers):
        status, body = 206, body[slice(*part)]
    return SentAnswer(_with_cookies(HTTPResponse(body, status, headers, reply.content_type), reply))


async def _compress(body: bytes) -> bytes:
    """The body in gzip. A large one is compressed on a thread, which takes up to 30 ms for a megabyte."""
    if len(body) > LARGE:
        return await asyncio.to_thread(gzip.compress, body, GZIP_LEVEL, mtime=0)
    return gzip.compress(body, GZIP_LEVEL, mtime=0)


async def _encode_stream(request: Request, reply: Reply, headers: dict[str, str]) -> SentAnswer:
    stream, status, length = reply.stream, reply.status, reply.length
    assert stream is not None  # noqa: S101  # the caller asked
    if length is not None:
        if part := _part(request, reply, length, headers):
            status, length, stream = 206, part[1] - part[0], await _section(reply, stream, part)
        headers["content-length"] = str(length)
    response = _with_cookies(HTTPResponse(None, status, headers, reply.content_type), reply)
    if request.method == "HEAD" or length == 0:
        await _close(stream)
        return SentAnswer(response)
    return SentAnswer(response, await _Begun.of(stream))


class _Begun:
    """A stream whose first piece is read already. An error of the first piece can still be answered in words;
    once the head of the answer is sent, the connection can only be cut. `first`: the first piece, or None if
    the stream has none."""

    def __init__(self, stream: AsyncIterator[bytes], first: bytes | None) -> None:
        self._stream, self._first = stream, first
        self._ended = first is None

    @classmethod
    async def of(cls, stream: AsyncIterator[bytes]) -> _Begun:
        try:
            return cls(stream, await anext(stream, None))
        except BaseException:
            await _close(stream)
            raise

    def __aiter__(self) -> _Begun:
        return self

    async def __anext__(self) -> bytes:
        if self._ended:
            raise StopAsyncIteration
        first, self._first = self._first, None
        return await anext(self._stream) if first is None else first

    async def aclose(self) -> None:
        await _close(self._stream)


async def _section(reply: Reply, stream: AsyncIterator[bytes], part: tuple[int, int]) -> AsyncIterator[bytes]:
    if reply.section is None:
        return cut(stream, *part)
    await _close(stream)
    return reply.section(*part)


def in_pieces(request: Request, answer: SentAnswer) -> SentAnswer:
    """Turn a large body of an answer into a stream, and return the changed answer. So a slow client keeps
    only a piece of the body in the connection's buffer. Answers to HEAD and small answers are returned
    unchanged."""
    response = answer.response
    if (
        request.method == "HEAD"
        or response is None
        or answer.stream is not None
        or len(response.body or b"") <= LARGE
    ):
        return answer
    body, response.body = response.body, b""
    assert body is not None  # noqa: S101  # it is large
    response.headers["content-length"] = str(len(body))
    return SentAnswer(response, _pieces(body))


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), LARGE):
        yield body[start : start + LARGE]


def _takes_gzip(request: Request) -> bool:
    """Whether the client accepts gzip. `gzip;q=0` in the header means that it does not."""
    for part in request.headers.get("accept-encoding", "").lower()[:1024].split(","):
        coding, _, weight = part.partition(";")
        if coding.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _part(request: Request, reply: Reply, length: int, headers: dict[str, str]) -> tuple[int, int] | None:
    """The bytes to send, as (start, end); None for all bytes. Sets the headers about ranges in `headers`.
    Only answers with an ETag can be sent in ranges."""
    if reply.etag is None or reply.status != 200 or request.method != "GET":
        return None
    headers["accept-ranges"] = "bytes"
    try:
        part = parse_range(request.headers.get("range"), request.headers.get("if-range"), reply.etag, length)
    except ValueError:
        raise RangeUnsatisfiable(f"this answer has {length} bytes", length=length) from None
    if part is not None:
        headers["content-range"] = f"bytes {part[0]}-{part[1] - 1}/{length}"
    return part


def _json(result: Any, status: int, headers: dict[str, str] | None) -> HTTPResponse:
    return HTTPResponse(_ENCODER.encode(result), status, headers, "application/json")


def _with_cookies(response: HTTPResponse, reply: Reply) -> HTTPResponse:
    for cookie in reply.cookies:
        response.headers.add("set-cookie", cookie)
    return response


async def _close(stream: AsyncIterator[bytes] | None) -> None:
    if stream is not None and hasattr(stream, "aclose"):
        await stream.aclose()


def _next_link(request: Request, cursor: str) -> str:
    """The value of the header `Link: <…>; rel="next"` (RFC 8288) for a page of a list. It is the address of
    the same request with the cursor of the next page."""
    query = [(k, v) for k, v in request.get_query_args(keep_blank_values=True) if k != "cursor"]
    target = urllib.parse.urlencode([*query, ("cursor", cursor)])
    return f'<{request.path}?{target}>; rel="next"'
