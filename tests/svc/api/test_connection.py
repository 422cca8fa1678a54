"""Connections: reuse, the ends of a body, proxies, TLS, and servers that try to confuse two answers."""

from __future__ import annotations

import datetime
import ipaddress
import select
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from localstore.core.errors import UsageError
from svc.api.connection import Response, Wire
from svc.api.message import BrokeOff, NotConnected, NotHttp, TimedOut, TransportError
from svc.api.proxy import proxy_for
from tests.svc.api.hostile import _read_request, hostile

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Scripted:
    """Gives, on each connection, the next list of answers, one to each request; then closes it.

    `heard`: for each connection the requests that came on it."""

    def __init__(self, conversations: Sequence[Sequence[bytes]], tls: ssl.SSLContext | None = None) -> None:
        self.heard: list[list[bytes]] = []
        self.asked = threading.Event()
        self._conversations, self._tls = conversations, tls
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for answers in self._conversations:
            try:
                connection, _ = self._socket.accept()
                heard: list[bytes] = []
                self.heard.append(heard)
                if self._tls is not None:
                    connection = self._tls.wrap_socket(connection, server_side=True)
            except OSError:
                continue
            with connection:
                connection.settimeout(5)
                for answer in answers:
                    heard.append(_read_request(connection))
                    self.asked.set()
                    connection.sendall(answer)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


@contextmanager
def scripted(*conversations: Sequence[bytes], tls: ssl.SSLContext | None = None) -> Iterator[Scripted]:
    server = Scripted(conversations, tls)
    try:
        yield server
    finally:
        server.close()


def wire_to(port: int, scheme: str = "http", host: str = "127.0.0.1", proxies: bool = False) -> Wire:
    return Wire(f"{scheme}://{host}:{port}", f"{host}:{port}", proxies)


def get(wire: Wire, target: str = "/", method: str = "GET") -> Response:
    return wire.send(method, target, {}, b"", None, repeatable=True)


def read(response: Response) -> bytes:
    try:
        return b"".join(response.iter_raw())
    finally:
        response.close()


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


# --- proxies


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


def test_a_proxy_is_asked_for_the_whole_address(no_proxies: pytest.MonkeyPatch) -> None:
    with scripted([OK]) as proxy:
        no_proxies.setenv("HTTP_PROXY", f"http://me:p%40ss@127.0.0.1:{proxy.port}")
        assert read(get(wire_to(80, host="node.example", proxies=True), "/a?b")) == b"ok"
    request = proxy.heard[0][0]
    assert request.startswith(b"GET http://node.example:80/a?b HTTP/1.1\r\nHost: node.example:80\r\n")
    assert b"Proxy-Authorization: Basic bWU6cEBzcw==\r\n" in request


def test_a_proxy_that_refuses_a_tunnel_sees_nothing_of_the_request(no_proxies: pytest.MonkeyPatch) -> None:
    with scripted([b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n"]) as proxy:
        no_proxies.setenv("https_proxy", f"127.0.0.1:{proxy.port}")
        with pytest.raises(NotConnected, match="answered 407"):
            get(wire_to(443, "https", "node.example", proxies=True), "/secret")
    assert proxy.heard == [[b"CONNECT node.example:443 HTTP/1.1\r\nHost: node.example:443\r\n\r\n"]]


def test_which_proxy(no_proxies: pytest.MonkeyPatch) -> None:
    assert proxy_for("https://node.example") is None
    no_proxies.setenv("ALL_PROXY", "http://all:3128")
    no_proxies.setenv("NO_PROXY", "other.example,.inside.example")
    found = proxy_for("https://node.example")
    assert found is not None
    assert found.address == ("all", 3128)
    assert proxy_for("http://other.example") is None
    assert proxy_for("https://a.inside.example:8443") is None
    no_proxies.setenv("HTTPS_PROXY", "socks5://u:secret@proxy:1080")
    with pytest.raises(UsageError, match="socks5://proxy cannot be used") as raised:
        proxy_for("https://node.example")
    assert "secret" not in str(raised.value)


# --- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of 127.0.0.1, signed by itself, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + built.public_bytes(serialization.Encoding.PEM)
    )
    return file


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_a_trusted_server_is_spoken_to_over_tls(
    tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with scripted([OK, OK], tls=tls) as server:
        wire = wire_to(server.port, "https")
        assert [read(get(wire)) for _ in range(2)] == [b"ok", b"ok"]
        wire.close()
    assert len(server.heard) == 1


def test_a_stranger_s_certificate_ends_it_before_anything_is_said(tls: ssl.SSLContext) -> None:
    with scripted([OK], tls=tls) as server, pytest.raises(NotConnected, match="CERTIFICATE_VERIFY_FAILED"):
        get(wire_to(server.port, "https"), "/secret")
    assert server.heard == [[]]


def test_tls_goes_through_a_proxy_s_tunnel(
    tls: ssl.SSLContext, certificate: Path, no_proxies: pytest.MonkeyPatch
) -> None:
    no_proxies.setenv("SSL_CERT_FILE", str(certificate))
    with scripted([OK], tls=tls) as server, socket.create_server(("127.0.0.1", 0)) as proxy:

        def tunnel() -> None:
            client, _ = proxy.accept()
            assert _read_request(client).startswith(f"CONNECT 127.0.0.1:{server.port} ".encode())
            client.sendall(b"HTTP/1.1 200 Established\r\n\r\n")
            with client, socket.create_connection(("127.0.0.1", server.port)) as onward:
                back = threading.Thread(target=_pump, args=(onward, client), daemon=True)
                back.start()
                _pump(client, onward)

        thread = threading.Thread(target=tunnel, daemon=True)
        thread.start()
        no_proxies.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        wire = wire_to(server.port, "https", proxies=True)
        assert read(get(wire, "/a")) == b"ok"
        wire.close()
        thread.join(5)
    assert server.heard[0][0].startswith(b"GET /a HTTP/1.1\r\n")


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
