"""Connections to one server: the pool of httpcore, with streams that count time and bytes."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import httpcore

from svc.http.connection import COUNTED, CountedStream, CountingBackend
from svc.http.origin import is_loopback
from svc.http.proxy import Proxy, proxy_for
from svc.http.response import Response

CONNECT_TIMEOUT, READ_TIMEOUT = 10.0, 60.0
KEPT_SECONDS = 5.0  # for which a connection without requests may be used again
HEADERS_MAX = 100  # lines of one answer
FAILURES = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
    httpcore.ProxyError,
)
TIMEOUTS = (httpcore.TimeoutException,)
NEVER_SENT = (httpcore.ConnectError, httpcore.ConnectTimeout)


class Pool:
    """Connections to `origin`, reused between requests. Thread-safe. Raises UsageError for an unusable
    proxy."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._proxy = None if is_loopback(origin) else proxy_for(origin)
        self._pool = httpcore.ConnectionPool(
            ssl_context=_trusting() if origin.startswith("https:") else None,
            proxy=_proxy(self._proxy),
            max_connections=None,
            keepalive_expiry=KEPT_SECONDS,
            network_backend=CountingBackend(self._proxy and self._proxy.address),
        )

    def send(
        self, method: str, target: str, headers: dict[str, str], body: Iterable[bytes] = (), length: int = 0
    ) -> Response:
        """Send one request, whose body has `length` bytes. Raises FAILURES, ConnectionLimitExceeded and
        Stopped."""
        parts = urlsplit(self._origin)
        host = parts.hostname or ""
        timeouts = dict.fromkeys(("read", "write", "pool"), READ_TIMEOUT) | {"connect": CONNECT_TIMEOUT}
        asked = httpcore.Request(
            method=method,
            url=httpcore.URL(
                scheme=parts.scheme.encode(),
                host=host.encode("ascii" if host.isascii() else "idna"),
                port=parts.port,
                target=target.encode("ascii"),
            ),
            headers=[
                (name.title().encode("ascii"), value.encode("ascii")) for name, value in headers.items()
            ],
            content=_whole(body, length),
            extensions={"timeout": timeouts},
        )
        try:
            answer = self._pool.handle_request(asked)
        except httpcore.ProxyError as error:
            host, port = self._proxy.address if self._proxy else ("", 0)
            raise httpcore.ProxyError(f"the proxy {host}:{port} answered {error}") from None
        stream: CountedStream = answer.extensions["network_stream"].get_extra_info(COUNTED)
        stream.limits.in_head = False
        response = Response(self._origin, answer, stream)
        try:
            _check_framing(answer)
        except BaseException:
            response.close()
            raise
        return response

    def close(self) -> None:
        self._pool.close()


def _check_framing(answer: httpcore.Response) -> None:
    """Raise RemoteProtocolError for an answer whose body length is given in more than one way."""
    lengths, codings = _values(answer, b"content-length"), _values(answer, b"transfer-encoding")
    if len(answer.headers) > HEADERS_MAX:
        raise httpcore.RemoteProtocolError(f"it has more than {HEADERS_MAX} headers")
    if codings and (lengths or len(codings) > 1 or answer.extensions.get("http_version") != b"HTTP/1.1"):
        raise httpcore.RemoteProtocolError("it gives the length of its body in more than one way")


def _values(answer: httpcore.Response, name: bytes) -> list[bytes]:
    return [value for key, value in answer.headers if key.lower() == name]


def _whole(parts: Iterable[bytes], length: int) -> Iterator[bytes]:
    """The body in pieces. Raises LocalProtocolError unless it has `length` bytes."""
    left = length
    for part in parts:
        left -= len(part)
        if left < 0:
            break
        yield part
    if left:
        raise httpcore.LocalProtocolError("a body is not as long as its request says")


def _proxy(proxy: Proxy | None) -> httpcore.Proxy | None:
    if proxy is None:
        return None
    context = _trusting() if proxy.url.startswith("https:") else None
    return httpcore.Proxy(proxy.url, auth=proxy.auth, ssl_context=context)


def _trusting() -> ssl.SSLContext:
    """A TLS context that verifies certificates with the system's trust store."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
