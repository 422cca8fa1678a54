"""One request is one request: what another reader of HTTP could take apart differently is refused."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from relay.http import app
from tests.patience import PATIENCE, until
from tests.relay.http.test_app import raw

HIDDEN = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = HIDDEN.replace(b"Host: x", b"Host: x\r\nConnection: close")
POST = b"POST /auth/guest-login HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"

SMUGGLED = {
    "length and coding": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
    "a list of lengths": POST + b"Content-Length: 0, 0\r\n\r\n",
    "two codings": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "space before the colon of a length": POST + b"Content-Length : 34\r\n\r\n",
    "space before the colon of a coding": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "bare line feed": POST + b"X: y\nContent-Length: 34\r\n\r\n",
    "bare carriage return": POST + b"X: y\rContent-Length: 34\r\n\r\n",
    "folded line": POST + b"X: y\r\n Content-Length: 34\r\n\r\n",
    "NUL": POST + b"X: \0\r\n\r\n",
    "a length in other digits": POST + "Content-Length: \u0660\r\n\r\n".encode(),
    "a length with a sign": POST + b"Content-Length: +0\r\n\r\n",
    "a coding with a suffix": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "an unknown coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a coding in HTTP/1.0": CHUNKED.replace(b"1.1", b"1.0") + b"0\r\n\r\n",
    "a chunk size of C": CHUNKED + b"0x0\r\n\r\n",
    "a chunk size with a sign": CHUNKED + b"-0\r\n\r\n",
    "a chunk size after a space": CHUNKED + b" 0\r\n\r\n",
    "a chunk ended by a line feed": CHUNKED + b"0\n\n",
    "a vertical tab before a length": POST + b"Content-Length:\x0b0\r\n\r\n",
    "a no-break space before a coding": POST + b"Transfer-Encoding:\xa0chunked\r\n\r\n0\r\n\r\n",
    "a file separator before a coding": POST + b"Transfer-Encoding:\x1cchunked\r\n\r\n0\r\n\r\n",
    "a coding under two names": POST + b"Transfer-Encoding: chunked\r\nTransfer-encoding: x\r\n\r\n0\r\n\r\n",
    "two different lengths": POST + b"Content-Length: 0\r\nContent-Length: 34\r\n\r\n",
    "a folded coding": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a chunk size before a space": CHUNKED + b"0 \r\n\r\n",
    "a line feed in an extension": CHUNKED + b"0;a\nb\r\n\r\n",
    "a chunk that does not end": CHUNKED + b"1\r\nxx\r\n0\r\n\r\n",
    "very many small chunks": CHUNKED + b"1\r\nx\r\n" * 2000 + b"0\r\n\r\n",
    "a trailer": CHUNKED + b"0\r\nContent-Length: 34\r\n\r\n",
    "no host": b"GET /version HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /version HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", SMUGGLED.values(), ids=SMUGGLED.keys())
def test_no_request_hides_another(relay, request_bytes):
    answer = raw(relay, request_bytes + HIDDEN)
    assert answer.startswith(b"HTTP/1.1 400"), answer[:200]
    assert answer.count(b"HTTP/1.1 ") == 1, "what followed was taken for a request"
    assert b"connection: close" in answer.lower()
    assert b'"code":"malformed"' in answer


def test_a_request_that_cannot_be_read_has_its_line_in_the_log(relay, monkeypatch):
    lines = []
    monkeypatch.setattr(app, "request_line", lambda line: lines.append(msgspec.json.encode(line)))
    assert raw(relay, b"\xff\xfe /health HTTP/1.1\r\nHost: x\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert b'"method":"unknown"' in lines[0]


@pytest.mark.parametrize("target", [b"http://[x/health", b"a:443", b"/a\x7fb", b"/a\x01b"])
def test_an_address_that_cannot_be_read_is_answered(relay, target):
    answer = raw(relay, b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400"), answer[:200]
    assert b'"code":"malformed"' in answer


def test_ordinary_chunks_and_pipelining_still_work(relay):
    sent = CHUNKED.replace(b"guest-login", b"logout") + b"0;note=1\r\n\r\n" + LAST
    answer = raw(relay, sent)
    assert answer.count(b"HTTP/1.1 204") == answer.count(b"HTTP/1.1 200") == 1


def test_chunks_of_any_size_are_one_body(relay):
    """However small, as long as they are not very many."""
    body = b'{"handle": null, "ed25519": "x"}'
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    head = b"POST /api/v1/auth/device-key/challenge HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    head += b"Content-Type: application/json\r\n"
    whole = raw(relay, head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert whole.startswith(b"HTTP/1.1 422")
    parted = raw(relay, head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
    assert parted.rpartition(b"\r\n\r\n")[2] == whole.rpartition(b"\r\n\r\n")[2]


def test_requests_in_one_write_are_all_answered_and_others_between_them(relay, client, monkeypatch):
    """Another client's request may come too early or too late to be between them, but not every time."""
    count, http, answered = 400, client(), []
    monkeypatch.setattr(app, "request_line", lambda line: answered.append(line.route))
    for _ in range(50):
        answered.clear()
        with ThreadPoolExecutor() as pool:
            many = pool.submit(raw, relay, HIDDEN * (count - 1) + LAST)
            assert http.get("/version").is_success
            assert many.result().count(b"HTTP/1.1 200") == count
        until(lambda: len(answered) > count, "each has its line")
        between = next(at for at, route in enumerate(answered) if "version" in route)
        if 0 < between < count:
            return
    raise AssertionError("they were answered in one go")


def test_a_request_byte_by_byte_is_answered(relay):
    host, port = relay.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for n in range(len(HIDDEN)):
            line.sendall(HIDDEN[n : n + 1])
            time.sleep(0.001)
        assert line.recv(4096).startswith(b"HTTP/1.1 200")


def test_no_value_of_a_header_begins_another(relay, monkeypatch):
    common = app._common_headers

    def careless(request, response):
        common(request, response)
        response.headers["x-note"] = "a\r\nset-cookie: b\0"

    monkeypatch.setattr(app, "_common_headers", careless)
    answer = raw(relay, LAST)
    assert b"\r\nx-note: aset-cookie: b\r\n" in answer
    assert answer.endswith(b'\r\n\r\n{"status":"ok"}')


def test_what_fails_beyond_the_entry_is_a_500_and_the_next_request_is_answered(relay, monkeypatch):
    common = app._common_headers
    failing = iter([True])

    def broken(request, response):
        if next(failing, False):
            raise ZeroDivisionError
        common(request, response)

    monkeypatch.setattr(app, "_common_headers", broken)
    answer = raw(relay, HIDDEN + LAST)
    assert answer.startswith(b"HTTP/1.1 500")
    assert answer.count(b"HTTP/1.1 ") == 2
    assert b"HTTP/1.1 200" in answer
