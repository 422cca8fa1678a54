"""A head is read once and by us: the same as Sanic reads it, wherever a strict second look found it good."""

from __future__ import annotations

import re
import socket

from hypothesis import example, given, settings
from hypothesis import strategies as st
from sanic.compat import Header

from relay.http.wire import RequestHead, read_head
from tests.depth import rounds
from tests.patience import PATIENCE

_NAME = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
STRICT = re.compile(_NAME + rb" [!-~]+ HTTP/1\.[01](?:\r\n" + _NAME + rb":[^\0\r\n]*)*")


def read_twice(head: bytes) -> RequestHead | None:
    """Sanic's reader, then the look at what it was given. None: refused."""
    try:
        line, *lines = head.decode(errors="surrogateescape").split("\r\n")
        method, target, protocol = line.split(" ")
        if protocol not in ("HTTP/1.1", "HTTP/1.0"):
            return None
        fields, body = [], False
        for name, value in (one.split(":", 1) for one in lines):
            name, value = name.lower(), value.lstrip(" \t")
            if name in ("content-length", "transfer-encoding"):
                if body:
                    return None
                body = True
            fields.append((name, value))
        headers = Header(fields)
        target.encode("ascii")
        chunked, length = headers.getone("transfer-encoding", None) == "chunked", 0
        if body:
            if headers.getone("expect", "100-continue").lower() != "100-continue":
                return None
            if not chunked:
                digits = headers["content-length"]
                if not re.fullmatch(r"[0-9]{1,18}[ \t]*", digits):
                    return None
                length = int(digits)
    except (ValueError, KeyError):
        return None
    old = protocol == "HTTP/1.0"
    hosts = len(headers.getall("host", ()))
    if not STRICT.fullmatch(head) or not (hosts == 1 or (old and not hosts)):
        return None
    if old and "transfer-encoding" in headers:
        return None
    return RequestHead(
        method, target, protocol[5:], headers, ("chunked" if chunked else True) if body else None, length
    )


def shown(head: RequestHead | None) -> object:
    return head and (
        head.method,
        head.target,
        head.version,
        list(head.headers.items()),
        head.body,
        head.length,
    )


_NAMES = st.sampled_from(
    [
        "Host",
        "host",
        "Content-Length",
        "Transfer-Encoding",
        "EXPECT",
        "Connection",
        "X",
        "X ",
        "",
        "\u212a",
        " X",
    ]
)
_VALUES = st.one_of(
    st.sampled_from(
        [
            " x",
            "5",
            " 5 \t",
            "\u0660",
            "+5",
            "0x5",
            "9" * 18,
            "9" * 19,
            " chunked",
            "chunked ",
            "Chunked",
            "100-Continue",
            "\x0b5",
            "\xa05",
            "a\nHost: y",
            "a\r\nHost: y",
            "a\rb",
            "\0",
            "a:b",
        ]
    ),
    st.text(max_size=4),
)
_COLON = st.sampled_from([":", ":", ":", ":", "", " :", "::"])
_END = st.sampled_from(["\r\n"] * 8 + ["\n", "\r", "\r\n ", "\r\n\r\n"])
_STRANGE = st.tuples(_END, _NAMES, _COLON, _VALUES).map("".join)
_ORDINARY = st.sampled_from(
    [
        "\r\nAccept: */*",
        "\r\nContent-Length: 5",
        "\r\nTransfer-Encoding: chunked",
        "\r\nExpect: 100-continue",
        "\r\nX-Empty:",
        "\r\nX: \u00e9",
    ]
)
_FIELDS = st.lists(st.one_of(_ORDINARY, _ORDINARY, _STRANGE), max_size=4).map("".join)
_LINE = st.sampled_from(
    ["GET / HTTP/1.1"] * 20
    + [
        "POST /a?b#c HTTP/1.0",
        "GET  / HTTP/1.1",
        "GET / HTTP/1.2",
        "G\u00e9T / HTTP/1.1",
        "GET /\u00e9 HTTP/1.1",
    ]
    + ["GET / HTTP/1.1 ", " GET / HTTP/1.1", "GET /\x7f HTTP/1.1", "GET / http/1.1", "GET /", ""]
)
_HOST = st.sampled_from(["\r\nHost: x", "\r\nHost: x", ""])


@settings(max_examples=rounds(400, 2000))
@given(st.one_of(st.tuples(_LINE, _HOST, _FIELDS).map("".join).map(str.encode), st.binary(max_size=40)))
@example(b"GET / HTTP/1.1\r\nHost: \xff\xfe")
@example(b"GET / HTTP/1.1\r\nHost: x\r\n")
@example(b"GET / HTTP/1.1\r\nHost: x\r\nX:")
@example(b"GET / HTTP/1.1X\r\nHost: x")
@example(b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue")
def test_one_reading_says_what_two_said(head):
    assert shown(read_head(head)) == shown(read_twice(head))


def test_a_head_may_come_byte_by_byte(relay):
    host, port = relay.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":
            connection.sendall(bytes([byte]))
        answer = b""
        while part := connection.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.count(b"HTTP/1.1 ") == 1
