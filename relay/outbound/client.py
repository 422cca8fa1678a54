"""The client for requests of the relay to servers whose addresses strangers choose.

    answer = await node.outbound.send("POST", url, headers, body)

It resolves a name once, refuses the name if any of its addresses may not be reached (`Reach`), and connects
to one of these addresses. It follows no redirect, uses no proxy and sends no credentials of the relay. Total
time and bytes are limited, even if the other server does not answer, sends very slowly, or never ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpcore

from localstore.core.model.limits import KIB, OUTBOUND_BYTES, OUTBOUND_HEADERS, OUTBOUND_SECONDS
from relay.outbound.reach import Address, Reach, parse_address

CONNECT = 5.0  # seconds that one of several addresses is tried
LINGER = 2.0  # seconds for the body of an answer whose head is there
TRIED = 3  # of the addresses of a name
LOOKUPS = 16  # at once: a name server that hangs holds a thread
SLACK = 64 * KIB  # that may have arrived beyond what is kept


class OutboundFailed(Exception):
    """Raised if a request gets no complete answer. The message is one sentence for the person who chose the
    address of the request."""


class OutboundForbidden(OutboundFailed):
    """Raised if requests of this relay may not go to this address."""


@dataclass(frozen=True, slots=True)
class OutboundAnswer:
    """An answer. `headers`: lower-case name → last value. `whole`: whether `body` is complete; if not, it is
    only the beginning."""

    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool


class Outbound:
    """Sends requests of the relay to other servers. `reach`: the addresses to which requests may go.
    `trusted`: hosts named by the operator, which may have any address. Used from one event loop."""

    def __init__(self, reach: Reach, agent: str, *, trusted: frozenset[str] = frozenset()) -> None:
        self._reach, self._agent, self._trusted = reach, agent, trusted
        self._threads = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="lookup")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def require_reachable(self, host: str) -> None:
        """Raise OutboundForbidden if the host is an address that may not be reached, or a name of this
        machine. Other names are resolved only when a request is sent."""
        name = host.rstrip(".").lower()
        if name == "localhost" or name.endswith(".localhost"):
            name = "127.0.0.1"
        address = parse_address(name)
        if address is not None:
            self._require_allowed(host, [address])

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes = b"",
        *,
        seconds: float = OUTBOUND_SECONDS,
        keep: int = OUTBOUND_BYTES,
    ) -> OutboundAnswer:
        """Send one request and return the answer. At most `keep` bytes of the answer's body are read. Raises
        OutboundFailed if there is no answer within `seconds` in total. Once the head of the answer has come,
        its body must follow within LINGER seconds."""
        try:
            async with asyncio.timeout(seconds), self.open(method, url, headers, body) as answer:
                beginning, whole = await _read(answer, keep)
                answer_headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in answer.headers}
                return OutboundAnswer(answer.status, answer_headers, beginning, whole)
        except TimeoutError:
            raise OutboundFailed(f"no answer within {seconds:g} s") from None

    @contextlib.asynccontextmanager
    async def open(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> AsyncIterator[httpcore.Response]:
        """A context with an answer whose body is not read yet. The caller must limit the time and bytes of
        reading."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OutboundForbidden("only http and https addresses are asked")
        target = httpcore.URL(
            scheme=parts.scheme.encode(),
            host=parts.hostname.encode("ascii"),
            port=parts.port,
            target=((parts.path or "/") + (f"?{parts.query}" if parts.query else "")).encode("ascii"),
        )
        sent = {"host": parts.netloc, "user-agent": self._agent, "accept": "*/*", **headers}
        sent["content-length"] = str(len(body))
        connection = httpcore.AsyncHTTPConnection(
            target.origin,
            ssl_context=_system_trust() if parts.scheme == "https" else None,
            network_backend=_Guarded(self, SLACK + OUTBOUND_HEADERS + OUTBOUND_BYTES),
        )
        try:
            answer = await connection.handle_async_request(
                httpcore.Request(method, target, headers=list(sent.items()), content=body)
            )
            if sum(len(name) + len(value) for name, value in answer.headers) > OUTBOUND_HEADERS:
                raise OutboundFailed(f"the head of the answer is longer than {OUTBOUND_HEADERS} bytes")
            yield answer
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            raise OutboundFailed(_sentence(error)) from None
        finally:
            await connection.aclose()

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses to which a host resolves now. Raises OutboundForbidden if one of them may not be
        reached, and OutboundFailed if the host has none."""
        loop = asyncio.get_running_loop()
        try:
            resolved = await loop.run_in_executor(
                self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            )
        except (OSError, UnicodeError):
            raise OutboundFailed(f"the name {host} has no address") from None
        addresses = [ipaddress.ip_address(sockaddr[0]) for *_, sockaddr in resolved]
        self._require_allowed(host, addresses)
        return list(dict.fromkeys(map(str, addresses)))

    def _require_allowed(self, host: str, addresses: Iterable[Address]) -> None:
        for address in addresses:
            if host not in self._trusted and not self._reach.may(address):
                raise OutboundForbidden(
                    f"{_begin_sentence(host, address)} not on the public internet; this relay sends "
                    "nothing there (TR_OUTBOUND_ALLOW)"
                )


class _Guarded(httpcore.AsyncNetworkBackend):
    """The network access of one request: connects only to checked addresses, and reads at most `most` bytes
    of the answer."""

    def __init__(self, outbound: Outbound, most: int) -> None:
        self._outbound, self._most = outbound, most

    async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        addresses = (await self._outbound.addresses(host, port))[:TRIED]
        backend = httpcore.AnyIOBackend()
        for address in addresses[:-1]:
            with contextlib.suppress(httpcore.NetworkError, httpcore.TimeoutException):
                return _Capped(await backend.connect_tcp(address, port, timeout=CONNECT), self._most)
        return _Capped(await backend.connect_tcp(addresses[-1], port), self._most)


class _Capped(httpcore.AsyncNetworkStream):
    """A stream that returns at most `most` bytes."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, most: int) -> None:
        self._stream, self._left = stream, most

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  # httpcore's
        if self._left <= 0:
            raise OutboundFailed("the answer is longer than what is read of one")
        data = await self._stream.read(min(max_bytes, self._left), timeout)
        self._left -= len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  # likewise
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  # likewise
    ) -> httpcore.AsyncNetworkStream:
        return _Capped(await self._stream.start_tls(ssl_context, server_hostname, timeout), self._left)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


async def _read(answer: httpcore.Response, keep: int) -> tuple[bytes, bool]:
    """Read a body up to `keep` bytes. Returns (these bytes, whether the body is complete)."""
    body = bytearray()
    try:
        async with asyncio.timeout(LINGER):
            async for chunk in answer.aiter_stream():
                body += chunk
                if len(body) > keep:
                    return bytes(body[:keep]), False
    except (TimeoutError, httpcore.NetworkError, httpcore.ProtocolError, OutboundFailed):
        return bytes(body), False
    return bytes(body), True


@cache
def _system_trust() -> ssl.SSLContext:
    """A TLS context that verifies certificates with the system's trust store."""
    return ssl.create_default_context()


def _begin_sentence(host: str, address: Address) -> str:
    """The beginning of a sentence about an address: `HOST is`, or `HOST leads to ADDRESS, which is`."""
    return f"{host} is" if host.strip("[]") == str(address) else f"{host} leads to {address}, which is"


def _sentence(error: Exception) -> str:
    """The failure as a sentence that contains no text from the other server."""
    sentences = {
        httpcore.ConnectError: "the connection was refused or cut",
        httpcore.ConnectTimeout: "the connection was not taken in time",
        httpcore.ReadError: "the connection was cut before the answer was whole",
        httpcore.WriteError: "the connection was cut before the request was sent",
        httpcore.RemoteProtocolError: "what came back is not HTTP",
    }
    return sentences.get(type(error), "the request could not be sent")
