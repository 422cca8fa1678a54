"""Network streams for httpcore that count waiting time and bytes (`connection_limits`)."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

import httpcore

from svc.http.bounds import Bounds, attached, check, current
from svc.http.connection_limits import ConnectionLimits, NoLimits

COUNTED = "svc.counted"  # key of the counted stream in the extra info of a stream
SLICE = 16 * 1024  # bytes written between two checks of the time


class Line:
    """A second handle on a connection's socket, with which any thread may end the connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._handle = connection.dup()

    def cut(self) -> None:
        """Shut the connection down, in both directions."""
        with suppress(OSError):
            self._handle.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._handle.close()


class CountedStream(httpcore.NetworkStream):
    """One connection. The limits start anew with each request, which has the bounds of its caller."""

    def __init__(self, stream: httpcore.NetworkStream, line: Line | None = None) -> None:
        self._stream = stream
        self._line = line or Line(stream.get_extra_info("socket"))
        self._reading = False
        self.limits = ConnectionLimits()
        self._bounds: Bounds = ()
        self._bind()

    def _bind(self) -> None:
        self.release()
        self._bounds = current()
        for bound in self._bounds:
            bound.attach(self._line.cut)

    def release(self) -> None:
        """Detach the bounds of the last request from this connection."""
        for bound in self._bounds:
            bound.detach(self._line.cut)
        self._bounds = ()

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        """Raise Stopped instead of the errors of a connection that a bound has shut down."""
        try:
            yield
        except (httpcore.NetworkError, httpcore.TimeoutException, OSError, ValueError):
            check(self._bounds)
            raise
        check(self._bounds)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Up to `max_bytes`, empty at the end. Raises ConnectionLimitExceeded, Stopped and httpcore's
        errors."""
        self._reading = True
        began = monotonic()
        left = self.limits.left(began)
        limited = left is not None and (timeout is None or left <= timeout)
        try:
            with self._bounded():
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
        """Send all of `buffer`. Raises ConnectionLimitExceeded, Stopped and httpcore's errors."""
        if self._reading and not isinstance(self.limits, NoLimits):
            # the first write after an answer begins the next request
            self._reading = False
            self.limits = ConnectionLimits()
            self._bind()
        for start in range(0, len(buffer), SLICE):
            part = buffer[start : start + SLICE]
            began = monotonic()
            with self._bounded():
                self._stream.write(part, timeout)
            self.limits.sent(len(part), began, monotonic())

    def close(self) -> None:
        self.release()
        self._line.close()
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            with self._bounded():
                secured = self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            self.close()
            raise
        bound = CountedStream(secured, self._line)
        self._bounds = ()  # they are the secured stream's now
        return bound

    def get_extra_info(self, info: str) -> Any:
        if info == COUNTED:
            return self
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
        def connect() -> httpcore.NetworkStream:
            return self._backend.connect_tcp(host, port, timeout, local_address, socket_options)

        bounds = current()
        try:
            return CountedStream(_Connecting(connect).wait(bounds) if bounds else connect())
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            if self._proxy != (host, port):
                raise
            raise type(error)(f"the proxy {host}:{port}: {error}") from None


class _Connecting:
    """A connection that is opened in its own thread, because the look-up of a name cannot be interrupted."""

    def __init__(self, connect: Callable[[], httpcore.NetworkStream]) -> None:
        self._connect = connect
        self._lock, self._ended, self._abandoned = Lock(), Event(), False
        self._made: httpcore.NetworkStream | None = None
        self._error: BaseException | None = None
        Thread(target=self._run, daemon=True).start()

    def wait(self, bounds: Bounds) -> httpcore.NetworkStream:
        """The connection, or what opening it raised. Raises Stopped if a bound ends before."""
        try:
            with attached(bounds, self._ended.set):
                self._ended.wait()
        except BaseException:
            self._abandon()
            raise
        if self._error is not None:
            raise self._error
        assert self._made is not None  # noqa: S101 - it ended in one of two ways, or by a bound
        return self._made

    def _run(self) -> None:
        try:
            made = self._connect()
        except BaseException as error:
            self._error = error
        else:
            with self._lock:
                self._made = made
                if self._abandoned:
                    made.close()
        self._ended.set()

    def _abandon(self) -> None:
        with self._lock:
            self._abandoned = True
            if self._made is not None:
                self._made.close()
