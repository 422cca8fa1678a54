"""Sends the requests of httpx over connections that count time and bytes (`connection_limits`). It uses the
connection pool of httpcore, because httpx gives no access to its connections."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import httpcore
import httpx

from localstore.core.model.node import HEALTH
from svc.http import silence
from svc.http.bounds import Deadline, Stopped, within
from svc.http.connection import COUNTED, CountedStream, CountingBackend, Works
from svc.http.connection_limits import ConnectionLimitExceeded
from svc.http.origin import is_loopback
from svc.http.proxy import Proxy, proxy_for
from svc.http.remote import link

KEPT_SECONDS = 5.0  # for which a connection without requests may be used again
HEADERS_MAX = 100  # lines of one answer
SERVER_FAILED = 500  # and above: what a proxy says of a server that it cannot reach
FAILURES = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
)


class Pool(httpx.BaseTransport):
    """Connections to one server, reused between requests. Several threads may use it at once. Raises
    UsageError if the environment variables name an unusable proxy."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        relay_link = link()
        self._link = relay_link if relay_link is not None and relay_link.origin == origin else None
        self._proxy = None if self._link or is_loopback(origin) else proxy_for(origin)
        self._pool = self._connections(self._is_server_alive)

    def _connections(self, works: Works | None) -> httpcore.ConnectionPool:
        return httpcore.ConnectionPool(
            ssl_context=_tls_context() if self._origin.startswith("https:") and not self._link else None,
            proxy=_proxy(self._proxy),
            max_connections=None,
            keepalive_expiry=KEPT_SECONDS,
            network_backend=CountingBackend(self._proxy and self._proxy.address, works, self._link),
        )

    def _is_server_alive(self) -> bool:
        """Ask the server on another connection whether it works. Returns whether it answered in time."""
        waits = dict.fromkeys(("connect", "read", "write", "pool"), silence.ASKING_SECONDS)
        try:
            with (
                within(Deadline(silence.ASKING_SECONDS)),
                self._connections(None) as asking,
                asking.stream("GET", self._address + HEALTH.path, extensions={"timeout": waits}) as answer,
            ):
                return answer.status < SERVER_FAILED
        except (*FAILURES, httpcore.ProxyError, ConnectionLimitExceeded, Stopped, OSError):
            return False

    @property
    def _address(self) -> str:
        """The address to connect to, which is the origin. In a session over SSH, the scheme is http, because
        the connection stays on the machine and needs no TLS."""
        return self._origin.replace("https:", "http:", 1) if self._link else self._origin

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request, and return its response. Raises httpx's errors and ConnectionLimitExceeded."""
        core_request = httpcore.Request(
            method=request.method.encode("ascii"),
            url=httpcore.URL(
                scheme=b"http" if self._link else request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=_body_pieces(request),
            extensions=request.extensions,
        )
        with self._errors():
            answer = self._pool.handle_request(core_request)
        network_stream = answer.extensions["network_stream"]
        stream: CountedStream = network_stream.get_extra_info(COUNTED)
        stream.limits.in_head = False
        body = _Body(self, answer, stream)
        try:
            _check_framing(answer)
        except BaseException:
            body.close()
            raise
        return httpx.Response(
            answer.status,
            headers=answer.headers,
            stream=body,
            extensions={
                "reason_phrase": answer.extensions.get("reason_phrase", b""),
                "network_stream": network_stream,  # an open socket's, once the server has switched protocols
            },
        )

    def close(self) -> None:
        self._pool.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """A context that turns httpcore's errors into httpx's errors of the same names."""
        try:
            yield
        except httpcore.ProxyError as error:
            host, port = self._proxy.address if self._proxy else ("", 0)
            raise httpx.ProxyError(f"the proxy {host}:{port} answered {error}") from None
        except FAILURES as error:
            raised: type[httpx.TransportError] = getattr(httpx, type(error).__name__)
            raise raised(str(error)) from None


class _Body(httpx.SyncByteStream):
    """The body of an answer. Iterating over it reads from the connection."""

    def __init__(self, pool: Pool, answer: httpcore.Response, stream: CountedStream) -> None:
        self._pool, self._answer, self._stream = pool, answer, stream

    def __iter__(self) -> Iterator[bytes]:
        with self._pool._errors():
            for piece in self._answer.iter_stream():
                self._stream.limits.content += len(piece)
                yield piece

    def close(self) -> None:
        self._stream.release()  # before the next request may have the connection
        self._answer.close()


def _check_framing(answer: httpcore.Response) -> None:
    """Raise RemoteProtocolError for an answer with too many headers, or one that states the length of its
    body more than once."""
    lengths, codings = _values(answer, b"content-length"), _values(answer, b"transfer-encoding")
    if len(answer.headers) > HEADERS_MAX:
        raise httpx.RemoteProtocolError(f"it has more than {HEADERS_MAX} headers")
    if codings and (lengths or len(codings) > 1 or answer.extensions.get("http_version") != b"HTTP/1.1"):
        raise httpx.RemoteProtocolError("it gives the length of its body in more than one way")


def _values(answer: httpcore.Response, name: bytes) -> list[bytes]:
    return [value for key, value in answer.headers if key.lower() == name]


def _body_pieces(request: httpx.Request) -> Iterator[bytes]:
    """Yields the body of the request in pieces. Raises LocalProtocolError unless it is as long as the
    Content-Length header says."""
    assert isinstance(request.stream, httpx.SyncByteStream)  # noqa: S101
    remaining = int(request.headers.get("content-length", "0"))
    for part in request.stream:
        remaining -= len(part)
        if remaining < 0:
            break
        yield part
    if remaining:
        raise httpx.LocalProtocolError("a body is not as long as its request says")


def _proxy(proxy: Proxy | None) -> httpcore.Proxy | None:
    if proxy is None:
        return None
    context = _tls_context() if proxy.url.startswith("https:") else None
    return httpcore.Proxy(proxy.url, auth=proxy.auth, ssl_context=context)


def _tls_context() -> ssl.SSLContext:
    """A TLS context that verifies certificates with the system's trust store."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
