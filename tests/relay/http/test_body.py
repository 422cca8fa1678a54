"""Bodies on the wire: caps while they stream, lies about lengths, and what a lost client leaves behind."""

from __future__ import annotations

import asyncio
import secrets
import socket
import time

import pytest
from blake3 import blake3
from sqlalchemy import insert

from localstore.core.errors import NotBound
from localstore.core.identity.request_signature import ContentDigest
from relay.db.schema.account import nonce
from relay.http.body import Incoming
from tests.patience import PATIENCE
from tests.relay.http.test_app import raw

TOO_BIG = 2 * 1024 * 1024 + 1
JSON = {"content-type": "application/json"}


def test_an_announced_body_over_the_cap_is_answered_before_it_arrives(relay):
    answer = raw(
        relay,
        b"POST /auth/guest-login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 9999999999\r\n\r\n{",
        shut=True,
    )
    assert answer.startswith(b"HTTP/1.1 413")
    assert b'"code":"too_large"' in answer


def test_a_body_over_the_cap_is_refused_and_the_client_reads_why(client):
    answer = client().post("/auth/guest-login", content=b"x" * TOO_BIG, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_a_chunked_body_is_capped_while_it_streams(client):
    sent = []

    def parts():
        for _ in range(200):
            sent.append(1)
            yield b"x" * 65536

    answer = client().post("/auth/guest-login", content=parts(), headers=JSON)
    assert answer.status_code == 413
    assert answer.headers["connection"] == "close"


def test_a_refused_small_body_keeps_the_connection(relay):
    one = b"POST /no/such/path HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    answer = raw(relay, one + b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.count(b"HTTP/1.1 404") == 1
    assert answer.count(b"HTTP/1.1 200") == 1


def test_a_body_longer_than_announced_is_no_second_request(relay):
    answer = raw(relay, b"POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nabcdefgh\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 405")
    assert answer.count(b"HTTP/1.1 400") == 1


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"{" * 100_000, b"nul"])
def test_what_is_not_json_is_a_400(client, account, body):
    answer = client(account()).put("/api/v1/handles/me", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")


def test_a_wrong_member_is_a_422_with_its_place(client, account):
    answer = client(account()).put("/api/v1/handles/me", json={"handle": 7})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/handle"


def test_nul_and_giant_numbers_never_reach_the_database(client, account):
    http = client(account())
    for text in ('{"handle": "a\\u0000b"}', '{"handle": "ok", "more": 99999999999999999999}'):
        answer = http.put("/api/v1/handles/me", content=text, headers=JSON)
        assert answer.status_code == 422


def test_another_media_type_is_a_415(client, account):
    answer = client(account()).put(
        "/api/v1/handles/me", content=b"a=b", headers={"content-type": "text/plain"}
    )
    assert answer.status_code == 415


def test_a_client_that_leaves_in_the_middle_of_a_write_leaves_the_writer_usable(relay, client):
    """The handler is cancelled inside its transaction; the roll-back happens all the same."""

    async def abandoned():
        async def write():
            async with relay.node.db.write() as tx:
                await tx.run(insert(nonce), key_id="k", nonce="n", expires_at=1)
                await asyncio.sleep(60)

        task = asyncio.create_task(write())
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    relay.run(abandoned())
    host, port = relay.url.removeprefix("http://").split(":")
    for _ in range(20):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"POST /auth/guest-login HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    until = time.monotonic() + PATIENCE
    while (answer := client().post("/auth/guest-login")).status_code >= 500 and time.monotonic() < until:
        time.sleep(0.05)
    assert answer.status_code < 300


class Arriving:
    """A request whose body arrives in the given parts."""

    def __init__(self, parts):
        self.parts, self.request_body, self.request_bytes_left = list(parts), True, sum(map(len, parts))
        self.stream = self

    async def read(self):
        if not self.parts:
            self.request_body = None
            return None
        return self.parts.pop(0)


@pytest.mark.parametrize(
    "make", [lambda b: ContentDigest.of(b), lambda b: ContentDigest.of_stream(blake3(b).digest())]
)
@pytest.mark.parametrize("forged", [False, True])
async def test_a_streamed_body_is_compared_with_what_was_signed(make, forged):
    parts = [secrets.token_bytes(n) for n in (1, 70_000, 3 << 20)]
    incoming = Incoming(Arriving(parts), 8 << 20)
    incoming.expect(make(b"another" if forged else b"".join(parts)))
    assert [part async for part in incoming.chunks()] == parts
    if forged:
        with pytest.raises(NotBound):
            await incoming.finish()
    else:
        await incoming.finish()


async def test_a_promised_table_of_contents_stands_for_the_body():
    incoming = Incoming(Arriving([b"toc", b"frames"]), 100)
    incoming.expect(ContentDigest.of_stream(blake3(b"toc").digest()))
    async for part in incoming.chunks():
        if part == b"toc":
            incoming.promise(part)
    await incoming.finish()
    assert incoming.received == 9
