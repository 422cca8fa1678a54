"""Servers that give or take a byte now and then, or wrap little in endless bytes: the client gives up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from localstore.core.errors import ServerMisbehaved, ServerUnreachable
from localstore.core.model import node
from svc.http import connection_limits
from svc.http.client import Http
from tests.svc.api.hostile import Answer, dripping, hostile, http
from tests.svc.http.test_client import ANY, CREDENTIAL, UPLOAD, VERSION, talk

STATUS = b"HTTP/1.1 200 OK\r\n"
CHUNKED = STATUS + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds become tenths of them."""
    monkeypatch.setattr(connection_limits, "HEAD_SECONDS", 0.1)
    monkeypatch.setattr(connection_limits, "WAIT_SECONDS", 0.2)
    monkeypatch.setattr(connection_limits, "SLOWEST_RATE", 10**9)


HEADS = {
    "a status line that never ends": dripping(b"HTTP/1.1 200 ", b"O"),
    "headers that never end": dripping(STATUS, b"X-More: 1\r\n"),
    "one header that never ends": dripping(STATUS + b"X-More: ", b"1"),
    "notes of progress": dripping(b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "a server that begins with spaces": dripping(b"\r", b"\n"),
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
@pytest.mark.usefixtures("hasty")
def test_a_head_that_drips_is_given_up_at_once(head: Answer) -> None:
    with hostile(head) as server, pytest.raises((ServerUnreachable, ServerMisbehaved)) as raised:
        talk(server)[0].send(node.VERSION)
    said = raised.value.detail
    assert server.origin in said
    assert raised.value.exit == 1
    if isinstance(raised.value, ServerUnreachable):
        assert "sends the head of its answer too slowly; check your network" in said
        assert len(server.requests) == 1, "a repeat would take as long"


@pytest.mark.usefixtures("hasty")
def test_a_change_whose_answer_drips_may_have_been_made() -> None:
    with hostile(HEADS["headers that never end"]) as server:
        with pytest.raises(ServerUnreachable, match="the request may have taken effect"):
            talk(server, CREDENTIAL)[0].send(ANY, {})
        with pytest.raises(ServerUnreachable, match="too slowly; check your network"):
            talk(server, CREDENTIAL)[0].upload(UPLOAD, lambda: iter((b"x",)), 1, bytes(32))


BODIES = {
    "letters": dripping(STATUS + b"Content-Type: application/json\r\n\r\n", b" "),
    "chunks": dripping(CHUNKED, b"1\r\n \r\n"),
    "the extension of a chunk": dripping(CHUNKED + b"1;", b"x"),
    "trailers": dripping(CHUNKED + b"0\r\n", b"X-More: 1\r\n"),
    "the size of a chunk": dripping(CHUNKED, b"0"),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.usefixtures("hasty")
def test_an_answer_that_comes_drop_by_drop_is_given_up(body: Answer) -> None:
    with hostile(body) as server, pytest.raises(ServerUnreachable, match="broke off after"):
        talk(server)[0].send(node.VERSION)


@pytest.mark.usefixtures("hasty")
def test_a_server_that_takes_an_upload_in_sips_is_given_up() -> None:
    def parts() -> Iterator[bytes]:
        yield from (b"x" * 65536 for _ in range(1600))

    with hostile(deaf=True) as server, pytest.raises(ServerUnreachable, match="takes what is sent to it"):
        talk(server, CREDENTIAL)[0].upload(UPLOAD, parts, 1600 * 65536, bytes(32))


@pytest.mark.usefixtures("hasty")
def test_the_time_of_the_head_begins_with_its_first_byte() -> None:
    def late(connection: Any) -> None:
        time.sleep(0.4)
        connection.sendall(http("200 OK", VERSION))

    with hostile(late) as server:
        assert talk(server)[0].send(node.VERSION).version == "9"


FLOODS = {
    "headers": (dripping(STATUS, b"X-More: %s\r\n" % (b"1" * 1000), gap=0), "sent an invalid HTTP response"),
    "one header": (dripping(STATUS + b"X-More: ", b"1" * 1000, gap=0), "sent an invalid HTTP response"),
    "notes of progress": (
        dripping(b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 100, gap=0, most=100_000),
        "sends the head of an answer that never ends",
    ),
    "extensions of chunks": (
        dripping(CHUNKED, b"1;%s\r\n \r\n" % (b"x" * 50_000), gap=0, most=100_000),
        "wraps its answer in bytes without end",
    ),
    "one extension": (dripping(CHUNKED + b"1;", b"x" * 1000, gap=0), "broke off"),
    "trailers": (dripping(CHUNKED + b"0\r\n", b"X-More: 1\r\n" * 100, gap=0), "broke off"),
}


@pytest.mark.parametrize(("answer", "said"), FLOODS.values(), ids=FLOODS.keys())
def test_a_head_or_a_wrapping_without_end_is_given_up(answer: Answer, said: str) -> None:
    with hostile(answer) as server, pytest.raises((ServerUnreachable, ServerMisbehaved), match=said):
        talk(server)[0].send(node.VERSION)


def test_many_small_chunks_are_no_attack() -> None:
    body = b" " * 50_000 + VERSION
    chunks = b"".join(b"1\r\n%s\r\n" % body[at : at + 1] for at in range(len(body))) + b"0\r\n\r\n"
    with hostile(CHUNKED.replace(b"chunked\r\n", b"chunked\r\nConnection: close\r\n") + chunks) as server:
        assert talk(server)[0].send(node.VERSION).version == "9"


@pytest.mark.usefixtures("hasty")
def test_every_request_of_a_kept_connection_is_counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "HEAD_BYTES", 700)
    kept = http("200 OK", VERSION).replace(b"Connection: close\r\n", b"X-Pad: %s\r\n" % (b"1" * 300))
    asked = []

    def answer(connection: Any) -> None:
        connection.sendall(kept)
        for _ in range(4):
            asked.append(connection.recv(65536))
            connection.sendall(kept)

    with hostile(answer) as server:
        caller, _ = talk(server)
        for _ in range(5):
            assert caller.send(node.VERSION).version == "9"
        caller.close()
    assert len(asked) == 4


def test_connections_through_a_proxy_are_counted_too(hasty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with hostile(HEADS["headers that never end"]) as proxy:
        monkeypatch.setenv("http_proxy", proxy.origin)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with pytest.raises(ServerUnreachable, match="too slowly"):
            Http("http://node.example").send(node.VERSION)
