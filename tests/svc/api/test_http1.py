"""Answers of any bytes, in pieces of any size: they are read in one way, or refused."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.api.http1 import LINE_BYTES, LINES, BrokenOff, Head, Malformed, body, read_head, request_head

OK = b"HTTP/1.1 200 OK\r\n"


class Trickle(io.RawIOBase):
    """Bytes that arrive in pieces of these sizes, again and again."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self._data, self._sizes, self._at = data, sizes, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self._sizes[self._at % len(self._sizes)])
        self._at += 1
        piece, self._data = self._data[:size], self._data[size:]
        buffer[: len(piece)] = piece
        return len(piece)


def reader(data: bytes, sizes: list[int] | None = None) -> io.BufferedReader[Trickle]:
    return io.BufferedReader(Trickle(data, sizes or [1 << 20]), 64 * 1024)


def read(data: bytes, method: str = "GET", sizes: list[int] | None = None) -> tuple[Head, bytes]:
    source = reader(data, sizes)
    head = read_head(source, method)
    return head, b"".join(body(source, head))


def chunked(pieces: list[bytes], extension: bytes = b"", trailer: bytes = b"") -> bytes:
    coded = b"".join(b"%x%s\r\n%s\r\n" % (len(one), extension, one) for one in pieces if one)
    return OK + b"Transfer-Encoding: chunked\r\n\r\n" + coded + b"0\r\n" + trailer + b"\r\n"


@given(st.lists(st.binary(max_size=2000), max_size=8), st.lists(st.integers(1, 700), min_size=1, max_size=5))
def test_a_body_is_the_same_in_every_framing_and_however_it_arrives(
    pieces: list[bytes], sizes: list[int]
) -> None:
    whole = b"".join(pieces)
    counted = OK + b"content-length: %d \r\n\r\n" % len(whole) + whole + b"HTTP/1.1 500 Not this\r\n\r\n"
    assert read(counted, sizes=sizes)[1] == whole
    assert read(OK + b"\r\n" + whole, sizes=sizes)[1] == whole
    assert read(chunked(pieces), sizes=sizes)[1] == whole
    assert read(chunked(pieces, b" ; a=b", b"X: 1\r\n"), sizes=sizes)[1] == whole


@given(st.binary(max_size=300), st.sampled_from([b"", OK, OK + b"Transfer-Encoding: chunked\r\n\r\n"]))
def test_any_bytes_are_read_or_refused_by_name(data: bytes, before: bytes) -> None:
    try:
        read(before + data)
    except (Malformed, BrokenOff) as error:
        assert str(error)


def test_what_a_head_says() -> None:
    notes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103\r\nLink: x\r\n\r\n"
    head, content = read(notes + b"HTTP/1.1 404 Not \xe4 Found\nA:\t1 \r\na: 2\r\n\r\nrest")
    assert head == Head(404, b"Not \xe4 Found", [(b"A", b"1"), (b"a", b"2")], False, None, False)
    assert content == b"rest"


@pytest.mark.parametrize(
    ("start", "headers", "lasting"),
    [
        (b"HTTP/1.1 200 OK", b"Content-Length: 0", True),
        (b"HTTP/1.1 200 OK", b"Content-Length: 0\r\nConnection: x, Close", False),
        (b"HTTP/1.1 200 OK", b"Transfer-Encoding: Chunked", True),
        (b"HTTP/1.0 200 OK", b"Content-Length: 0\r\nConnection: keep-alive", False),
        (b"HTTP/1.1 200 OK", b"X: y", False),
        (b"HTTP/1.1 204 Done", b"X: y", True),
        (b"HTTP/1.1 304 Same", b"Content-Length: 9", True),
    ],
)
def test_whether_the_connection_lasts(start: bytes, headers: bytes, lasting: bool) -> None:
    assert read_head(reader(start + b"\r\n" + headers + b"\r\n\r\n"), "GET").lasting is lasting


def test_an_answer_to_head_has_no_body() -> None:
    assert read(OK + b"Content-Length: 900\r\n\r\n", "HEAD")[1] == b""
    assert read(OK + b"Transfer-Encoding: chunked\r\n\r\n", "HEAD")[1] == b""


@pytest.mark.parametrize(
    "answer",
    [
        b"220 mail.example ready\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"http/1.1 200 OK\r\n\r\n",
        b"\r\n" + OK + b"\r\n",
        OK + b"No colon\r\n\r\n",
        OK + b"Space : 1\r\n\r\n",
        OK + b": 1\r\n\r\n",
        OK + b"A: 1\r\n folded\r\n\r\n",
        OK + b"A: 1\rB: 2\r\n\r\n",
        OK + b"A: \0\r\n\r\n",
        OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        OK + b"Content-Length: 1, 2\r\n\r\nab",
        OK + b"Content-Length: +1\r\n\r\na",
        OK + b"Content-Length: 1_0\r\n\r\n" + b"a" * 10,
        OK + b"Content-Length: -1\r\n\r\na",
        OK + b"Content-Length:\r\n\r\na",
        OK + b"Content-Length: 9999999999999999\r\n\r\na",
        OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        *(
            OK + b"Transfer-Encoding: chunked\r\n\r\n" + bad
            for bad in (b"-1\r\nab", b"\r\n", b"g\r\n", b"1\r\nab\r\n0\r\n\r\n", b" 1\r\na", b"0x1\r\na")
        ),
        OK + b"A: " + b"1" * LINE_BYTES + b"\r\n\r\n",
        OK + b"A: 1\r\n" * (LINES + 1) + b"\r\n",
        chunked([b"a"], trailer=b"A: 1\r\n" * (LINES + 1)),
        chunked([b"a"], b";" + b"1" * LINE_BYTES),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(answer: bytes) -> None:
    with pytest.raises(Malformed):
        read(answer)


@pytest.mark.parametrize(
    "whole", [OK + b"Content-Length: 5\r\n\r\nhello", chunked([b"hel", b"lo"], trailer=b"X: 1\r\n")]
)
def test_an_answer_that_ends_early_is_never_taken_for_a_whole_one(whole: bytes) -> None:
    assert read(whole)[1] == b"hello"
    for end in range(len(whole)):
        with pytest.raises(BrokenOff):
            read(whole[:end])


def test_lengths_that_agree_are_one() -> None:
    assert read(OK + b"Content-Length: 1, 1\r\nContent-Length: 1\r\n\r\nab")[1] == b"a"


def test_a_request_says_what_it_was_given() -> None:
    head = request_head("GET", b"/a?b", [(b"Host", b"x"), (b"Empty", b"")])
    assert head == b"GET /a?b HTTP/1.1\r\nHost: x\r\nEmpty: \r\n\r\n"


@pytest.mark.parametrize(
    ("target", "name", "value"),
    [
        (b"/a\r\nX: 1", b"A", b"1"),
        (b"/", b"A", b"1\r\nB: 2"),
        (b"/", b"A", b"1\n"),
        (b"/", b"A\r\nB", b"1"),
        (b"/", b"A:B", b"1"),
        (b"/", b"A B", b"1"),
        (b"/", b"", b"1"),
        (b"/", b"A", b"\0"),
    ],
)
def test_a_header_never_becomes_two(target: bytes, name: bytes, value: bytes) -> None:
    with pytest.raises(ValueError, match=r"not one line|cannot be called"):
        request_head("GET", target, [(name, value)])
