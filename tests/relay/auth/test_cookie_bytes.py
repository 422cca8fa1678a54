"""Which bytes of a Cookie header are a cookie of ours: one exact name, once. Sent as bytes over a socket,
because clients tidy headers up."""

from __future__ import annotations

import re
import socket
import sys
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

NAME = b"tr_session"
SPACES = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace() and chr(code) not in "\r\n"]
INVISIBLE = [*SPACES, "\u200b", "\u2060", "\ufeff", "\u00ad", "\x00"]


@pytest.fixture
def ask(relay):
    """The status of /auth/userinfo, asked with these Cookie lines as they stand."""

    def send(*lines: bytes, method: bytes = b"GET", path: bytes = b"/auth/userinfo") -> int:
        place = urlsplit(relay.url)
        head = b"".join(b"Cookie:" + line + b"\r\n" for line in lines)
        raw = b"%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n" % (method, path, head)
        with socket.create_connection((place.hostname, place.port)) as wire:
            wire.sendall(raw)
            answer = b""
            while part := wire.recv(65536):
                answer += part
        return int(answer.split(b" ", 2)[1])

    return send


@pytest.fixture
def token(browser) -> bytes:
    one = browser()
    one.post("/auth/guest-login")
    return one.cookies["tr_session"].encode()


def test_the_cookie_signs_in_wherever_it_stands_in_the_header(ask, token):
    ours = NAME + b"=" + token
    for lines in ([b" " + ours], [ours], [b" a=b; " + ours], [b"\ta=b;" + ours + b" ; c=d"], [b" a=b", ours]):
        assert ask(*lines) == 200, lines


def test_no_other_name_is_ours(ask, token):
    """`isspace` and what one does not see, before and behind the name, wherever the cookie stands."""
    for sign in INVISIBLE:
        raw = sign.encode()
        for name in (raw + NAME, NAME + raw):
            if name.lstrip(b" \t") == NAME:
                continue  # space and tab before a name are the header's own
            for line in (b" " + name, name, b" a=b; " + name):
                assert ask(line + b"=" + token) in (400, 401), (sign, line)


@pytest.mark.parametrize(
    "name", [b"TR_SESSION", b"__Host-tr_session", b"__Secure-tr_session", b"tr%5Fsession", b'"tr_session"']
)
def test_spellings_are_other_names(ask, token, name):
    assert ask(b" " + name + b"=" + token) == 401


def test_a_cookie_that_comes_twice_signs_nobody_in(ask, token, browser):
    other = browser()
    other.post("/auth/guest-login")
    second = other.cookies["tr_session"].encode()
    ours, theirs = NAME + b"=" + token, NAME + b"=" + second
    for lines in (
        [b" " + ours + b"; " + theirs],
        [ours, theirs],
        [ours + b";" + ours],
        [NAME + b"=;" + ours],
    ):
        assert ask(*lines) == 401, lines
    assert ask(ours) == 200


@given(before=st.binary(max_size=6), after=st.binary(max_size=6))
@settings(max_examples=300, deadline=None)
def test_bytes_around_the_name_are_part_of_it(before: bytes, after: bytes) -> None:
    from relay.http import cookies

    class Request:
        head = b"GET / HTTP/1.1\r\nCookie: x=y;" + before + NAME + after + b"=secret"

    found = b"x=y;" + before + NAME + after + b"=secret"
    held = re.findall(rb"(?:\A|;)[ \t]*" + NAME + rb"=([^;]*?)[ \t]*(?=;|\Z)", found)
    if b"\r\n" in found or len(held) > 1 or (held and not held[0].isascii()):
        return
    assert cookies.read_cookie(Request, "tr_session") == (held[0].decode() or None if held else None)  # type: ignore[arg-type]
