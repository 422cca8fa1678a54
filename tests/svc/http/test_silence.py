"""Servers that say nothing: one that works is waited for, one that is gone is given up within seconds."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import httpcore
import pytest

from localstore.core.errors import ServerUnreachable
from localstore.core.model import node
from svc.http import client, silence
from svc.http.bounds import Deadline, within
from svc.http.client import Http
from tests.patience import PATIENCE, until
from tests.svc.api.hostile import http
from tests.svc.http.test_client import ANY, CREDENTIAL, UPLOAD, VERSION

HEALTHY = http("200 OK", b'{"status": "ok"}')
Serve = Callable[[socket.socket], None]


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A silence is short. Who is asked has all the time to answer, as on a machine that is busy."""
    monkeypatch.setattr(silence, "SILENT_SECONDS", 0.1)
    monkeypatch.setattr(silence, "ASKING_SECONDS", PATIENCE)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """For servers that do not answer the question either."""
    monkeypatch.setattr(silence, "ASKING_SECONDS", 0.3)


class Server:
    """Serves each connection on a thread. `works`: it answers whether it does; it may change. Who has worked
    and does so no more hangs up on those who ask. `asked`: how often somebody has."""

    def __init__(self, serve: Serve, works: bool) -> None:
        self._serve, self.works, self._has_worked, self.asked = serve, works, works, 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        self.origin = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.ended = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._carry, args=(self._socket.accept()[0],), daemon=True).start()

    def _carry(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            if b"/health" not in connection.recv(4096, socket.MSG_PEEK):
                self._serve(connection)
                return
            self.asked += 1
            if self.works:
                connection.sendall(HEALTHY)
            elif not self._has_worked:
                self.ended.wait(PATIENCE)

    def close(self) -> None:
        self.ended.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextmanager
def serving(serve: Serve, works: bool) -> Iterator[Server]:
    server = Server(serve, works)
    try:
        yield server
    finally:
        server.close()


def after(seconds: float) -> Serve:
    """Answers late."""

    def serve(connection: socket.socket) -> None:
        connection.recv(65536)
        time.sleep(seconds)
        connection.sendall(http("200 OK", VERSION))

    return serve


@pytest.mark.usefixtures("impatient")
def test_a_server_that_takes_connections_and_says_nothing_is_given_up_at_once() -> None:
    with serving(after(30), works=False) as server:
        with pytest.raises(
            ServerUnreachable, match="did not answer, nor did it on another connection; check"
        ):
            Http(server.origin).send(node.VERSION)
        until(lambda: server.asked, "the server has seen the question")
        assert server.asked == 1, "a repeat would take as long"


@pytest.mark.usefixtures("impatient")
def test_a_change_that_was_not_answered_may_have_been_made() -> None:
    with (
        serving(after(30), works=False) as server,
        pytest.raises(ServerUnreachable, match="the request may have taken effect"),
    ):
        Http(server.origin, CREDENTIAL).send(ANY, {})


def test_a_server_that_answered_before_is_given_up_as_soon() -> None:
    calls: list[int] = []

    def once(connection: socket.socket) -> None:
        while connection.recv(65536):
            calls.append(1)
            if len(calls) == 1:
                connection.sendall(http("200 OK", VERSION).replace(b"Connection: close\r\n", b""))
            else:
                server.works = False

    with serving(once, works=True) as server:
        caller = Http(server.origin)
        assert caller.send(node.VERSION).version == "9"
        with pytest.raises(ServerUnreachable, match="nor did it on another connection"):
            caller.send(node.VERSION)
        assert len(calls) == 2
        caller.close()


def test_a_server_that_works_is_waited_for() -> None:
    with serving(after(1.0), works=True) as server:
        assert Http(server.origin).send(node.VERSION).version == "9"
        assert server.asked >= 2


def test_an_answer_that_stops_in_the_middle_is_given_up() -> None:
    def half(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(http("200 OK", VERSION)[:-5])
        server.works = False
        server.ended.wait(PATIENCE)

    with (
        serving(half, works=True) as server,
        pytest.raises(ServerUnreachable, match=r"broke off after .*\(it did not answer, nor did it"),
    ):
        Http(server.origin).send(node.VERSION)


def test_an_answer_that_stops_on_a_dead_line_is_given_up_though_the_server_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(silence, "STUCK_SECONDS", 0.4)

    def half(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(http("200 OK", VERSION)[:-5])
        server.ended.wait(PATIENCE)

    with (
        serving(half, works=True) as server,
        pytest.raises(ServerUnreachable, match=r"broke off after .*\(no more data arrived\)"),
    ):
        Http(server.origin).send(node.VERSION)


def test_while_what_was_sent_is_on_its_way_nobody_is_asked() -> None:
    waits, pending = iter((True, True, True, False)), iter((9, 8, 5, 1))

    def receive(seconds: float) -> bytes:
        if next(waits):
            raise httpcore.ReadTimeout
        return b"answer"

    def works() -> bool:
        pytest.fail("the server was asked")

    assert silence.read(receive, lambda: next(pending), works) == b"answer"


def test_a_server_that_takes_what_is_sent_in_sips_is_waited_for() -> None:
    size = 1024 * 1024

    def sips(connection: socket.socket) -> None:
        taken = 0
        while taken < size:
            taken += len(connection.recv(16 * 1024))
            time.sleep(0.005)
        connection.sendall(http("200 OK", VERSION))

    with serving(sips, works=True) as server:
        caller = Http(server.origin, CREDENTIAL)
        assert caller.upload(UPLOAD, lambda: iter((bytes(size),)), size, bytes(32)).version == "9"


def test_a_line_on_which_nothing_leaves_is_tried_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "STUCK_SECONDS", 0.4)
    size = 512 * 1024
    with serving(lambda connection: time.sleep(30), works=True) as server:
        waits: list[float] = []
        with pytest.raises(ServerUnreachable, match="what was sent does not arrive"):
            caller = Http(server.origin, CREDENTIAL, sleep=waits.append)
            caller.upload(UPLOAD, lambda: iter((bytes(size),)), size, bytes(32))
        assert len(waits) == client.STALLS - 1


def test_a_server_that_works_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "ANSWER_SECONDS", 0.5)
    with (
        serving(after(30), works=True) as server,
        pytest.raises(ServerUnreachable, match="works and has not answered for"),
    ):
        Http(server.origin).send(node.VERSION)


def test_a_caller_with_a_deadline_waits_until_then() -> None:
    with (
        serving(after(30), works=False) as server,
        within(Deadline(0.6)),
        pytest.raises(ServerUnreachable, match=r"did not answer within 0\.6 seconds"),
    ):
        Http(server.origin).send(node.VERSION)
    assert server.asked == 0


def test_a_server_has_all_its_time_after_a_slow_upload(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last byte leaves late; the wait for the answer begins then."""
    clock, pending = [0.0], [1000]

    def receive(seconds: float) -> bytes:
        clock[0] += silence.SILENT_SECONDS if seconds > silence.AT_ONCE else seconds
        if clock[0] >= silence.ANSWER_SECONDS + 60:
            return b"answer"
        pending[0] = 0 if clock[0] >= silence.ANSWER_SECONDS - 1 else pending[0] - 1
        raise httpcore.ReadTimeout

    monkeypatch.setattr(silence, "SILENT_SECONDS", 8.0)
    monkeypatch.setattr(silence, "monotonic", lambda: clock[0])
    assert silence.read(receive, lambda: pending[0], lambda: True) == b"answer"
