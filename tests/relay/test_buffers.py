"""What clients make the relay hold in memory is counted, bounded, and given back."""

from __future__ import annotations

import secrets
import socket
import time

import pytest

from localstore.core.errors import Unavailable
from localstore.core.limits import MIB
from relay import app
from relay.buffers import Buffers, Lease
from tests.relay.histories import create


def test_one_address_never_takes_what_is_left_for_others():
    buffers = Buffers(total=10, each=6)
    one, other = Lease(buffers, "192.0.2.1"), Lease(buffers, "192.0.2.2")
    one.take(6)
    with pytest.raises(Unavailable):
        Lease(buffers, "192.0.2.1").take(1)
    other.take(4)
    with pytest.raises(Unavailable):
        Lease(buffers, "192.0.2.3").take(1)
    one.release()
    one.release()
    Lease(buffers, "192.0.2.3").take(6)


def test_a_reader_that_takes_nothing_is_cut_off(relay, account, client, monkeypatch):
    monkeypatch.setattr(app, "PIECE_SECONDS", 0.2)
    mira = account()
    http = client(mira)
    repo = create(http, mira, "shown", visibility="public")
    (seal,) = repo.seal({"large.bin": secrets.token_bytes(15 * MIB)})
    host, port = relay.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(f"GET {repo.url}/raw/{seal}/large.bin HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert connection.recv(12).endswith(b"200")
        until = time.monotonic() + 20
        while relay.node.buffers._held and time.monotonic() < until:
            http.get("/health")
        assert not relay.node.buffers._held
    assert len(http.get(f"{repo.url}/raw/{seal}/large.bin").content) == 15 * MIB
    assert not relay.node.buffers._held
