"""Sends requests of the front to a runner on this machine. Each request has its own connection; closing it
makes the runner stop working on the request.

It does not use httpx, which would take several times as much CPU time for each token.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

_LINE = 1 << 20
_PIECE = 1 << 16


class Broken(Exception):
    """Raised if the runner closed the connection before its answer ended."""


class Answer:
    """The answer of a runner: status and headers, and its body, which is read in pieces."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.status = 0
        self.headers: dict[str, str] = {}

    async def read_head(self) -> None:
        line = await self._line()
        words = line.split(b" ", 2)
        if len(words) < 2 or not words[1].isdigit():
            raise Broken("no HTTP")
        self.status = int(words[1])
        while line := (await self._line()).rstrip(b"\r\n"):
            name, _, value = line.partition(b":")
            self.headers[name.decode("latin-1").lower()] = value.strip().decode("latin-1")

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yields the body as it arrives. Raises Broken if the connection ends early."""
        try:
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                while size := int((await self._line()).split(b";")[0], 16):
                    yield (await self._reader.readexactly(size + 2))[:-2]
                return
            remaining = int(self.headers.get("content-length", "0"))
            while remaining:
                piece = await self._reader.read(min(remaining, _PIECE))
                if not piece:
                    raise Broken("the answer was cut")
                remaining -= len(piece)
                yield piece
        except (asyncio.IncompleteReadError, ConnectionError, ValueError) as error:
            raise Broken(str(error)) from None

    async def whole(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])

    def close(self) -> None:
        """Close the connection. The runner then stops working on an answer that is not finished."""
        self._writer.close()

    async def _line(self) -> bytes:
        try:
            line = await self._reader.readline()
        except (ConnectionError, ValueError) as error:
            raise Broken(str(error)) from None
        if not line.endswith(b"\n"):
            raise Broken("the answer was cut")
        return line


async def ask(port: int, key: str, method: str, path: str, body: bytes = b"", kind: str = "") -> Answer:
    """Send a request to the runner on `port`, and return its answer with the body unread. `key`: the runner's
    key. `kind`: content type of the body. Raises Broken if the connection fails."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=_LINE)
    except OSError as error:
        raise Broken(str(error)) from None
    try:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: {kind or 'application/json'}\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        writer.write(head.encode("latin-1", "replace") + body)
        await writer.drain()
        answer = Answer(reader, writer)
        await answer.read_head()
        return answer
    except BaseException as error:
        writer.close()
        with suppress(Exception):
            writer.transport.abort()
        if isinstance(error, ConnectionError):
            raise Broken(str(error)) from None
        raise
