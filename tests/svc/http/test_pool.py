"""Connections to one server: kept, given up, taken by threads, secured, and led through proxies."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from localstore.core.errors import ServerMisbehaved, ServerUnreachable, SvcError, TooLarge, UsageError
from localstore.core.model import history, node
from svc.http import pool
from svc.http.client import Http
from svc.http.proxy import Proxy, proxy_for
from tests.svc.api.hostile import Hostile, hostile, http
from tests.svc.http.test_client import CREDENTIAL, UPLOAD, VERSION, problem, talk

KEPT = http("200 OK", VERSION).replace(b"Connection: close\r\n", b"")


def answering(times: int, answer: bytes = KEPT, then: bytes = b"") -> Callable[[socket.socket], None]:
    """`answer` to so many requests on one connection, and `then` behind the last."""

    def serve(connection: socket.socket) -> None:
        for left in range(times, 0, -1):
            connection.sendall(answer + (then if left == 1 else b""))
            if left > 1 and not connection.recv(65536):
                return

    return serve


def asked(server: Hostile, caller: Http, times: int) -> int:
    """How many connections so many calls took."""
    before = len(server.requests)
    for _ in range(times):
        assert caller.send(node.VERSION).version == "9"
    return len(server.requests) - before


def test_calls_share_a_connection_and_a_stale_one_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with hostile(answering(3)) as server:
        caller, waits = talk(server)
        assert asked(server, caller, 3) == 1
        assert asked(server, caller, 1) == 1, "the server closed the first"
        assert waits == []
        caller.close()
        monkeypatch.setattr(pool, "KEPT_SECONDS", 0.0)
        caller, _ = talk(server)
        assert asked(server, caller, 2) == 2, "no connection is kept"
        caller.close()


def test_a_server_that_asks_to_close_is_not_asked_again_there() -> None:
    with hostile(http("200 OK", VERSION)) as server:
        caller, waits = talk(server)
        assert asked(server, caller, 3) == 3
        assert waits == []


FRAMINGS = {
    "two codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a length and a coding": b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a coding that nobody asked for": b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a length that is not a number": b"Content-Length: +1\r\n\r\na",
    "too many headers": b"A: 1\r\n" * 101 + b"Content-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS.keys())
def test_an_answer_that_could_be_read_in_two_ways_is_refused(framing: bytes) -> None:
    with hostile(b"HTTP/1.1 200 OK\r\n" + framing) as server, pytest.raises(ServerMisbehaved) as raised:
        talk(server)[0].send(node.VERSION)
    assert "sent an invalid HTTP response" in raised.value.detail


def test_an_answer_that_was_not_read_ends_its_connection() -> None:
    with hostile(answering(2, KEPT), answering(9)) as server:
        caller, _ = talk(server)
        with caller.stream(history.HISTORY_PACK, 10_000, id="r"):
            pass
        assert asked(server, caller, 2) == 1
        caller.close()


def test_a_server_may_answer_before_it_took_everything() -> None:
    refused = problem(413, "too_large", detail="a pack has at most 5 bytes")

    def refuse(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(refused)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 20):
            pass

    def parts() -> Iterator[bytes]:
        yield from (b"x" * 65536 for _ in range(400))

    with hostile(refuse, unread=True) as server, pytest.raises(TooLarge, match="at most 5 bytes"):
        talk(server, CREDENTIAL)[0].upload(UPLOAD, parts, 400 * 65536, bytes(32))


@pytest.mark.parametrize("sent", [b"four", b"sixsix"])
def test_a_body_is_as_long_as_it_says_or_not_sent_whole(sent: bytes) -> None:
    with hostile(http("200 OK", VERSION)) as server:
        with pytest.raises(SvcError, match="not as long as"):
            talk(server, CREDENTIAL)[0].upload(UPLOAD, lambda: iter((sent,)), 5, bytes(32))
        assert all(b"sixsix" not in request for request in server.requests)


class _Numbered(BaseHTTPRequestHandler):
    """Answers with the number that was asked for; connections are kept."""

    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # a head and its body in one segment
    connections: ClassVar[set[object]] = set()

    def do_GET(self) -> None:
        self.connections.add(self.client_address)
        number = self.path.rpartition("/")[2].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(number)))
        self.end_headers()
        self.wfile.write(number)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_threads_share_a_client_and_a_call_inside_a_stream_has_a_connection_of_its_own() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Numbered) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        caller = Http(f"http://127.0.0.1:{server.server_port}")

        def ask(number: int) -> bool:
            return caller.read(history.RAW, 100, id="r", sha="s", path=f"n/{number}") == str(number).encode()

        with caller.stream(history.RAW, 100, id="r", sha="s", path="n/7") as outer:
            assert ask(8)
            assert b"".join(outer) == b"7"
        assert len(_Numbered.connections) == 2
        with ThreadPoolExecutor(4) as threads:
            assert all(threads.map(ask, range(400)))
        assert len(_Numbered.connections) <= 5, "each thread takes what another gave back"
        caller.close()
        server.shutdown()


# --- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that signs itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "node.example")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(1))
        .not_valid_after(now + datetime.timedelta(1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "node.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


def under_tls(certificate: Path, answer: bytes, requests: int = 1) -> Callable[[socket.socket], None]:
    """What speaks TLS on a connection whose first bytes were left to it, and answers so many requests."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            for _ in range(requests):
                if secured.recv(65536):
                    secured.sendall(answer)

    return serve


def test_a_server_proves_itself_by_a_certificate_that_the_system_trusts(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hostile(under_tls(certificate, KEPT, requests=2), unread=True) as server:
        origin, waits = server.origin.replace("http:", "https:"), list[float]()
        with pytest.raises(ServerUnreachable, match=r"did not complete the TLS handshake.*CERTIFICATE"):
            Http(origin, sleep=waits.append).send(node.VERSION)
        assert waits == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with pytest.raises(ServerUnreachable, match=r"did not complete the TLS handshake.*CERTIFICATE"):
            Http(origin.replace("127.0.0.1", "localhost"), sleep=waits.append).send(node.VERSION)
        server.requests.clear()
        caller = Http(origin, sleep=waits.append)
        assert caller.send(node.VERSION).version == "9"
        assert caller.send(node.VERSION).version == "9"
        assert len(server.requests) == 1
        caller.close()


def test_a_server_without_tls_says_what_to_write() -> None:
    with hostile(b"HTTP/1.1 400 Bad\r\n\r\n") as server:
        origin = server.origin.replace("http:", "https:")
        with pytest.raises(ServerUnreachable, match="plain HTTP is written http://"):
            Http(origin, sleep=lambda _: None).send(node.VERSION)


# --- proxies


@pytest.fixture
def through(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Name a proxy in the environment, and no other."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return lambda named: monkeypatch.setenv("ALL_PROXY", named)


BASIC = b"Proxy-Authorization: Basic " + base64.b64encode(b"me:s p")


def test_plain_http_is_asked_of_the_proxy(through: Callable[[str], None]) -> None:
    with hostile(http("200 OK", VERSION)) as proxy:
        through(proxy.origin.replace("//", "//me:s%20p@"))
        assert (
            Http("http://node.example:81")
            .send(msgspec.structs.replace(node.VERSION, path="/version?a=b"))
            .version
            == "9"
        )
    assert proxy.requests[0].startswith(b"GET http://node.example:81/version?a=b HTTP/1.1\r\n")
    assert BASIC in proxy.requests[0]
    assert b"Host: node.example:81\r\n" in proxy.requests[0]


def test_tls_runs_through_the_proxy(
    certificate: Path, through: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []
    secured = under_tls(certificate, KEPT)

    def serve(connection: socket.socket) -> None:
        asked.append(connection.recv(65536))
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        secured(connection)

    monkeypatch.setattr("svc.http.pool.is_loopback", lambda _: False)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with hostile(serve, unread=True) as proxy:
        through(proxy.origin.replace("//", "//me:s%20p@"))
        assert Http("https://127.0.0.1:4443").send(node.VERSION).version == "9"
    assert asked[0].startswith(b"CONNECT 127.0.0.1:4443 HTTP/1.1\r\nHost: 127.0.0.1:4443\r\n")
    assert BASIC in asked[0]


def test_a_proxy_may_want_tls_itself(
    certificate: Path, through: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with hostile(under_tls(certificate, KEPT), unread=True) as proxy:
        through(proxy.origin.replace("http:", "https:"))
        assert Http("http://node.example").send(node.VERSION).version == "9"


def test_a_socks_proxy_leads_to_the_server(through: Callable[[str], None]) -> None:
    asked: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        assert connection.recv(100)[:1] == b"\x05"
        connection.sendall(b"\x05\x02")  # user name and password, please
        asked.append(connection.recv(100))
        connection.sendall(b"\x01\x00")
        asked.append(connection.recv(100))
        connection.sendall(b"\x05\x00\x00\x01" + bytes(6))
        asked.append(connection.recv(65536))
        connection.sendall(KEPT)

    with hostile(serve, unread=True) as proxy:
        through(proxy.origin.replace("http://", "socks5://me:s%20p@"))
        assert Http("http://node.example:81").send(node.VERSION).version == "9"
    assert b"me\x03s p" in asked[0]
    assert b"node.example" in asked[1]
    assert asked[2].startswith(b"GET /version HTTP/1.1\r\n")


def test_a_proxy_that_refuses_is_named(through: Callable[[str], None]) -> None:
    with hostile(http("407 Who are you")) as proxy:
        through(proxy.origin)
        said = r"cannot reach https://node\.example \(the proxy 127\.0\.0\.1:\d+ answered 407 Who are you\)"
        with pytest.raises(ServerUnreachable, match=said):
            Http("https://node.example", sleep=lambda _: None).send(node.VERSION)
        assert all(b"CONNECT node.example:443 " in request for request in proxy.requests)
        with pytest.raises(ServerMisbehaved, match="answered 407"):
            Http("http://node.example").send(node.VERSION)
    with pytest.raises(ServerUnreachable, match=r"\(the proxy 127\.0\.0\.1:\d+: .*refused"):
        Http("https://node.example", sleep=lambda _: None).send(node.VERSION)


@pytest.mark.parametrize(
    "named",
    ["socks4://me:secret@h:1", "ftp://me:secret@h:1", "http://me:secret@h:port", "http://me:secret@"],
)
def test_a_proxy_that_svc_cannot_use_is_one_sentence(named: str, through: Callable[[str], None]) -> None:
    through(named)
    with pytest.raises(
        UsageError, match=r"write http://HOST:PORT, .* or name the server in NO_PROXY"
    ) as raised:
        Http("https://node.example").send(node.VERSION)
    assert "secret" not in raised.value.detail


def test_which_servers_a_proxy_is_for(
    through: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert proxy_for("https://node.example") is None
    through("squid:3128")
    assert proxy_for("https://node.example") == Proxy("http://squid:3128", ("squid", 3128), None)
    monkeypatch.setenv("https_proxy", "http://[::1]")
    assert proxy_for("https://node.example") == Proxy("http://[::1]:80", ("::1", 80), None)
    assert proxy_for("http://node.example") == Proxy("http://squid:3128", ("squid", 3128), None)
    monkeypatch.setenv("NO_PROXY", "example")
    assert proxy_for("https://node.example") is None
