"""Network streams for httpcore that count waiting time and bytes (`connection_limits`)."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from time import monotonic
from typing import Any

import httpcore

from svc.http.connection_limits import ConnectionLimits

SLICE = 16 * 1024  # bytes written between two looks at the clock


class CountedStream(httpcore.NetworkStream):
    """One connection. The limits start anew with each request."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream
        self._reading = False
        self.limits = ConnectionLimits()

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Up to `max_bytes`, empty at the end. Raises ConnectionLimitExceeded and httpcore's errors."""
        self._reading = True
        began = monotonic()
        left = self.limits.left(began)
        limited = left is not None and (timeout is None or left <= timeout)
        try:
            data = self._stream.read(max_bytes, left if limited else timeout)
        except httpcore.ReadTimeout:
            if limited:
                raise self.limits.too_slow() from None
            raise
        if not data and self.limits.in_head:
            raise httpcore.ReadError("the connection was closed before the answer was whole")
        self.limits.received(len(data), began, monotonic())
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of `buffer`. Raises ConnectionLimitExceeded and httpcore's errors."""
        if self._reading:  # the first write after an answer begins the next request
            self._reading = False
            self.limits = ConnectionLimits()
        for start in range(0, len(buffer), SLICE):
            part = buffer[start : start + SLICE]
            began = monotonic()
            self._stream.write(part, timeout)
            self.limits.sent(len(part), began, monotonic())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return CountedStream(self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class CountingBackend(httpcore.NetworkBackend):
    """Opens counted streams. `proxy`: its address (host, port), named in errors."""

    def __init__(self, proxy: tuple[str, int] | None = None) -> None:
        self._backend = httpcore.SyncBackend()
        self._proxy = proxy

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            return CountedStream(
                self._backend.connect_tcp(host, port, timeout, local_address, socket_options)
            )
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            if self._proxy != (host, port):
                raise
            raise type(error)(f"the proxy {host}:{port}: {error}") from None
