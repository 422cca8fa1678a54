"""Clients that mean harm, against a relay in a process of its own. Each attack ends with the relay alive, its
memory bounded and somebody else served. The table of all attacks is docs/design/010-attacks.md."""

from __future__ import annotations

import contextlib
import gzip
import json
import secrets
import socket
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from localstore.core.identity.bearer import authorization
from localstore.core.model.limits import MIB
from relay.http import websocket
from scripts.fuzz import api as fuzz_api
from tests.patience import PATIENCE

ALLOWED = 320 * MIB  # RssAnon; an idle relay has about 70 MiB
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with fuzz_api.serving(Path(tmp_path_factory.mktemp("attacked"))) as relay:
        yield relay


@pytest.fixture(scope="module")
def targets(served):
    made = fuzz_api.RequestTargets(served.url)
    yield made
    made.close()


@pytest.fixture
def standing(served, targets):
    """Call it during an attack and after it: the relay is well and somebody else is served."""

    def check() -> None:
        with httpx.Client(base_url=served.url, trust_env=False, timeout=PATIENCE) as other:
            assert other.get("/readyz").json()["status"] == "ok"
            assert other.get(f"/api/v1/repos/{targets.names['id'][0]}/commits").status_code == 200
        assert served.alive()
        assert served.anonymous_memory() < ALLOWED
        assert '"request failed"' not in served.log.read_text()

    yield check
    check()


@contextlib.contextmanager
def connections(served, count, first=b""):
    """Open connections, each with the same first bytes sent."""
    host, port = served.url.removeprefix("http://").split(":")
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(count):
            one = stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))
            one.sendall(first)
            made.append(one)
        yield made


def listening(served, targets, **options):
    """A socket of the owner's terminal."""
    url = served.url.replace("http", "ws") + "/api/v1/sync/ws"
    bearer = {"Authorization": authorization(targets.terminal.token)}
    return connect(url, subprotocols=["svc-sync.v1"], additional_headers=bearer, **options)


def head(method, path, *lines):
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *lines, "", ""]).encode()


def test_idle_connections(served, standing):
    with connections(served, 400):
        standing()


def test_heads_that_never_end(served, standing):
    with connections(served, 200, b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 16_000):
        standing()


def test_a_flood_of_headers(served, standing):
    with connections(served, 50, head("GET", "/health", *["a: b"] * 2500)) as made:
        assert all(each.recv(64).startswith(b"HTTP/1.1 431") for each in made)
        standing()


def test_a_head_has_a_hundred_fields_at_most(served):
    """Also where a field is none, so that no costlier reader looks at the rest."""
    for lines, status in ((["a: b"] * 99, b"200"), (["a: b"] * 100, b"431"), (["no field"] * 1000, b"431")):
        with connections(served, 1, head("GET", "/health", *lines)) as (one,):
            assert one.recv(64).startswith(b"HTTP/1.1 " + status), lines[0]


def test_bodies_that_never_end(served, targets, standing):
    """Strangers announce large bodies and send all but the end, many at once."""
    path = f"/api/v1/repos/{targets.names['id'][0]}/seals/prepare"
    first = head("POST", path, f"Content-Length: {16 * MIB}", "Content-Type: application/json")
    with connections(served, 60, first) as made:
        part = b" " * MIB
        for each in made:
            with contextlib.suppress(OSError):  # refused, and closed
                for _ in range(15):
                    each.sendall(part)
        standing()


def test_readers_that_never_read(served, targets, standing):
    """Anybody may ask for a large file of a public repository, and then take nothing of it."""
    data = secrets.token_bytes(15 * MIB)
    repo = targets.shown
    (seal,) = repo.seal({"large.bin": data})
    with connections(served, 60, head("GET", f"{repo.url}/raw/{seal}/large.bin")) as made:
        answers = [each.recv(12)[9:] for each in made]
        assert set(answers) == {b"200", b"503"}
        standing()


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"updates":['])
def test_deep_json(served, targets, standing, opening):
    body = (opening * (MIB // len(opening))).encode()
    for path in ("/auth/refresh", "/api/v1/auth/device-key/login", "/api/v1/auth/cli/token"):
        answer = httpx.post(served.url + path, content=body, headers=JSON, trust_env=False, timeout=PATIENCE)
        assert answer.status_code in (400, 422), path
    standing()


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"1," * (MIB // 2) + b"1]",
        b'{"a":' + b"9" * MIB + b"}",
        b'{"' + b"\\u0000" * (MIB // 6) + b'":1}',
        b'{"handle":"' + b"\\ud800" * (MIB // 6) + b'"}',
        b" " * (2 * MIB),
        b":" + b" " * (MIB // 2) + b":" * MIB,
    ],
    ids=["numbers", "one number", "NULs", "half characters", "spaces", "colons"],
)
def test_strange_json(served, standing, body):
    url = f"{served.url}/api/v1/auth/device-key/login"
    answer = httpx.post(url, content=body, headers=JSON, trust_env=False, timeout=PATIENCE)
    assert answer.status_code in (400, 422)
    standing()


def test_a_compressed_body_is_not_unpacked(served, standing):
    bomb = gzip.compress(b" " * (200 * MIB))
    headers = JSON | {"content-encoding": "gzip"}
    url = f"{served.url}/api/v1/auth/device-key/login"
    answer = httpx.post(url, content=bomb, headers=headers, trust_env=False, timeout=PATIENCE)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    standing()


def test_a_token_of_five_megabytes(served, standing):
    with connections(served, 1) as (one,), contextlib.suppress(ConnectionError):
        one.sendall(head("GET", "/health", f"Authorization: Bearer {'A' * (5 * MIB)}"))
        assert one.recv(64).startswith(b"HTTP/1.1 413")
    standing()


def test_a_socket_that_floods(served, targets, standing):
    """Messages without end to one socket, whose owner never reads the answers."""
    text = json.dumps({"type": "subscribe", "repo_id": targets.shown.id, "since": 0})
    with listening(served, targets, max_queue=1, close_timeout=0.1) as one:
        with contextlib.suppress(ConnectionClosed, TimeoutError):
            one.socket.settimeout(2)
            for _ in range(20_000):
                one.send(text)
        standing()


@pytest.mark.parametrize("message", ["", "[" * 60_000, "x" * 3_000_000, b"\xff" * 1000, '{"type":"nothing"}'])
def test_a_socket_that_talks_nonsense(served, targets, standing, message):
    with (
        listening(served, targets) as one,
        pytest.raises(ConnectionClosed),
    ):
        one.send(message)
        while True:
            one.recv(timeout=PATIENCE)
    standing()


def test_many_sockets(served, targets, standing):
    with contextlib.ExitStack() as stack:
        for _ in range(websocket.OF_A_SESSION):
            stack.enter_context(listening(served, targets, close_timeout=0.1))
        for _ in range(50):
            with pytest.raises(InvalidStatus) as refused:
                listening(served, targets)
            assert refused.value.response.status_code == 429
            assert refused.value.response.headers["Retry-After"]
        standing()
    with listening(served, targets):  # those that were closed are counted no more
        standing()
