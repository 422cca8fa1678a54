"""A client that hangs up is one quiet line in the log, whatever it was in the middle of."""

from __future__ import annotations

import contextlib
import queue
import secrets
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import msgspec
import pytest
from blake3 import blake3

from localstore.core.model.limits import MIB
from relay.base import logs
from relay.http import app
from relay.http.context import LEFT
from tests.patience import PATIENCE
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: what is left is dropped and the other side gets a reset


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], list[dict[str, Any]]]]:
    """`lines(n)`: the log from its beginning, once `n` requests were left by their clients."""
    written: queue.SimpleQueue[str] = queue.SimpleQueue()
    for level in ("info", "debug", "warning", "error", "critical"):
        monkeypatch.setattr(logs._LINES, level, lambda line: written.put(logs._text(line)))
    logs.configure("info")

    def wait(left: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while sum(one.get("status") == LEFT for one in found) < left:
            found.append(msgspec.json.decode(written.get(timeout=PATIENCE)))
        return found

    yield wait
    logs.configure("critical")


@pytest.fixture
def thing(account: Callable[..., Account], client: Callable[..., httpx.Client]) -> Repository:
    mira = account()
    return create(client(mira), mira, "shown", visibility="public")


def leave(relay: Relay, request: httpx.Request, sent: int, read: int, reset: bool) -> None:
    """Send a request with `sent` bytes of its body, read so much of the answer, and go."""
    host, port = relay.url.removeprefix("http://").split(":")
    head = [f"{request.method} {request.url.raw_path.decode()} HTTP/1.1"]
    head += [f"{name}: {value}" for name, value in request.headers.items()]
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall("\r\n".join([*head, "", ""]).encode() + request.content[:sent])
        connection.recv(read)
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


def quiet(found: list[dict[str, Any]]) -> bool:
    return {one["level"] for one in found} == {"info"}


def test_in_the_middle_of_an_answer(relay: Relay, thing: Repository, lines: Any) -> None:
    (seal,) = thing.seal({"large.bin": secrets.token_bytes(15 * MIB)})
    for path in (f"/raw/{seal}/large.bin", f"/archive/{seal}.tar.gz"):
        for reset in (False, True):
            leave(relay, thing.http.build_request("GET", thing.url + path), 0, 1, reset)
    assert quiet(lines(4))


def test_in_the_middle_of_a_request(relay: Relay, thing: Repository, lines: Any) -> None:
    content = secrets.token_bytes(2 * MIB)
    digest = blake3(content)
    request = thing.http.build_request(
        "PUT",
        f"{thing.url}/payloads/{digest.hexdigest()}",
        content=content,
        extensions={"blake3": digest.digest()},
        headers={"Expect": "100-continue"},  # so that there is something to read before the body
    )
    request = next(thing.http.auth.auth_flow(request))  # type: ignore[union-attr]
    for reset in (False, True):
        leave(relay, request, MIB, 1, reset)
    assert quiet(lines(2))


def test_at_the_moment_of_the_answer(
    relay: Relay, thing: Repository, lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is going down, and nobody has told the handler yet."""
    (seal,) = thing.seal({"large.bin": secrets.token_bytes(MIB)})
    with contextlib.closing(relay.client()) as http, monkeypatch.context() as changed:
        common = app._common_headers

        def gone(request: Any, response: Any) -> None:
            common(request, response)
            request.transport.abort()

        changed.setattr(app, "_common_headers", gone)
        for path in (f"/raw/{seal}/large.bin", f"/archive/{seal}.tar.gz"):
            with pytest.raises(httpx.TransportError):
                http.get(thing.url + path)
    assert quiet(lines(2))
