"""One connection to a server, over which requests go one after the other. It counts what each of them takes
(`patience`) and fails with httpx's errors."""

from __future__ import annotations

import io
import select
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

import httpx

from svc.api import http1
from svc.api.http1 import BrokenOff, Head, Malformed
from svc.api.patience import Patience

if TYPE_CHECKING:
    import ssl

SLICE = 64 * 1024  # bytes written between two looks at the clock
FIRST = 16 * 1024  # bytes of a body that go with the head, in one write
BUFFER = 64 * 1024


class Connection:
    """`timeout`: seconds for one read or write."""

    def __init__(self, opened: socket.socket, timeout: float) -> None:
        self._socket, self.timeout = opened, timeout

    def ask(self, method: str, head: bytes, parts: Iterable[bytes]) -> Head:
        """Send a request and read the head of its answer."""
        self._patience = Patience()
        # A new buffer: what came behind the last answer, unasked, is nobody's answer.
        self._reader = io.BufferedReader(_Incoming(self._receive), BUFFER)
        whole = True
        try:
            self._send(head, parts)
        except httpx.WriteError:
            whole = False  # a server may answer, and close, before it has taken everything
        with _told():
            answer = http1.read_head(self._reader, method)
        self._patience.in_head = False
        return answer if whole else answer._replace(lasting=False)

    def body(self, head: Head) -> Iterator[bytes]:
        """The body of the answer with this head."""
        with _told():
            for piece in http1.body(self._reader, head):
                self._patience.content += len(piece)
                yield piece

    def secured(self, context: ssl.SSLContext, host: str, timeout: float) -> Connection:
        """The same connection under TLS with `host`, which takes the place of this one."""
        self._socket.settimeout(self.timeout)
        try:
            return Connection(context.wrap_socket(self._socket, server_hostname=host), timeout)
        except TimeoutError as error:
            raise httpx.ConnectTimeout(str(error)) from None
        except (OSError, ValueError) as error:
            raise httpx.ConnectError(str(error)) from None

    def is_quiet(self) -> bool:
        """Whether it can carry another request: the server has neither closed it nor sent more."""
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        return not waiting.poll(0)

    def close(self) -> None:
        self._socket.close()

    def _send(self, head: bytes, parts: Iterable[bytes]) -> None:
        waiting = bytearray(head)
        for part in parts:
            if len(waiting) + len(part) <= FIRST:
                waiting += part
                continue
            self._write(waiting)
            self._write(part)
            waiting = bytearray()
        self._write(waiting)

    def _write(self, data: bytes | bytearray) -> None:
        left = memoryview(data)
        self._socket.settimeout(self.timeout)
        while left:
            began = monotonic()
            try:
                taken = self._socket.send(left[:SLICE])
            except TimeoutError as error:
                raise httpx.WriteTimeout(str(error)) from None
            except OSError as error:
                raise httpx.WriteError(str(error)) from None
            self._patience.sent(taken, began, monotonic())
            left = left[taken:]

    def _receive(self, buffer: memoryview) -> int:
        """Read into `buffer` what there is; the number of bytes, 0 at the end."""
        began = monotonic()
        left = self._patience.left(began)
        self._socket.settimeout(self.timeout if left is None else min(left, self.timeout))
        try:
            size = self._socket.recv_into(buffer)
        except TimeoutError as error:
            if left is not None and left <= self.timeout:
                raise self._patience.too_slow() from None
            raise httpx.ReadTimeout(str(error)) from None
        except OSError as error:
            raise httpx.ReadError(str(error)) from None
        self._patience.received(size, began, monotonic())
        return size


class _Incoming(io.RawIOBase):
    """What arrives, as the standard library's buffer reads it."""

    def __init__(self, receive: Callable[[memoryview], int]) -> None:
        self._receive = receive

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._receive(buffer)


@contextmanager
def _told() -> Iterator[None]:
    """What is wrong with an answer, as httpx's errors."""
    try:
        yield
    except Malformed as error:
        raise httpx.RemoteProtocolError(str(error)) from None
    except BrokenOff as error:
        raise httpx.ReadError(str(error)) from None


def connect(host: str, port: int, timeout: float) -> Connection:
    """`timeout`: seconds for each address of the host, and for each read and write."""
    # As bytes: for text Python would load its tables of international names, which httpx has dealt with.
    address: Any = (host.encode("ascii"), port)
    try:
        opened = socket.create_connection(address, timeout)
    except TimeoutError as error:
        raise httpx.ConnectTimeout(str(error)) from None
    except OSError as error:
        raise httpx.ConnectError(str(error)) from None
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Connection(opened, timeout)
