"""Network connections for httpcore. They count waiting time and bytes, and limit both
(`connection_limits`)."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

import httpcore

from svc.http import silence
from svc.http.bounds import Bounds, Deadline, attach_cut, check, current
from svc.http.connection_limits import ConnectionLimits, NoLimits
from svc.http.remote import Link

COUNTED = "svc.counted"  # key of the counted stream in the extra info of a stream
SLICE = 16 * 1024  # bytes written between two checks of the time
ALIVE = [  # the system looks whether a silent connection is still there: after 30 s, 3 times, each 5 s
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
]
Works = Callable[[], bool]


class SocketHandle:
    """A second handle on the socket of a connection. Any thread can end the connection with it."""

    def __init__(self, connection: socket.socket) -> None:
        self._handle = connection.dup()

    def cut(self) -> None:
        """Shut down the connection in both directions."""
        with suppress(OSError):
            self._handle.shutdown(socket.SHUT_RDWR)

    def unsent(self) -> int:
        """Return the number of sent bytes that the other side has not received yet; 0 if the system does not
        report it."""
        return silence.unsent(self._handle)

    def close(self) -> None:
        self._handle.close()


class CountedStream(httpcore.NetworkStream):
    """A connection whose received and sent bytes and waiting time are limited. They are counted anew for each
    request. A bound of the caller (`svc.http.bounds`) also ends the connection. `works` is called while the
    server is silent, to ask whether the server still works. None means that the server is not asked."""

    def __init__(
        self, stream: httpcore.NetworkStream, works: Works | None = None, line: SocketHandle | None = None
    ) -> None:
        self._stream, self._works = stream, works
        self._line = line or SocketHandle(stream.get_extra_info("socket"))
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
        """Forget the bounds (deadlines and cancels) of the last request, so that they no longer end this
        connection."""
        for bound in self._bounds:
            bound.detach(self._line.cut)
        self._bounds = ()

    @contextmanager
    def _translate_stop(self) -> Iterator[None]:
        """A context that raises Stopped instead of a connection error, if a bound has shut the connection
        down."""
        try:
            yield
        except (httpcore.NetworkError, httpcore.TimeoutException, OSError, ValueError):
            check(self._bounds)
            raise
        check(self._bounds)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return up to `max_bytes` received bytes; b"" at the end. `timeout`, in seconds, applies only to
        WebSockets and to callers with a deadline. Otherwise the limits of this class apply. Raises
        ConnectionLimitExceeded, Stopped and httpcore's errors."""
        self._reading = True
        began = monotonic()
        allowed = self.limits.left(began)

        def receive(seconds: float | None) -> bytes:
            rest = None if allowed is None else allowed - (monotonic() - began)
            if rest is None or (seconds is not None and seconds < rest):
                return self._stream.read(max_bytes, seconds)
            try:
                return self._stream.read(max_bytes, max(rest, silence.AT_ONCE))
            except httpcore.ReadTimeout:
                raise self.limits.too_slow() from None

        with self._translate_stop():
            if self._works is not None and not self._has_own_limit:
                data = silence.read(receive, self._line.unsent, self._works, self.limits.content > 0)
            else:
                data = receive(timeout)
        if not data and self.limits.in_head:
            raise httpcore.ReadError("the connection was closed before the answer was whole")
        self.limits.count_received(len(data), began, monotonic())
        return data

    @property
    def _has_own_limit(self) -> bool:
        """Return whether the caller limits the wait for an answer. That is so if it has a deadline or uses a
        WebSocket."""
        return isinstance(self.limits, NoLimits) or any(isinstance(bound, Deadline) for bound in self._bounds)

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
            with self._translate_stop():
                self._stream.write(part, timeout)
            self.limits.count_sent(len(part), began, monotonic())

    def close(self) -> None:
        self.release()
        self._line.close()
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            with self._translate_stop():
                secured = self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            self.close()
            raise
        bound = CountedStream(secured, self._works, self._line)
        self._bounds = ()  # they are the secured stream's now
        return bound

    def get_extra_info(self, info: str) -> Any:
        if info == COUNTED:
            return self
        return self._stream.get_extra_info(info)


class CountingBackend(httpcore.NetworkBackend):
    """Opens connections with limits (`CountedStream`). `proxy` is (host, port) of the proxy, for error
    messages. `works` is a function that asks the server whether it works. In a session over SSH, `link` is
    the link to the relay, through which connections are opened."""

    def __init__(
        self, proxy: tuple[str, int] | None = None, works: Works | None = None, link: Link | None = None
    ) -> None:
        self._backend = httpcore.SyncBackend()
        self._proxy, self._works, self._link = proxy, works, link

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        def connect() -> httpcore.NetworkStream:
            return self._backend.connect_tcp(
                host, port, timeout, local_address, [*(socket_options or ()), *ALIVE]
            )

        bounds = current()
        if self._link is not None:
            return CountedStream(_open_link(self._link), self._works)
        try:
            return CountedStream(_Connecting(connect).wait(bounds) if bounds else connect(), self._works)
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            if self._proxy != (host, port):
                raise
            raise type(error)(f"the proxy {host}:{port}: {error}") from None


def _open_link(link: Link) -> httpcore.NetworkStream:
    try:
        from httpcore._backends.sync import SyncStream  # httpcore exports the backend without its stream

        return SyncStream(link.connect())
    except OSError as error:
        raise httpcore.ConnectError(f"the relay took no connection: {error}") from None


class _Connecting:
    """Opens a connection in a thread, because the lookup of a host name cannot be interrupted."""

    def __init__(self, connect: Callable[[], httpcore.NetworkStream]) -> None:
        self._connect = connect
        self._lock, self._ended, self._abandoned = Lock(), Event(), False
        self._stream: httpcore.NetworkStream | None = None
        self._error: BaseException | None = None
        Thread(target=self._run, daemon=True).start()

    def wait(self, bounds: Bounds) -> httpcore.NetworkStream:
        """Wait until the connection is open, and return it. Raises the error that occurred while opening, or
        Stopped if a bound ends first."""
        try:
            with attach_cut(bounds, self._ended.set):
                self._ended.wait()
        except BaseException:
            self._abandon()
            raise
        if self._error is not None:
            raise self._error
        assert self._stream is not None  # noqa: S101 - it ended in one of two ways, or by a bound
        return self._stream

    def _run(self) -> None:
        try:
            stream = self._connect()
        except BaseException as error:
            self._error = error
        else:
            with self._lock:
                self._stream = stream
                if self._abandoned:
                    stream.close()
        self._ended.set()

    def _abandon(self) -> None:
        with self._lock:
            self._abandoned = True
            if self._stream is not None:
                self._stream.close()
