"""Connections to one origin: opening, through a proxy and with TLS where it takes them, sending, reuse.

One request at a time on each connection; one that waited for at most `IDLE_MAX` is used again. What arrives
is read by `svc.api.message`. A library for this (httpx) would take 50 ms of CPU to load, more than what most
commands send.
"""

from __future__ import annotations

import re
import selectors
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from svc.api.message import RECEIVE, BrokeOff, Incoming, NotConnected, TimedOut, TransportError
from svc.api.proxy import Proxy, proxy_for

if TYPE_CHECKING:
    import ssl

CONNECT_TIMEOUT, IO_TIMEOUT = 10.0, 60.0  # seconds, the second for each wait
IDLE_MAX = 5.0
REDIRECTS = (301, 302, 303, 307, 308)

_TARGET = re.compile(r"[!-~]+")
_FIELD = re.compile(r"[!-9;-~]+: [ -~]*")


class Response:
    """An answer whose body is read by `iter_raw`. `received`: bytes of it so far. `repeatable`: its request
    may be sent again. `problem` is for whoever read the body of an error and may be asked again."""

    def __init__(self, incoming: Incoming, connection: _Connection, wire: Wire, repeatable: bool) -> None:
        self.status, self.headers = incoming.status, incoming.headers
        self.origin, self.repeatable = wire.origin, repeatable
        self.received = 0
        self.problem: bytes | None = None
        self._incoming, self._wire = incoming, wire
        self._connection: _Connection | None = connection

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def redirects(self) -> bool:
        return self.status in REDIRECTS and "location" in self.headers

    def iter_raw(self) -> Iterator[bytes]:
        """The body in pieces. TransportError when it breaks off."""
        for piece in self._incoming.body():
            self.received += len(piece)
            yield piece

    def close(self) -> None:
        """Give the connection back, or end it where bytes of this answer may still come."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if self._incoming.reusable:
                self._wire.give_back(connection)
            else:
                connection.close()


class Wire:
    """Requests to `origin`, http(s)://host[:port]. `proxies`: whether those that the environment or
    the system names are used."""

    def __init__(self, origin: str, authority: str, proxies: bool) -> None:
        self.origin, self._authority = origin, authority
        self._proxy = proxy_for(origin) if proxies else None
        self._idle: list[tuple[float, _Connection]] = []
        self._trust: ssl.SSLContext | None = None

    def send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | Iterable[bytes],
        length: int | None,
        repeatable: bool,
    ) -> Response:
        """The answer to a request, its body unread. `length`: bytes of the body, None without one.

        Raises TransportError.
        """
        connection = self._connected()
        try:
            if self._proxy is not None and self.origin.startswith("http:"):
                target = self.origin + target
                headers = {**headers, **self._proxy.headers}
            connection.send(_head(method, target, self._authority, headers, length), body, length or 0)
            incoming = Incoming(connection, method)
        except BaseException:
            connection.close()
            raise
        if connection.broken:
            incoming.keeps = incoming.reusable = False
        return Response(incoming, connection, self, repeatable)

    def give_back(self, connection: _Connection) -> None:
        self._idle.append((time.monotonic(), connection))

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[1].close()

    def _connected(self) -> _Connection:
        while self._idle:
            since, connection = self._idle.pop()
            if time.monotonic() - since <= IDLE_MAX and not connection.readable():
                return connection
            connection.close()
        return self._opened()

    def _opened(self) -> _Connection:
        parts = urlsplit(self.origin)
        host, secure = parts.hostname or "", parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        try:
            opened = socket.create_connection(
                self._proxy.address if self._proxy else (host, port), CONNECT_TIMEOUT
            )
        except TimeoutError:
            raise NotConnected("timed out") from None
        except OSError as error:
            raise NotConnected(str(error)) from None
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if secure and self._proxy is not None:
                _tunnel(opened, f"[{host}]:{port}" if ":" in host else f"{host}:{port}", self._proxy)
            if secure:
                opened = self._context().wrap_socket(opened, server_hostname=host)
            opened.settimeout(IO_TIMEOUT)
        except (OSError, TransportError) as error:
            opened.close()
            raise NotConnected(str(error)) from None
        return _Connection(opened)

    def _context(self) -> ssl.SSLContext:
        import ssl

        if self._trust is None:
            self._trust = ssl.create_default_context()
            self._trust.set_alpn_protocols(["http/1.1"])
        return self._trust


class _Connection:
    """A connected socket. `broken`: a request did not go out whole; the answer to its beginning may come."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened
        self.broken = False

    def send(self, head: bytes, body: bytes | Iterable[bytes], length: int) -> None:
        """Send a request. The server may answer before it has read everything, and close: then its answer is
        what counts."""
        try:
            if isinstance(body, bytes):
                self._push(head + body)
                return
            self._push(head)
            for part in body:
                length -= len(part)
                if length < 0:
                    break
                self._push(part)
        except TimeoutError:
            raise TimedOut("timed out") from None
        except _Refused:
            self.broken = True
            return
        if length:
            raise TransportError("what was to be sent changed its length")

    def _push(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except TimeoutError:
                raise
            except OSError:
                raise _Refused from None

    def receive(self) -> bytes:
        try:
            return self._socket.recv(RECEIVE)
        except TimeoutError:
            raise TimedOut("timed out") from None
        except OSError as error:
            raise BrokeOff(str(error)) from None

    def readable(self) -> bool:
        """Whether something came, if only the end, while nobody asked."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            return bool(selector.select(0))

    def close(self) -> None:
        self._socket.close()


class _Refused(Exception):
    """The other side takes no more."""


def _head(method: str, target: str, authority: str, headers: Mapping[str, str], length: int | None) -> bytes:
    fields = {"Host": authority, **headers}
    if length is not None:
        fields["Content-Length"] = str(length)
    lines = [f"{name}: {value}" for name, value in fields.items()]
    if not _TARGET.fullmatch(target) or not all(_FIELD.fullmatch(line) for line in lines):
        raise TransportError("the request has characters that HTTP cannot carry")
    return "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""]).encode("ascii")


def _tunnel(opened: socket.socket, where: str, proxy: Proxy) -> None:
    """Have the proxy connect to `where`."""
    connection = _Connection(opened)
    connection.send(_head("CONNECT", where, where, proxy.headers, None), b"", 0)
    answer = Incoming(connection, "HEAD")
    if answer.status != 200:
        raise NotConnected(f"the proxy {proxy.address[0]} answered {answer.status}")
