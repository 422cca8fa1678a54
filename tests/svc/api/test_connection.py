"""Connections: reuse, the ends of a body, and servers that try to confuse two answers."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator

import pytest

from svc.api.message import BrokeOff, NotConnected, NotHttp, TimedOut, TransportError
from tests.svc.api.hostile import OK, get, hostile, read, scripted, wire_to

# --- reuse


def test_one_connection_carries_one_request_after_another() -> None:
    with scripted([OK, OK, OK]) as server:
        wire = wire_to(server.port)
        assert [read(get(wire, f"/{number}")) for number in range(3)] == [b"ok"] * 3
        wire.close()
    assert [request.split(b" ")[1] for request in server.heard[0]] == [b"/0", b"/1", b"/2"]


def test_an_answer_without_a_body_leaves_the_connection_to_the_next() -> None:
    with scripted([b"HTTP/1.1 204 None\r\n\r\n", OK]) as server:
        wire = wire_to(server.port)
        get(wire).close()
        assert read(get(wire)) == b"ok"
        wire.close()
    assert len(server.heard) == 1


def test_two_answers_at_once_use_two_connections() -> None:
    with scripted([OK], [OK]) as server:
        wire = wire_to(server.port)
        first = get(wire)
        first.close()
        first.close()  # a second time does not end a connection that somebody else may have by now
        second = get(wire)
        assert read(second) == b"ok"
        wire.close()
    assert len(server.heard) == 2


@pytest.mark.parametrize(
    "last",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: Close\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        OK,  # and then it closes unasked
        OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    ],
)
def test_a_connection_that_ended_or_holds_more_is_not_used_again(last: bytes) -> None:
    with scripted([last], [OK]) as server:
        wire = wire_to(server.port)
        assert read(get(wire, "/1")) == b"ok"
        if wire._idle:  # then the server's end arrives before the next request
            select.select([wire._idle[0][1]._socket], [], [], 5)
        assert read(get(wire, "/2")) == b"ok"
        wire.close()
    assert len(server.heard) == 2


# --- the ends of a body


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n", b"abc"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Length: 9\r\n\r\n"
            b"1\r\na\r\n00\r\nX: y\r\n\r\n",
            b"a",
        ),
        (b"HTTP/1.1 200\r\n\r\nall until the end", b"all until the end"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\na", b"a"),
        (b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", b"a"),
        (b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length:  1 \r\n\r\na", b"a"),
    ],
)
def test_bodies_end_where_the_head_says(answer: bytes, body: bytes) -> None:
    with scripted([answer]) as server:
        assert read(get(wire_to(server.port))) == body


def test_the_answer_to_head_has_no_body_whatever_it_declares() -> None:
    with scripted([b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", OK]) as server:
        wire = wire_to(server.port)
        assert read(get(wire, method="HEAD")) == b""
        assert read(get(wire)) == b"ok"
        wire.close()
    assert len(server.heard) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 99 No\r\n\r\n",
        b"HTTP/1.1 2000 No\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nspace : x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b" " * 100_000 + b"x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na",
        b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\na",
        b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\na",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"x" * 9000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 20_000,
        b"HTTP/1.1 100 Wait\r\n\r\n" * 100,
    ],
)
def test_what_is_no_answer_is_refused(answer: bytes) -> None:
    with scripted([answer]) as server, pytest.raises(NotHttp):
        read(get(wire_to(server.port)))


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 20",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n",
    ],
)
def test_an_answer_that_ends_early_is_told_from_one_that_is_wrong(answer: bytes) -> None:
    with scripted([answer]) as server, pytest.raises(BrokeOff):
        read(get(wire_to(server.port)))


def test_a_server_that_says_nothing_is_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc.api.connection.IO_TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(TimedOut):
        get(wire_to(server.getsockname()[1]))


# --- sending


def test_an_answer_given_before_the_body_was_read_counts() -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno"
    closed = threading.Event()

    def endless() -> Iterator[bytes]:
        yield bytes(65536)
        closed.wait(5)
        for _ in range(1000):
            yield bytes(65536)

    def refuse() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(10)
            connection.sendall(refusal)
        closed.set()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=refuse)
        thread.start()
        wire = wire_to(server.getsockname()[1])
        answer = wire.send("PUT", "/", {}, endless(), 65_536 * 1001, True)
        assert (answer.status, read(answer)) == (413, b"no")
        assert wire._idle == [], "a connection with half a request is not used again"
        thread.join(5)


@pytest.mark.parametrize("parts", [[b"abc"], [b"abcd", b"ef"]])
def test_a_body_of_another_length_than_declared_is_never_a_request(parts: list[bytes]) -> None:
    with scripted([OK]) as server, pytest.raises(TransportError, match="changed its length"):
        try:
            wire_to(server.port).send("PUT", "/", {}, iter(parts), 5, True)
        finally:
            server.asked.wait(5)
    assert len(server.heard[0][0].partition(b"\r\n\r\n")[2]) <= 5


@pytest.mark.parametrize(
    ("target", "headers"),
    [("/a b", {}), ("/a\r\nX: y", {}), ("", {}), ("/", {"X": "a\r\nY: b"}), ("/", {"X\r\nY": "a"})],
)
def test_a_request_never_carries_more_lines_than_it_should(target: str, headers: dict[str, str]) -> None:
    with scripted([OK]) as server, pytest.raises(TransportError, match="characters"):
        wire_to(server.port).send("GET", target, headers, b"", None, True)


def test_nobody_there_is_never_taken_for_sent() -> None:
    with hostile(b"") as server:
        port = int(server.origin.rpartition(":")[2])
    with pytest.raises(NotConnected, match="refused"):
        get(wire_to(port))
