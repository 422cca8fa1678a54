"""One HTTP conversation against servers that lie, break off, are slow to be ready, or redirect."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

import msgspec
import pytest

from localstore.core.endpoint import Endpoint
from localstore.core.errors import (
    NotFound,
    RateLimited,
    ServerMisbehaved,
    ServerUnreachable,
    SvcError,
    Unauthorized,
    UsageError,
)
from localstore.core.identity.keys import DeviceKey
from localstore.core.identity.request_signature import parse, verify
from localstore.core.model import node, payload
from localstore.core.model import ref as refs
from localstore.core.model.auth import HandleTaken
from localstore.core.model.limits import MIB
from localstore.core.model.node import RelayVersion
from localstore.core.model.ref import StaleHead
from localstore.core.model.repo import SearchQuery
from svc.http import client as calling
from svc.http.client import ATTEMPTS, EMPTY_PAGES, Http
from svc.http.credential import Credential
from tests.svc.api.hostile import Hostile, hostile, http

KEY = DeviceKey.generate(b"\x07" * 32)
CREDENTIAL = Credential("c2VjcmV0LXRva2Vu", KEY)
ANY = Endpoint("POST", "/a", returns=RelayVersion, keyed=False)
CREATE = Endpoint("POST", "/a", returns=RelayVersion, status=201)
CHANGE = Endpoint("PATCH", "/api/v1/repos/{id}", returns=RelayVersion)
UPLOAD = Endpoint("PUT", "/p", returns=RelayVersion, repeatable=True)
VERSION = json.dumps(
    {
        "edition": "e",
        "api_version": 1,
        "source_url": "u",
        "version": "9",
        "commit": "c",
        "built_at": "t",
        "min_client": "0",
    }
).encode()


def problem(status: int, code: str, **extra: object) -> bytes:
    body = {"type": "about:blank", "title": "T", "status": status, "code": code, **extra}
    return http(f"{status} X", json.dumps(body).encode(), "application/problem+json")


def talk(
    server: Hostile, credential: Credential | None = None, now: float = 1_800_000_000
) -> tuple[Http, list[float]]:
    waits: list[float] = []
    return Http(server.origin, credential, sleep=waits.append, clock=lambda: now), waits


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"220 mail.example ready\r\n\r\n", "sent an invalid HTTP response"),
        (http("200 OK", b"<html>hotel wifi</html>", "text/html"), "instead of JSON"),
        (http("200 OK", b"{"), "cannot be read"),
        (http("200 OK", b"[" * 100_000), "cannot be read"),
        (http("200 OK", b'{"version": 5}'), "cannot be read"),
        (http("200 OK", b"\xff\xfe"), "cannot be read"),
        (http("200 OK", gzip.compress(b"0" * MIB), "application/json", "Content-Encoding: gzip"), "encoded"),
        (http("502 Bad Gateway", b"<html>nginx</html>", "text/html"), "answered 502"),
        (http("404 Not Found", b"apache", "text/plain"), "check the address"),
        (http("400 Bad", b"[1]"), "answered 400"),
    ],
)
def test_a_server_that_makes_no_sense_is_one_sentence(answer: bytes, said: str) -> None:
    with hostile(answer) as server:
        caller, _ = talk(server)
        with pytest.raises(ServerMisbehaved) as raised:
            caller.send(node.VERSION)
    assert said in raised.value.detail
    assert server.origin in raised.value.detail
    assert "\n" not in raised.value.detail


def test_more_bytes_than_agreed_are_refused_while_they_arrive() -> None:
    endless = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + b" " * (3 * MIB)
    with hostile(endless) as server:
        caller, _ = talk(server)
        with pytest.raises(ServerMisbehaved, match="more than 1048576 bytes"):
            caller.send(msgspec.structs.replace(node.VERSION, cap=MIB))
        declared = http("200 OK", b"").replace(b"Content-Length: 0", b"Content-Length: 99999999999")
    with hostile(declared) as server, pytest.raises(ServerMisbehaved, match="more than"):
        talk(server)[0].send(node.VERSION)


def test_escapes_of_a_server_never_reach_the_terminal() -> None:
    document = problem(409, "name_taken", detail="taken\x1b]0;owned\x07\u202e", title="\x1b[2J")
    with hostile(document) as server, pytest.raises(SvcError) as raised:
        talk(server)[0].send(node.VERSION)
    assert raised.value.detail == "taken\\x1b]0;owned\\x07\\u202e"


@pytest.mark.parametrize(
    "where", ["http://evil.example/x", "//evil.example/x", "https://127.0.0.1/", "file:///etc"]
)
def test_a_redirect_to_another_origin_is_not_followed(where: str) -> None:
    with hostile(http("307 Go", b"", "text/plain", f"Location: {where}")) as server:
        caller, _ = talk(server, CREDENTIAL)
        with pytest.raises(ServerMisbehaved, match="redirects to"):
            caller.send(node.VERSION)
        assert len(server.requests) == 1


def test_a_redirect_of_a_read_inside_the_origin_is_followed_and_circles_end() -> None:
    with hostile(
        http("307 Go", b"", "text/plain", "Location: /other?a=1"), http("200 OK", VERSION)
    ) as server:
        assert talk(server)[0].send(node.VERSION).version == "9"
        assert server.requests[1].startswith(b"GET /other?a=1 ")
    circle = hostile(http("307 Go", b"", "text/plain", "Location: /version"))
    with circle as server, pytest.raises(ServerMisbehaved, match="circle"):
        talk(server)[0].send(node.VERSION)


def test_a_mutation_is_never_redirected() -> None:
    with hostile(http("307 Go", b"", "text/plain", "Location: /other")) as server:
        with pytest.raises(ServerMisbehaved, match="not followed"):
            talk(server, CREDENTIAL)[0].send(ANY, {})
        assert len(server.requests) == 1


def test_reads_wait_and_try_again_when_the_server_is_busy() -> None:
    busy = http("503 Busy", b"", "text/plain")
    limited = http("429 Slow", b"", "text/plain", "Retry-After: 2")
    with hostile(busy, limited, http("200 OK", VERSION)) as server:
        caller, waits = talk(server)
        assert caller.send(node.VERSION).version == "9"
        assert waits == [0.25, 2.0]


def test_a_mutation_is_repeated_only_when_the_server_says_it_did_not_act() -> None:
    with hostile(http("503 Busy", b"", "text/plain")) as server:
        with pytest.raises(ServerMisbehaved):
            talk(server, CREDENTIAL)[0].send(ANY, {})
        assert len(server.requests) == 1
    limited = http("429 Slow", b"", "text/plain", "Retry-After: 1")
    with hostile(limited, http("201 Made", VERSION)) as server:
        caller, waits = talk(server, CREDENTIAL)
        caller.send(ANY, {})
        assert waits == [1.0]
        first, second = (_header(request, b"signature-input") for request in server.requests)
        assert first != second, "every attempt has a nonce of its own"


@pytest.mark.parametrize("endpoint", [CREATE, CHANGE], ids=["create", "change"])
def test_a_mutation_repeats_itself_under_one_idempotency_key(endpoint: Endpoint[RelayVersion]) -> None:
    with hostile(b"", http("201 Made", VERSION)) as server:
        talk(server, CREDENTIAL)[0].send(endpoint, {}, **({"id": "r"} if endpoint is CHANGE else {}))
        first, second = (_header(request, b"idempotency-key") for request in server.requests)
        assert first == second != b""


def test_requests_of_an_agent_carry_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_TURN", "fix the parser, step 3")
    with hostile(http("200 OK", VERSION)) as server:
        talk(server)[0].send(node.VERSION)
        assert _header(server.requests[0], b"svc-turn") == b"fix the parser, step 3"


@pytest.mark.parametrize("turn", ["two\nlines", " spaces ", "ü", "x" * 201])
def test_a_turn_that_no_header_can_carry_is_refused_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch, turn: str
) -> None:
    monkeypatch.setenv("SVC_TURN", turn)
    with hostile(http("200 OK", VERSION)) as server:
        with pytest.raises(UsageError, match="a turn is named by"):
            talk(server)[0].send(node.VERSION)
        assert server.requests == []


def test_patience_ends() -> None:
    limited = http("429 Slow", b"", "text/plain", "Retry-After: 3600")
    with hostile(limited) as server:
        caller, waits = talk(server)
        with pytest.raises(SvcError):
            caller.send(node.VERSION)
        assert waits == []
    document = problem(429, "rate_limited", detail="slow down").replace(b"X\r\n", b"X\r\nRetry-After: 1\r\n")
    with hostile(document) as server:
        caller, waits = talk(server)
        with pytest.raises(RateLimited):
            caller.send(node.VERSION)
        assert len(waits) == ATTEMPTS - 1


def test_a_wrong_clock_is_corrected_once() -> None:
    theirs = 1_800_009_000
    refused = problem(401, "request_not_bound", detail="stale", server_time=theirs)
    with hostile(refused, http("200 OK", VERSION)) as server:
        caller, _ = talk(server, CREDENTIAL)
        caller.send(msgspec.structs.replace(ANY, path="/a?b=c"), {"x": 1})
        assert _verified(server.requests[1], server.origin, theirs)
    with hostile(
        refused, problem(401, "request_not_bound", detail="stale", server_time=theirs + 999)
    ) as server:
        with pytest.raises(Unauthorized):
            talk(server, CREDENTIAL)[0].send(ANY, {})
        assert len(server.requests) == 2


def test_a_refusal_that_was_read_for_its_clock_is_read_again() -> None:
    """A session that has ended, and whatever a hostile server makes of that."""
    ended = json.dumps({"code": "unauthorized", "status": 401, "detail": "the session has ended"}).encode()
    with hostile(http("401 X", ended, "application/problem+json")) as server:
        answer = talk(server, CREDENTIAL)[0].exchange("GET", "/version", None, {})
        assert (answer.status, answer.body) == (401, ended)
    flood = http("401 X", b" " * (2 * MIB), "application/problem+json")
    with hostile(flood, flood) as server:
        with pytest.raises(ServerMisbehaved, match="answered 401"):
            talk(server, CREDENTIAL)[0].send(ANY, {})
        with pytest.raises(ServerMisbehaved, match="sent more than"):
            talk(server, CREDENTIAL)[0].exchange("GET", "/version", None, {})


def test_mutations_are_signed_and_reads_carry_the_token_alone() -> None:
    with hostile(http("200 OK", VERSION)) as server:
        caller, _ = talk(server, CREDENTIAL)
        caller.send(CHANGE, {"x": 1}, SearchQuery(q="ä b"), id="a/b")
        caller.send(node.VERSION)
        assert _verified(server.requests[0], server.origin, 1_800_000_000)
        assert _header(server.requests[1], b"authorization") == b"Bearer c2VjcmV0LXRva2Vu"
        assert _header(server.requests[1], b"signature") == b""


def test_a_stream_is_signed_by_its_blake3_and_opened_again_for_a_second_attempt() -> None:
    opened: list[int] = []

    def parts() -> Iterator[bytes]:
        opened.append(1)
        yield b"hello "
        yield b"world"

    from blake3 import blake3

    name = blake3(b"hello world").digest()
    with hostile(http("503 Busy", b"", "text/plain"), http("201 Made", VERSION)) as server:
        talk(server, CREDENTIAL)[0].upload(UPLOAD, parts, 11, name)
        assert len(opened) == 2
        assert server.requests[1].endswith(b"\r\n\r\nhello world")
        assert _header(server.requests[1], b"content-length") == b"11"
        assert b"svc-content-blake3" in server.requests[1].lower()


def test_errors_of_the_relay_come_back_as_what_they_were() -> None:
    for document, kind in (
        (problem(409, "stale_head", detail="main moved", head="ab", ref="main"), StaleHead),
        (problem(403, "handle_taken", detail="taken"), HandleTaken),
        (problem(404, "not_found"), NotFound),
    ):
        with hostile(document) as server, pytest.raises(kind):
            talk(server)[0].send(node.VERSION)


def test_a_list_that_repeats_its_cursor_ends() -> None:
    page = http("200 OK", b'{"items": [], "next_cursor": "again"}')
    with hostile(page) as server, pytest.raises(ServerMisbehaved, match="twice"):
        list(talk(server)[0].items(refs.LIST, id="r"))


def test_a_list_without_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"id": "1", "type": "tag", "name": "v", "head": None}
    empty, full = [
        [
            http("200 OK", json.dumps({"items": items, "next_cursor": f"{n}"}).encode())
            for n in range(EMPTY_PAGES + 50)
        ]
        for items in ([], [row])
    ]
    with hostile(*empty) as server, pytest.raises(ServerMisbehaved, match="without end"):
        list(talk(server)[0].items(refs.LIST, id="r"))
    assert len(server.requests) == EMPTY_PAGES
    monkeypatch.setattr(calling, "PAGES_MAX", EMPTY_PAGES + 20)
    with hostile(*full) as server, pytest.raises(ServerMisbehaved, match="without end"):
        list(talk(server)[0].items(refs.LIST, id="r"))


def test_a_server_may_not_send_more_than_the_limit_asked_for() -> None:
    row = {"id": "1", "type": "tag", "name": "v", "head": None}
    with hostile(http("200 OK", json.dumps({"items": [row] * 9, "next_cursor": None}).encode())) as server:
        assert len(list(talk(server)[0].items(refs.LIST, limit=3, id="r"))) == 3


def test_nobody_there_names_the_address_and_what_to_check() -> None:
    waits: list[float] = []
    with hostile(b"") as server:
        origin = server.origin
    with pytest.raises(ServerUnreachable) as raised:
        Http(origin, sleep=waits.append).send(node.VERSION)
    assert origin in raised.value.detail
    assert "SVC_SERVER" in raised.value.detail
    assert len(waits) == ATTEMPTS - 1


def test_a_server_that_goes_away_before_it_answers_is_unreachable() -> None:
    for answer in (b"", b"HTTP/1.1 200 OK\r\nContent-"):
        with hostile(answer) as server:
            caller, waits = talk(server)
            with pytest.raises(ServerUnreachable, match="cannot reach"):
                caller.send(node.VERSION)
            assert len(waits) == ATTEMPTS - 1


def test_an_answer_that_breaks_off_says_how_far_it_came_and_what_to_do() -> None:
    half = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"
    said = r"the connection to http://\S+ broke off after 1 of 900 bytes of the answer \(it was closed\); "
    with hostile(half) as server:
        caller, _ = talk(server)
        with pytest.raises(ServerUnreachable, match=said + "check your network, then run the command again"):
            caller.send(node.VERSION)
        with (
            pytest.raises(ServerUnreachable, match=said + "check"),
            caller.stream(payload.GET_PACK, 99, id="r") as answer,
        ):
            list(answer)
        with pytest.raises(ServerUnreachable, match=said + "the request may have taken effect"):
            caller.send(ANY, {})


def _header(request: bytes, name: bytes) -> bytes:
    for line in request.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip()
    return b""


def _verified(request: bytes, origin: str, now: int) -> bool:
    """Check the signature as the relay does."""
    head, _, body = request.partition(b"\r\n\r\n")
    method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
    headers = [line.decode().split(": ", 1) for line in head.split(b"\r\n")[1:]]
    parsed = parse([(name, value) for name, value in headers])
    path, _, query = target.partition("?")
    verify(parsed, method, origin.split("//")[1], path, query, public_key=KEY.public, now=now)
    assert parsed.body is not None
    parsed.body.check_body(body)
    return True
