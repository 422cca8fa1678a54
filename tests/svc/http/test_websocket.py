"""A socket to servers that mean no good, and its ends."""

from __future__ import annotations

import base64
import hashlib
import re
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from localstore.core.errors import Cancelled, NotFound, ServerMisbehaved, ServerUnreachable, SvcError
from localstore.core.model.sync import Event
from scripts.attack.attackers import frame
from svc.api import Api
from svc.http import websocket
from svc.http.bounds import Cancel, Deadline, within
from svc.http.client import Http
from svc.http.connection_limits import NoLimits
from tests.patience import PATIENCE
from tests.svc.api.hostile import hostile, http
from tests.svc.http.test_bounds import SOON
from tests.svc.http.test_client import CREDENTIAL, problem

TEXT, CLOSE, PONG = 1, 8, 10
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"


Serve = Callable[[socket.socket], None]


def switching(*frames: bytes, then: Serve | None = None) -> Serve:
    """Opens a socket as it should, sends these frames, and goes on with `then`, or reads until the end."""

    def serve(connection: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(65536)
        key = re.search(rb"(?i)sec-websocket-key: *(\S+)", head)
        assert key
        accept = base64.b64encode(hashlib.sha1(key[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        connection.sendall(
            SWITCHED + b"Sec-WebSocket-Accept: " + accept + b"\r\nSec-WebSocket-Protocol: svc-sync.v1\r\n\r\n"
        )
        for one in frames:
            connection.sendall(one)
        if then is not None:
            then(connection)
        while connection.recv(65536):
            pass

    return serve


def said(text: bytes, opcode: int = TEXT) -> bytes:
    """A frame of a server: not masked."""
    length = bytes([len(text)]) if len(text) < 126 else b"\x7f" + len(text).to_bytes(8, "big")
    return bytes([0x80 | opcode]) + length + text


EVENT = b'{"type":"event","id":7,"repo_id":"r","kind":"live","data":{}}'


def outcome(serve: Callable[[socket.socket], None] | bytes) -> object:
    """The first event, or the error, of a socket to this server."""
    with hostile(serve, unread=not isinstance(serve, bytes)) as server:
        try:
            with Api(Http(server.origin, CREDENTIAL, sleep=lambda _: None)).sync.socket() as events:
                return events.receive(PATIENCE)
        except SvcError as error:
            return error


@pytest.mark.parametrize(
    ("frames", "kind", "words"),
    [
        ([said(b"{")], ServerMisbehaved, "cannot be read"),
        ([said(b'{"type":"event"}')], ServerMisbehaved, "cannot be read"),
        ([said(b"[" * 100_000)], ServerMisbehaved, "cannot be read"),
        ([said(b"\xff")], ServerMisbehaved, "UTF-8"),
        ([b"\x81\x7f" + (1 << 40).to_bytes(8, "big")], ServerMisbehaved, "does not speak WebSocket"),
        ([frame(TEXT, b"masked")], ServerMisbehaved, "does not speak WebSocket"),
        ([b"\xf1\x00"], ServerMisbehaved, "does not speak WebSocket"),
        ([said(b"\x03\xe9going", CLOSE)], ServerUnreachable, "closed by the server (going); "),
        ([said(b"\x03\xe9", CLOSE)], ServerUnreachable, "closed by the server; "),
        ([said(b'{"type":"closing","code":"unauthorized","detail":"\x1b[31mno"}')], ServerMisbehaved, "read"),
        ([said(b'{"type":"closing","code":"not_found","detail":"gone"}')], NotFound, "gone"),
    ],
)
def test_what_a_server_may_not_say_ends_the_socket(
    frames: list[bytes], kind: type[SvcError], words: str
) -> None:
    found = outcome(switching(*frames))
    assert type(found) is kind
    assert words in str(found)
    assert "\x1b" not in str(found)


def test_frames_right_behind_the_answer_and_kinds_of_later_versions_are_no_trouble() -> None:
    found = outcome(switching(said(b'{"type":"of_a_later_version","channel":1}') + said(EVENT)))
    assert found == Event(id=7, repo_id="r", kind="live", data={})


def test_a_message_may_come_in_fragments_and_drop_by_drop() -> None:
    parts = b"\x01" + bytes([9]) + EVENT[:9] + said(b"", PONG) + b"\x80" + bytes([len(EVENT) - 9]) + EVENT[9:]

    def drip(connection: socket.socket) -> None:
        for byte in parts:
            connection.sendall(bytes([byte]))
            time.sleep(0.002)

    assert isinstance(outcome(switching(then=drip)), Event)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (http("200 OK", b"{}"), ServerMisbehaved),
        (problem(404, "not_found"), NotFound),
        (http("502 Bad Gateway", b"nginx", "text/html"), ServerMisbehaved),
        (SWITCHED + b"\r\n", ServerMisbehaved),
        (
            SWITCHED + b"Sec-WebSocket-Accept: bm8=\r\nSec-WebSocket-Protocol: svc-sync.v1\r\n\r\n",
            ServerMisbehaved,
        ),
        (b"", ServerMisbehaved),
    ],
)
def test_a_server_that_opens_no_socket_is_one_sentence(answer: bytes, kind: type[SvcError]) -> None:
    found = outcome(answer)
    assert isinstance(found, kind | ServerUnreachable)
    assert str(found)


@pytest.mark.parametrize("inside", [True, False])
def test_no_redirect_is_followed_and_the_token_goes_nowhere_else(inside: bool) -> None:
    with hostile(http("200 OK", b"{}")) as other:
        where = "/elsewhere" if inside else f"{other.origin}/api/v1/sync/ws"
        with hostile(http("307 Moved", b"", "text/plain", f"Location: {where}")) as server:
            with pytest.raises(ServerMisbehaved, match="it was not followed"):
                Api(Http(server.origin, CREDENTIAL)).sync.socket()
            assert len(server.requests) == 1
        assert other.requests == []


def test_the_upgrade_is_signed() -> None:
    with hostile(http("403 No", b"{}")) as server, pytest.raises(SvcError):
        Api(Http(server.origin, CREDENTIAL)).sync.socket()
    (request,) = server.requests
    assert request.startswith(b"GET /api/v1/sync/ws HTTP/1.1\r\n")
    head = request.lower()
    assert b"\r\nsignature: " in head
    assert b"\r\nsignature-input: " in head
    assert b"\r\nsec-websocket-protocol: svc-sync.v1\r\n" in head
    assert head.count(b"\r\nconnection: ") == 1


# --- ends


def test_a_server_without_a_sign_of_life_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "PING_SECONDS", 0.1)
    monkeypatch.setattr(websocket, "PONG_SECONDS", 0.2)
    found = outcome(switching())
    assert isinstance(found, ServerUnreachable)
    assert "no sign of life" in found.detail


def test_what_was_sent_into_silence_is_noticed_long_before_the_next_ping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(websocket, "SENT_SECONDS", 0.1)
    monkeypatch.setattr(websocket, "HEARD_SECONDS", 0.2)
    with (
        hostile(switching(), unread=True) as server,
        Api(Http(server.origin, CREDENTIAL)).sync.socket() as events,
    ):
        assert events.receive(0.5) is None  # a socket on which nothing was sent is asked later
        events.subscribe("r" * 20)
        with pytest.raises(ServerUnreachable, match="no sign of life"):
            events.receive(PATIENCE)


def test_a_deadline_holds_until_the_socket_is_open_and_no_longer() -> None:
    with (
        hostile(lambda connection: connection.recv(1) and None) as silent,
        within(Deadline(0.2)),
        pytest.raises(ServerUnreachable, match=r"within 0\.2 seconds"),
    ):
        Api(Http(silent.origin, CREDENTIAL)).sync.socket()

    over = threading.Event()

    def later(connection: socket.socket) -> None:
        over.wait(PATIENCE)
        connection.sendall(said(EVENT))

    with hostile(switching(then=later), unread=True) as server:
        deadline = Deadline(PATIENCE)
        with within(deadline):
            events = Api(Http(server.origin, CREDENTIAL)).sync.socket()
        deadline._expire()
        over.set()
        with events:
            assert isinstance(events.receive(PATIENCE), Event)


def test_what_a_socket_tells_has_no_end_after_something_was_said() -> None:
    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        for _ in range(200):
            connection.sendall(said(b" " * 4000 + EVENT))

    with (
        hostile(switching(then=talk), unread=True) as server,
        Api(Http(server.origin, CREDENTIAL)).sync.socket() as events,
    ):
        events.subscribe("r")
        assert [type(events.receive(PATIENCE)) for _ in range(200)] == [Event] * 200


def test_a_socket_closes_under_a_deadline_that_has_ended() -> None:
    deadline = Deadline(PATIENCE)
    with (
        hostile(switching(), unread=True) as server,
        within(deadline),
        Api(Http(server.origin, CREDENTIAL)).sync.socket() as events,
    ):
        events.subscribe("r")
        threading.Timer(0.1, deadline._expire).start()
        with pytest.raises(ServerUnreachable, match=rf"within {PATIENCE:g} seconds"):
            events.receive()


@pytest.mark.parametrize("how", ["close", "cancel"])
def test_another_thread_ends_the_wait(how: str) -> None:
    cancel = Cancel()
    with hostile(switching(), unread=True) as server, ThreadPoolExecutor(1) as pool:
        with Api(Http(server.origin, CREDENTIAL)).sync.socket() as events:

            def wait() -> float:
                with within(cancel), pytest.raises(Cancelled):
                    events.receive()
                return time.monotonic()

            waiting = pool.submit(wait)
            time.sleep(0.3)
            assert not waiting.done()
            began = time.monotonic()
            (events.close if how == "close" else cancel.cancel)()
            took = waiting.result(PATIENCE) - began
            print(f"{how}: {1000 * took:.1f} ms")
            assert took < SOON
        with pytest.raises(SvcError):
            events.receive(0)


def test_a_client_that_is_closed_while_its_socket_opens_cancels_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with hostile(switching(), unread=True) as server:
        client = Http(server.origin, CREDENTIAL, sleep=lambda _: None)

        def close_first() -> NoLimits:
            client.close()
            return NoLimits()

        monkeypatch.setattr(websocket, "NoLimits", close_first)
        with pytest.raises(Cancelled):
            Api(client).sync.socket()
