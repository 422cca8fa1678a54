"""Connections to one server, kept between requests: the transport below httpx.

It stands in for httpx's own (httpcore, h11), because here a connection counts for how long and with how much
a server keeps it busy, which httpcore gives no way to do, and because loading those two was an eighth of a
short command's CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING

import httpx

from svc.api import http1
from svc.api.connection import Connection, connect
from svc.api.http1 import Head
from svc.api.origin import is_loopback
from svc.api.proxy import Proxy, proxy_for

if TYPE_CHECKING:
    import ssl

KEPT_SECONDS = 5.0  # for which a connection without requests may be taken again
PORTS = {"http": 80, "https": 443}


class Pool(httpx.BaseTransport):
    """`connecting`, `timeout`: seconds to reach the server, and for one read or write. Threads may share it.
    UsageError for a proxy of the environment that cannot be used."""

    def __init__(self, origin: str, connecting: float, timeout: float) -> None:
        self._context = _trusting() if origin.startswith("https:") else None
        self._proxy = None if is_loopback(origin) else proxy_for(origin)
        self._connecting, self._timeout = connecting, timeout
        self._idle: list[tuple[Connection, float]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Raises httpx's errors, and OutOfPatience."""
        head, parts = self._head(request), _whole(request)
        connection = self._kept() or self._opened(request.url)
        try:
            answer = connection.ask(request.method, head, parts)
        except BaseException:
            connection.close()
            raise
        return httpx.Response(
            answer.status,
            headers=answer.fields,
            stream=_Body(self, connection, answer),
            extensions={"reason_phrase": answer.reason},
        )

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[0].close()

    def keep(self, connection: Connection) -> None:
        """Take back a connection whose answer was read to its end."""
        self._idle.append((connection, monotonic()))

    def _kept(self) -> Connection | None:
        while True:
            try:
                connection, since = self._idle.pop()
            except IndexError:
                return None
            if monotonic() - since < KEPT_SECONDS and connection.is_quiet():
                return connection
            connection.close()

    def _opened(self, url: httpx.URL) -> Connection:
        host, port = url.raw_host.decode("ascii"), url.port or PORTS[url.scheme]
        opened = self._first_hop(host, port)
        if self._context is None:
            opened.timeout = self._timeout
            return opened
        try:
            if self._proxy is not None:
                self._tunnel(opened, self._proxy, host, port)
            return opened.secured(self._context, host, self._timeout)
        except BaseException:
            opened.close()
            raise

    def _first_hop(self, host: str, port: int) -> Connection:
        if self._proxy is None:
            return connect(host, port, self._connecting)
        try:
            return connect(self._proxy.host, self._proxy.port, self._connecting)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise type(error)(f"the proxy {self._proxy.host}:{self._proxy.port}: {error}") from None

    def _tunnel(self, opened: Connection, proxy: Proxy, host: str, port: int) -> None:
        """Have the proxy connect us to the server. ProxyError if it does not."""
        target = f"[{host}]:{port}".encode() if ":" in host else f"{host}:{port}".encode()
        head = http1.request_head("CONNECT", target, [(b"Host", target), *proxy.fields])
        answer = opened.ask("CONNECT", head, ())
        if not 200 <= answer.status < 300:
            raise httpx.ProxyError(f"the proxy {proxy.host}:{proxy.port} answered {answer.status}")

    def _head(self, request: httpx.Request) -> bytes:
        target, fields = request.url.raw_path, request.headers.raw
        if self._proxy is not None and self._context is None:
            target = b"http://" + request.url.netloc + target
            fields = [*fields, *self._proxy.fields]
        try:
            return http1.request_head(request.method, target, fields)
        except ValueError as error:
            raise httpx.LocalProtocolError(str(error)) from None


class _Body(httpx.SyncByteStream):
    """What follows a head. The connection goes back to the pool if it was read to its end."""

    def __init__(self, pool: Pool, connection: Connection, head: Head) -> None:
        self._pool, self._connection, self._head = pool, connection, head
        self._ended = head.length == 0
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        yield from self._connection.body(self._head)
        self._ended = True

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._ended and self._head.lasting:
            self._pool.keep(self._connection)
        else:
            self._connection.close()


def _whole(request: httpx.Request) -> Iterator[bytes]:
    """The body, which must be as long as its head says: more would be read as another request.
    LocalProtocolError where it is not."""
    assert isinstance(request.stream, httpx.SyncByteStream)  # noqa: S101
    left = int(request.headers.get("content-length", "0"))
    for part in request.stream:
        left -= len(part)
        if left < 0:
            break
        yield part
    if left:
        raise httpx.LocalProtocolError("a body is not as long as its request says")


def _trusting() -> ssl.SSLContext:
    """How a server proves itself: by a certificate that the system trusts."""
    import ssl  # plain HTTP needs none of it

    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
