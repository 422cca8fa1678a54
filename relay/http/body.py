"""Reads request bodies with a limit and a deadline, and compares them with the signature.

Sanic's limit does not apply to streamed routes. On other routes Sanic resets the connection of an oversized
body. So every route streams, and this module is the only reader.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
import zlib
from collections.abc import AsyncIterator
from typing import Any, Protocol

from blake3 import blake3
from sanic.exceptions import SanicException
from sanic.request import Request

from localstore.core.errors import BadRequest, NotBound, TooLarge, TooSlow
from localstore.core.identity.request_signature import ContentDigest
from localstore.core.model.limits import KIB, MIB
from relay.http.buffers import Buffers, Lease

FIRST_SECONDS = 30.0  # allowed without a byte, and before SLOWEST_RATE applies
SLOWEST_RATE = 1024  # bytes a second
DRAIN_BYTES, DRAIN_SECONDS = 8 * MIB, 5.0
GZIP, UNPACKED = 16 + zlib.MAX_WBITS, 64 * KIB  # bytes that are unpacked at once
_THREAD_HASH = 1 * MIB


class _Hash(Protocol):
    def update(self, data: bytes, /) -> object: ...
    def digest(self) -> bytes: ...


class Incoming:
    """The body of one request; implements `relay.http.routing.Upload`. `length`: the number of bytes that the
    request announces, None for a chunked body; `received`: bytes read so far. `gzip`: whether the body is
    compressed; the limit then applies to the unpacked bytes."""

    def __init__(
        self, request: Request, max_body: int, lease: Lease | None = None, *, gzip: bool = False
    ) -> None:
        self._request = request
        self._gzip = gzip
        self._max = max_body
        self._lease = lease or Lease(Buffers(), "")
        self.received = 0
        self._signed: ContentDigest | None = None
        self._hash: _Hash | None = None
        self._promised: bytes | None = None
        self._ended = False
        self.length = _announced_length(request)
        if self.length is not None and self.length > max_body:
            raise _too_large(max_body)

    def expect(self, signed: ContentDigest) -> None:
        """Set the digest of the body that the request's signature covers. `finish` compares it with the
        body."""
        self._signed = signed
        self._hash = hashlib.sha256() if signed.algorithm == "sha-256" else blake3()

    async def read(self) -> bytes:
        """The whole body. It is no larger than the route's limit, so callers may keep it in memory."""
        if not _has_body(self._request):
            self._ended = True
            return b""
        return await self._collect(self._read_parts())

    async def whole(self) -> bytes:
        """The whole body of a route that streams, for a caller that knows that it fits in memory."""
        return await self._collect(self.chunks())

    async def _collect(self, arriving: AsyncIterator[bytes]) -> bytes:
        parts = []
        async for part in arriving:
            self._lease.reserve(len(part))
            parts.append(part)
        return b"".join(parts)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives, unpacked if it is compressed."""
        async for part in self._unpack() if self._gzip else self._read_parts():
            if self._hash is not None and self._promised is None:
                await self._feed(part)
            yield part

    def promise(self, toc: bytes) -> None:
        """Set the pack's table of contents, if the body is a pack. The request's signature covers only the
        digest of this table. The digests in the table cover the rest of the body."""
        self._promised = toc

    async def finish(self) -> None:
        """Raise an error unless the body is complete and matches the signature. Await it before any
        effect."""
        if not self._ended:
            raise BadRequest("data after the end of the body")
        if self._signed is None:
            return
        if self._promised is not None:
            self._signed.check_body(self._promised)
        elif self._hash is not None:
            self._signed.check(self._hash.digest())
        else:
            raise NotBound("nothing was hashed of this body", reason="body")

    async def _feed(self, part: bytes) -> None:
        assert self._hash is not None  # noqa: S101  # `chunks` asked
        if len(part) >= _THREAD_HASH:
            await asyncio.to_thread(self._hash.update, part)
        else:
            self._hash.update(part)

    async def _unpack(self) -> AsyncIterator[bytes]:
        """Yields the unpacked parts of a gzip body. Each part is unpacked in pieces, so that memory never
        holds more than the limit, even if the body would unpack to much more."""
        unpacker = zlib.decompressobj(GZIP)
        size = 0
        async for packed in self._read_parts():
            rest = packed
            while rest and not unpacker.eof:
                try:
                    part = unpacker.decompress(rest, UNPACKED)
                except zlib.error:
                    raise BadRequest("the body is not gzip, as its Content-Encoding says") from None
                rest = unpacker.unconsumed_tail
                size += len(part)
                if size > self._max:
                    raise _too_large(self._max)
                if part:
                    yield part
            if rest or unpacker.unused_data:
                raise BadRequest("data after the end of the gzip body")
        if not unpacker.eof:
            raise BadRequest("the gzip body ends in the middle")

    async def _read_parts(self) -> AsyncIterator[bytes]:
        """The parts of the body as they arrive. Raises TooSlow, or TooLarge above the limit."""
        stream: Any = self._request.stream
        began = time.monotonic()
        while stream is not None and stream.request_body:
            patience = FIRST_SECONDS + self.received / SLOWEST_RATE - (time.monotonic() - began)
            try:
                async with asyncio.timeout(min(FIRST_SECONDS, patience)):
                    part = await stream.read()
            except TimeoutError:
                raise TooSlow("the body arrives too slowly; send it again over a faster connection") from None
            if not part:
                continue
            self.received += len(part)
            if self.received > self._max:
                raise _too_large(self._max)
            yield part
        self._ended = True


def skip_arrived(request: Request) -> bool:
    """Drop a body that nothing has read, if all of it has arrived. Returns whether nothing is left to
    read."""
    stream: Any = request.stream
    if stream is None or not stream.request_body:
        return True
    unread = stream.request_bytes_left
    if stream.request_body == "chunked" or len(stream.recv_buffer) < unread:
        return False
    del stream.recv_buffer[:unread]
    stream.request_bytes_left = 0
    stream.request_body = None
    return True


async def drain(request: Request) -> None:
    """Read and drop the rest of a refused body, so that the client reads the answer instead of a reset
    connection. If the body exceeds limits of size or time, the connection is closed."""
    stream: Any = request.stream
    budget = DRAIN_BYTES
    with contextlib.suppress(TimeoutError, SanicException):
        async with asyncio.timeout(DRAIN_SECONDS):
            while stream is not None and stream.request_body and budget > 0:
                budget -= len(await stream.read() or b"")
    if stream is not None:
        stream.request_body = None


def _has_body(request: Request) -> bool:
    stream: Any = request.stream
    return stream is not None and bool(stream.request_body)


def _announced_length(request: Request) -> int | None:
    if not _has_body(request):
        return 0
    stream: Any = request.stream
    return None if stream.request_body == "chunked" else int(stream.request_bytes_left)


def _too_large(max_body: int) -> TooLarge:
    return TooLarge(f"the body is larger than the {max_body} bytes this route takes", limit=max_body)
