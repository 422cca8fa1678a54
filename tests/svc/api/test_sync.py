"""Hearing of events of a real relay: over a socket, plain, under TLS and through proxies, and by polling."""

from __future__ import annotations

import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import update

from localstore.core.errors import (
    ServerUnreachable,
    Unauthorized,
)
from localstore.core.identity.bearer import to_text
from localstore.core.model.sync import Event, Hidden, Subscribed
from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.run import server
from svc.api import Api
from svc.api.sync import SyncSocket
from svc.http import websocket
from svc.http.client import Http
from svc.http.credential import Credential
from tests.patience import PATIENCE
from tests.relay.conftest import Account, Relay
from tests.relay.node_fixture import make_repo
from tests.svc.api.hostile import hostile, http
from tests.svc.http.test_client import CREDENTIAL
from tests.svc.http.test_pool import certificate as certificate
from tests.svc.http.test_pool import through as through

QUIET = {"TR_RATE_LIMITS": "off", "RUST_LOG": "off"}


@contextmanager
def serving(folder: Path, **variables: str) -> Iterator[Relay]:
    running = Relay(folder, {**QUIET, **variables})
    running.start()
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def relay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    with serving(tmp_path_factory.mktemp("relay")) as running:
        yield running


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[Relay]:
    """A relay that ends TLS itself."""
    files = {"SSL_CERT_PATH": str(certificate), "SSL_KEY_PATH": str(certificate)}
    with serving(tmp_path_factory.mktemp("secured"), **files) as running:
        yield running


def api_of(relay: Relay, who: Account, origin: str = "") -> Api:
    return Api(Http(origin or relay.url, Credential(to_text(who.token), who.key), sleep=lambda _: None))


def somebody(relay: Relay) -> tuple[Account, str]:
    who = relay.account(f"u{secrets.token_hex(6)}")
    return who, relay.run(make_repo(relay.node.db, who.id))


def announce(relay: Relay, repo_id: str, number: int) -> None:
    async def write() -> None:
        async with relay.node.db.write(repo_id) as tx:
            await relay.node.hub.announce(tx, repo_id, "live", n=number)

    relay.run(write())


def heard(events: SyncSocket) -> object:
    found = events.receive(PATIENCE)
    assert found is not None, "nothing came"
    return found


def hears_events(relay: Relay, api: Api, repo_id: str) -> None:
    """A socket is opened, and what happens arrives there."""
    with api.sync.socket() as events:
        events.subscribe(repo_id)
        assert isinstance(heard(events), Subscribed)
        for number in range(3):
            announce(relay, repo_id, number)
            event = heard(events)
            assert isinstance(event, Event)
            assert (event.repo_id, event.kind, event.data) == (repo_id, "live", {"n": number})


# --- a real relay


def test_a_socket_hears_what_happens_in_the_repositories_it_asked_for(relay: Relay) -> None:
    ann, repo_id = somebody(relay)
    bob, _ = somebody(relay)
    hears_events(relay, api_of(relay, ann), repo_id)
    with api_of(relay, bob).sync.socket() as events:
        events.subscribe(repo_id)
        assert heard(events) == Hidden(repo_id=repo_id)
        assert events.receive(0.1) is None


def test_events_after_one_that_is_known_are_told_again(relay: Relay) -> None:
    ann, repo_id = somebody(relay)
    api = api_of(relay, ann)
    stands = api.sync.poll([repo_id], None).next
    for number in range(3):
        announce(relay, repo_id, number)
    polled = api.sync.poll([repo_id, "nowhere"], stands)
    assert [event.data["n"] for event in polled.events] == [0, 1, 2]
    assert polled.hidden == ["nowhere"]
    with api.sync.socket() as events:
        events.subscribe(repo_id, polled.events[0].id)
        assert isinstance(heard(events), Subscribed)
        told = [heard(events), heard(events)]
        assert [event.data["n"] for event in told if isinstance(event, Event)] == [1, 2]


def test_threads_share_a_socket(relay: Relay) -> None:
    ann, _ = somebody(relay)
    ids = [relay.run(make_repo(relay.node.db, ann.id)) for _ in range(20)]
    with api_of(relay, ann).sync.socket() as events, ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(events.subscribe, one) for one in ids]
        answers = [heard(events) for _ in ids]
        assert all(one.exception() is None for one in asked)
    assert {one.repo_id for one in answers if isinstance(one, Subscribed)} == set(ids)


def test_an_idle_socket_stays_open_by_signs_of_life(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "PING_SECONDS", 0.05)
    ann, repo_id = somebody(relay)
    with api_of(relay, ann).sync.socket() as events:
        assert events.receive(1.0) is None
        events.subscribe(repo_id)
        assert isinstance(heard(events), Subscribed)


def test_a_session_that_ends_is_said(relay: Relay) -> None:
    ann, repo_id = somebody(relay)
    with api_of(relay, ann).sync.socket() as events:
        events.subscribe(repo_id)
        heard(events)

        async def revoke() -> None:
            async with relay.node.db.write() as tx:
                mine = tables["session"].c.id == ann.session_id
                await tx.run(update(tables["session"]).where(mine).values(revoked_at=now_ms()))
                tx.after_commit(lambda: relay.node.hub.end_sessions([ann.session_id]))

        relay.run(revoke())
        with pytest.raises(Unauthorized, match="svc login"):
            heard(events)


def test_a_certificate_that_nobody_trusts_is_refused(
    secured: Relay, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, repo_id = somebody(secured)
    origin = secured.url.replace("http:", "https:")
    with pytest.raises(ServerUnreachable, match=r"TLS.*CERTIFICATE"):
        api_of(secured, ann, origin).sync.socket()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    hears_events(secured, api_of(secured, ann, origin), repo_id)


# --- proxies


@contextmanager
def proxy(handshake: Callable[[socket.socket], tuple[str, int]]) -> Iterator[tuple[str, list[bytes]]]:
    """A proxy for one connection: `handshake` tells where to; its address, and what it passed on."""
    passed: list[bytes] = []

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                passed.append(data)
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        near, _ = listening.accept()
        with near, socket.create_connection(handshake(near)) as far:
            back = threading.Thread(target=pump, args=(far, near), daemon=True)
            back.start()
            pump(near, far)
            back.join(5)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}", passed
        thread.join(5)


def by_connect(near: socket.socket) -> tuple[str, int]:
    found = re.match(rb"CONNECT ([0-9.]+):(\d+) HTTP/1.1\r\n", near.recv(65536))
    assert found
    near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    return found[1].decode(), int(found[2])


def by_socks(near: socket.socket) -> tuple[str, int]:
    near.recv(100)
    near.sendall(b"\x05\x00")
    asked = near.recv(100)
    near.sendall(b"\x05\x00\x00\x01" + bytes(6))
    port = int.from_bytes(asked[-2:], "big")
    return "127.0.0.1", port


@pytest.mark.parametrize(("scheme", "handshake"), [("http", by_connect), ("socks5", by_socks)])
def test_a_socket_runs_through_the_proxy_of_the_environment(
    secured: Relay,
    certificate: Path,
    through: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
    handshake: Callable[[socket.socket], tuple[str, int]],
) -> None:
    monkeypatch.setattr("svc.http.pool.is_loopback", lambda _: False)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    ann, repo_id = somebody(secured)
    with proxy(handshake) as (address, passed):
        through(f"{scheme}://{address}")
        hears_events(secured, api_of(secured, ann, secured.url.replace("http:", "https:")), repo_id)
    assert passed, "it went that way"
    assert to_text(ann.token).encode() not in b"".join(passed)


def test_a_relay_that_ends_tls_itself_stops_soon_after_its_sockets(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setattr(server, "DRAIN_SECONDS", 2 * PATIENCE)
    with serving(tmp_path, SSL_CERT_PATH=str(certificate), SSL_KEY_PATH=str(certificate)) as relay:
        ann, repo_id = somebody(relay)
        hears_events(relay, api_of(relay, ann, relay.url.replace("http:", "https:")), repo_id)
        begin = time.monotonic()
    assert time.monotonic() - begin < PATIENCE


def test_a_proxy_that_refuses_is_named(through: Callable[[str], None]) -> None:
    with hostile(http("407 Who are you")) as refusing:
        through(refusing.origin)
        with pytest.raises(ServerUnreachable, match="answered 407 Who are you"):
            Api(Http("https://node.example", CREDENTIAL, sleep=lambda _: None)).sync.socket()
