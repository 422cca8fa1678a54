"""The ways to a server: proxies and TLS."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import threading
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from localstore.core.errors import UsageError
from svc.api.message import NotConnected
from svc.api.proxy import proxy_for
from tests.svc.api.hostile import OK, get, read, read_request, scripted, wire_to

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
            assert read_request(client).startswith(f"CONNECT 127.0.0.1:{server.port} ".encode())
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
