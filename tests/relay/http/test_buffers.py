"""What clients make the relay hold in memory is counted, bounded, and given back."""

from __future__ import annotations

import asyncio
import secrets
import socket

import pytest

from localstore.core.errors import Unavailable
from localstore.core.model.limits import MIB
from relay.http import app
from relay.http.buffers import Buffers, Lease
from relay.objects.room import Room
from tests.patience import PATIENCE, until
from tests.relay.histories import create


def test_one_address_never_takes_what_is_left_for_others():
    buffers = Buffers(total=10, each=6)
    one, other = Lease(buffers, "192.0.2.1"), Lease(buffers, "192.0.2.2")
    one.reserve(6)
    with pytest.raises(Unavailable):
        Lease(buffers, "192.0.2.1").reserve(1)
    other.reserve(4)
    with pytest.raises(Unavailable):
        Lease(buffers, "192.0.2.3").reserve(1)
    one.release()
    one.release()
    Lease(buffers, "192.0.2.3").reserve(6)


async def test_an_answer_waits_for_memory_and_leaves_some_to_requests():
    buffers = Buffers(total=12, each=8)
    one, other = Lease(buffers, "192.0.2.1"), Lease(buffers, "192.0.2.2")
    assert await one.wait(100) == 8  # all that its address may have
    waiting = asyncio.create_task(other.wait(4))
    await asyncio.sleep(0)
    assert not waiting.done()
    Lease(buffers, "192.0.2.3").reserve(4)  # a request has what answers may not take
    one.give_back(5)
    one.release()
    one.give_back(5)
    assert await waiting == 4
    with pytest.raises(Unavailable):
        await buffers.wait("192.0.2.4", 6, patience=0.01)


async def test_an_answer_never_waits_for_itself():
    buffers = Buffers(total=100, each=8)
    one = Lease(buffers, "192.0.2.1")
    assert [await one.wait(6), await one.wait(6), await one.wait(6)] == [6, 2, 0]
    one.release()
    assert await Lease(buffers, "192.0.2.1").wait(8) == 8


async def test_room_to_unpack_is_given_in_turn():
    room, done = Room(10), list[str]()

    async def work(name: str, size: int) -> None:
        async with room.of(size):
            done.append(name)
            await asyncio.sleep(0)

    async with room.of(6):
        waiting = [asyncio.create_task(work(*one)) for one in (("large", 50), ("gone", 5), ("small", 1))]
        await asyncio.sleep(0)
        assert done == []
        waiting[1].cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert done == ["large", "small"]
    async with asyncio.timeout(PATIENCE), room.of(10):
        pass


def test_a_reader_that_takes_nothing_is_cut_off(relay, account, client, monkeypatch):
    mira = account()
    http = client(mira)
    repo = create(http, mira, "shown", visibility="public")
    (seal,) = repo.seal({"large.bin": secrets.token_bytes(15 * MIB)})
    host, port = relay.url.removeprefix("http://").split(":")
    with (
        monkeypatch.context() as patch,  # the next reader takes all, though perhaps slowly
        socket.create_connection((host, int(port)), timeout=PATIENCE) as connection,
    ):
        patch.setattr(app, "PIECE_SECONDS", 0.2)
        connection.sendall(f"GET {repo.url}/raw/{seal}/large.bin HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert connection.recv(12).endswith(b"200")
        until(lambda: not relay.node.buffers._held, "the reader is cut off")
        assert http.get("/health").is_success
    assert len(http.get(f"{repo.url}/raw/{seal}/large.bin").content) == 15 * MIB
    until(lambda: not relay.node.buffers._held, "the memory is given back")
