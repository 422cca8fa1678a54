"""The surface: paths, methods, errors, headers, bodies."""

from __future__ import annotations

import socket

import pytest

from relay.http import problems
from tests.patience import PATIENCE

CONSTANT = problems.NOT_FOUND_BODY
VARYING = {"x-request-id", "date"}


@pytest.fixture(scope="module")
def relay_variables():
    return {"TR_RATE_LIMITS": "off", "RUST_LOG": "off", "TR_REPO_SEALING": "off", "TR_REPO_LIVE_TEXT": "off"}


def shown(answer):
    headers = [(k, v) for k, v in answer.headers.multi_items() if k not in VARYING]
    return answer.status_code, answer.content, headers


def raw(relay, request: bytes, shut: bool = False) -> bytes:
    """Bytes in, bytes out, until the relay closes: the last request must make it close."""
    host, port = relay.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(request)
        if shut:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65536):
            answer += part
        return answer


@pytest.mark.parametrize(
    "path",
    [
        "/nothing/at/all",
        "/api/v1/repos/0123/refs",
        "/api/v1/repos/0190a1b2c3d47e8f9a0b1c2d3e4f5a6b/refs/branch/main",
        "/api/v1/repos/%FF/nothing",
        "/health/",
        "//health",
        "/api/v1/repos//refs",
        "/metrics/../metrics",
    ],
)
def test_everything_that_is_not_there_is_the_same_answer(relay, path):
    host = relay.url.removeprefix("http://")
    reference = raw(relay, b"GET /unknown HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = raw(relay, f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())

    def strip(text):
        return b"\r\n".join(line for line in text.split(b"\r\n") if not line.startswith(b"x-request-id"))

    assert CONSTANT in answer
    assert strip(answer) == strip(reference)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_a_flag_that_is_off_hides_the_path_from_every_method(client, method):
    http = client()
    missing = shown(http.request(method, "/api/v1/no-such-thing"))
    for path in ("/api/v1/repos/x/compare", "/api/v1/repos/x/branches/main/live/updates"):
        assert shown(http.request(method, path)) == missing


def test_a_wrong_method_names_the_right_ones(client):
    answer = client().post("/version")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"
    assert answer.json()["code"] == "method_not_allowed"


def test_head_is_get_without_the_body(client):
    http = client()
    head, get = http.head("/version"), http.get("/version")
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["content-length"] == get.headers["content-length"] == str(len(get.content))


def test_every_answer_has_a_request_id_and_the_security_headers(client):
    http = client()
    seen = set()
    for path in ("/health", "/nowhere", "/api/v1/openapi.json"):
        headers = http.get(path).headers
        seen.add(headers["x-request-id"])
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "server" not in headers
        assert "alt-svc" not in headers
    assert len(seen) == 3


def test_a_header_that_is_too_long_is_one_clear_problem(relay):
    answer = raw(relay, b"GET /health HTTP/1.1\r\nx: " + b"a" * 20_000 + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"application/problem+json" in answer


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"nonsense\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/9.9\r\n\r\n",
        b"POST /version HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /version HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_what_is_not_http_is_a_400_and_the_end_of_the_connection(relay, request_bytes):
    answer = raw(relay, request_bytes)
    assert answer.startswith(b"HTTP/1.1 400"), answer[:80]
    assert b'"code":"malformed"' in answer


def test_the_query_is_checked(client):
    http = client()
    for query in ("limit=1&limit=2", "limit=many", "limit=99999999999999999999", "cursor=%00", "cursor=%ff"):
        answer = http.get(f"/api/v1/repos/x/refs?{query}")
        assert answer.status_code in (404, 422), query
