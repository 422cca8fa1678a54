"""What a client may send through a WebSocket, and how much of it the relay takes at once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket as sockets
import struct
import time

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from localstore.core.identity.bearer import authorization
from localstore.core.model.limits import MIB
from relay.capacity.limiter import SOCKET
from relay.http import websocket
from scripts.attack import attackers
from scripts.attack.attackers import frame
from tests.patience import PATIENCE

PING, PONG, TEXT, CONTINUED, CLOSE = 9, 10, 1, 0, 8
HALF = b" " * (websocket.MESSAGE_BYTES // 2 + 1)


@pytest.fixture(scope="module")
def relay_variables():
    return {"RUST_LOG": "off"}  # with rate limits


class Raw:
    """A guest's socket without a library: bytes in, frames out."""

    def __init__(self, url):
        host, port = url.removeprefix("http://").split(":")
        self.line = sockets.create_connection((host, int(port)), timeout=PATIENCE)
        self.line.sendall(attackers.upgrade(url, attackers.guest(url)))
        self._arrived = b""
        while b"\r\n\r\n" not in self._arrived:
            self._arrived += self.line.recv(4096)
        head, _, self._arrived = self._arrived.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101"), head

    def hear(self):
        """The next frame: its opcode and content."""
        while len(self._arrived) < 2 or len(self._arrived) < 2 + self._arrived[1]:
            part = self.line.recv(65536)
            if not part:
                raise ConnectionError
            self._arrived += part
        size = self._arrived[1]
        assert size < 126
        opcode, content = self._arrived[0] & 15, self._arrived[2 : 2 + size]
        self._arrived = self._arrived[2 + size :]
        return opcode, content

    def closed_with(self):
        """The code with which the relay closes; what it says before is passed over."""
        while True:
            opcode, content = self.hear()
            if opcode == CLOSE:
                return struct.unpack("!H", content[:2])[0]


@pytest.fixture
def raw(relay):
    made = Raw(relay.url)
    yield made
    made.line.close()


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(TEXT, b"\xff"), 1007),
        (frame(TEXT, b'{"type":"\xed\xa0\x80"}'), 1007),
        (frame(TEXT, b"\xc3", fin=False) + frame(CONTINUED, b"x"), 1007),
        (frame(TEXT, fin=False) + frame(CONTINUED, fin=False) * websocket.FRAGMENTS, 1008),
        (frame(TEXT, b" " * (websocket.MESSAGE_BYTES + 1)), 1009),
        (frame(TEXT, HALF, fin=False) + frame(CONTINUED, HALF), 1009),
        (frame(CONTINUED, b"x"), 1002),
        (frame(TEXT, b"x", fin=False) + frame(TEXT, b"y"), 1002),
        (frame(PING, b"x", fin=False), 1002),
        (frame(PING, b"x" * 126), 1002),
        (frame(3, b"x"), 1002),
        (b"\x81\x01x", 1002),  # not masked
    ],
)
def test_what_no_client_sends_closes_the_socket(raw, sent, code):
    raw.line.sendall(sent)
    assert raw.closed_with() == code


def test_a_message_in_fragments_is_one_message_also_with_pings_between(raw):
    said = json.dumps({"type": "subscribe", "repo_id": "é"}, ensure_ascii=False).encode()
    parts = [said[n : n + 8] for n in range(0, len(said), 8)]  # one cuts the letter in two
    frames = [frame(TEXT, parts[0], fin=False)]
    for part in parts[1:]:
        frames += [frame(PING, b"p"), frame(CONTINUED, part, fin=False)]
    raw.line.sendall(b"".join(frames) + frame(CONTINUED))
    pongs = 0
    while (heard := raw.hear())[0] == PONG:
        assert heard[1] == b"p"
        pongs += 1
    assert pongs == len(parts) - 1
    assert json.loads(heard[1]) == {"type": "hidden", "repo_id": "é"}


def test_frames_right_behind_the_upgrade_are_heard(relay):
    host, port = relay.url.removeprefix("http://").split(":")
    with sockets.create_connection((host, int(port)), timeout=PATIENCE) as line:
        line.sendall(attackers.upgrade(relay.url, attackers.guest(relay.url)) + frame(PING, b"early"))
        answer = b""
        while not answer.endswith(b"early"):
            answer += line.recv(4096)


def test_whoever_floods_waits_and_is_not_read_meanwhile(relay, raw):
    """Pings cost tokens. What has no tokens is not read, so that the sender's own line fills up."""
    block, sent = frame(PING) * 10_000, 0
    raw.line.settimeout(0.5)
    began = time.monotonic()
    with contextlib.suppress(TimeoutError):
        while sent < 64 * MIB:
            sent += raw.line.send(block)
            assert httpx.get(f"{relay.url}/health", trust_env=False, timeout=PATIENCE).is_success
    assert sent < 16 * MIB, "the relay took whatever came"
    raw.line.settimeout(PATIENCE)
    for _ in range(SOCKET.burst):
        assert raw.hear()[0] == PONG
    raw.line.settimeout(0.5)
    pongs = SOCKET.burst
    with contextlib.suppress(TimeoutError):
        while pongs < 100_000 and raw.hear()[0] == PONG:
            pongs += 1
    assert pongs <= SOCKET.burst + (time.monotonic() - began + 5) * SOCKET.per_second


async def test_a_client_that_never_reads_is_not_answered_for_ever(relay):
    """The answers fill its line, and then nothing more is read from it."""
    raw = await asyncio.to_thread(Raw, relay.url)
    block = b"".join(frame(PING, b"x" * 125) for _ in range(1000))
    raw.line.settimeout(0.5)
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < 64 * MIB:
            sent += await asyncio.to_thread(raw.line.send, block)
    assert sent < 16 * MIB
    raw.line.close()


async def test_sockets_of_a_session_are_counted(relay, monkeypatch):
    monkeypatch.setattr(websocket, "OF_A_SESSION", 3)
    ann, bob = relay.account(None, "guest"), relay.account(None, "guest")
    url = relay.url.replace("http", "ws") + "/api/v1/sync/ws"

    def opened(who):
        headers = {"Authorization": authorization(who.token)}
        return connect(url, subprotocols=["svc-sync.v1"], additional_headers=headers, proxy=None)

    async with opened(ann), opened(ann), opened(ann) as last:
        with pytest.raises(Exception, match="429"):
            await opened(ann)
        async with opened(bob):
            pass
        await last.close()
        async with asyncio.timeout(PATIENCE):
            while True:
                with contextlib.suppress(InvalidStatus):
                    again = await opened(ann)
                    break
                await asyncio.sleep(0.02)
        await again.close()


async def test_a_client_that_says_goodbye_is_answered(relay):
    who = relay.account(None, "guest")
    url = relay.url.replace("http", "ws") + "/api/v1/sync/ws"
    headers = {"Authorization": authorization(who.token)}
    async with connect(url, subprotocols=["svc-sync.v1"], additional_headers=headers, proxy=None) as one:
        await one.close(1000, "enough")
    assert one.close_code == 1000
    with pytest.raises(ConnectionClosed):
        await one.send("x")
