"""Calls that end because a deadline passed or somebody cancelled, whatever the server, the line or the name
does meanwhile."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest

from localstore.core.endpoint import Endpoint
from localstore.core.errors import Cancelled, ServerUnreachable, SvcError
from localstore.core.model import node
from localstore.core.model.limits import MIB
from svc.flows.background import BackgroundCall
from svc.http.answer import remedy_of
from svc.http.bounds import Bound, Cancel, Deadline, current, within
from svc.http.client import Http
from tests.patience import PATIENCE
from tests.svc.api.hostile import dripping, hostile, http
from tests.svc.http.test_client import ANY, UPLOAD
from tests.svc.http.test_pool import KEPT, answering

SOON = 40.0  # seconds: the waits of the client itself are longer, those that a test waits much shorter
PACK = Endpoint("GET", "/pack", returns=bytes)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"

Scene = Callable[[ExitStack, pytest.MonkeyPatch], Callable[[], object]]


def silent(stack: ExitStack, _: pytest.MonkeyPatch) -> Callable[[], object]:
    """Accepts, reads, and says nothing."""
    server = stack.enter_context(hostile(lambda connection: connection.recv(1) and None))
    return lambda: Http(server.origin).send(node.VERSION)


def silent_tls(stack: ExitStack, _: pytest.MonkeyPatch) -> Callable[[], object]:
    server = stack.enter_context(hostile(lambda connection: connection.recv(1) and None, deaf=True))
    return lambda: Http(server.origin.replace("http:", "https:")).send(node.VERSION)


def silent_proxy(stack: ExitStack, patch: pytest.MonkeyPatch) -> Callable[[], object]:
    """A proxy that takes CONNECT and says nothing."""
    server = stack.enter_context(hostile(lambda connection: connection.recv(1) and None))
    patch.setenv("HTTPS_PROXY", server.origin)
    return lambda: Http("https://far.example").send(node.VERSION)


def drips_head(stack: ExitStack, _: pytest.MonkeyPatch) -> Callable[[], object]:
    server = stack.enter_context(hostile(dripping(b"HTTP/1.1 200 OK\r\nA: ", b"x", 0.02)))
    return lambda: Http(server.origin).send(node.VERSION)


def drips_body(stack: ExitStack, _: pytest.MonkeyPatch) -> Callable[[], object]:
    server = stack.enter_context(hostile(dripping(HEAD, b" ", 0.02)))
    return lambda: Http(server.origin).send(node.VERSION)


def drips_stream(stack: ExitStack, _: pytest.MonkeyPatch) -> Callable[[], object]:
    server = stack.enter_context(hostile(dripping(HEAD, b" ", 0.02)))

    def read() -> None:
        with Http(server.origin).stream(PACK, MIB) as pieces:
            for _ in pieces:
                pass

    return read


def takes_in_sips(stack: ExitStack, _: pytest.MonkeyPatch) -> Callable[[], object]:
    """A server that reads what is sent to it now and then."""
    server = stack.enter_context(hostile(b"", deaf=True))
    parts = [b"x" * MIB] * 64
    return lambda: Http(server.origin).upload(UPLOAD, lambda: iter(parts), len(parts) * MIB, b"\0" * 32)


def asks_to_wait(stack: ExitStack, _: pytest.MonkeyPatch) -> Callable[[], object]:
    server = stack.enter_context(hostile(http("503 Busy", b"", "text/plain", "Retry-After: 30")))
    return lambda: Http(server.origin).send(node.VERSION)


def takes_no_connection(stack: ExitStack, _: pytest.MonkeyPatch) -> Callable[[], object]:
    """A port whose queue is full: what knocks there is dropped."""
    server = stack.enter_context(socket.socket())
    server.bind(("127.0.0.1", 0))
    server.listen(0)
    for _number in range(4):
        filler = stack.enter_context(socket.socket())
        filler.setblocking(False)
        filler.connect_ex(server.getsockname())
    return lambda: Http(f"http://127.0.0.1:{server.getsockname()[1]}").send(node.VERSION)


def name_without_end(stack: ExitStack, patch: pytest.MonkeyPatch) -> Callable[[], object]:
    """Whoever should know the name does not answer."""
    never = threading.Event()
    stack.callback(never.set)

    def look_up(*_: object, **__: object) -> None:
        never.wait(60)
        raise socket.gaierror("nobody knows")

    patch.setattr(socket, "getaddrinfo", look_up)
    return lambda: Http("http://far.example").send(node.VERSION)


def line_is_cut(stack: ExitStack, _: pytest.MonkeyPatch) -> Callable[[], object]:
    """The answer comes through a line that dies in the middle of it, without a word to either side."""
    server = stack.enter_context(hostile(dripping(HEAD, b" " * 1000, 0.001)))
    origin = stack.enter_context(forwarding(server.origin, most=20_000))
    return lambda: Http(origin).send(node.VERSION)


SCENES: list[Scene] = [
    silent, silent_tls, silent_proxy, drips_head, drips_body, drips_stream, takes_in_sips, asks_to_wait,
    takes_no_connection, name_without_end, line_is_cut,
]  # fmt: skip


@contextmanager
def forwarding(origin: str, most: int) -> Iterator[str]:
    """An address that passes everything on to `origin`, and of what comes back so many bytes."""
    host, port = origin.removeprefix("http://").split(":")
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            near, _ = listening.accept()
            with near, socket.create_connection((host, int(port))) as far:
                far.sendall(near.recv(65536))
                passed = 0
                while passed < most:
                    passed += len(part := far.recv(4096))
                    near.sendall(part)
                done.wait(30)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        done.set()
        thread.join(5)


def ended(call: Callable[[], object], *bounds: Bound) -> tuple[SvcError, float]:
    """What a call raised under these bounds, and when."""
    with within(*bounds), pytest.raises(SvcError) as raised:
        call()
    return raised.value, time.monotonic()


@pytest.mark.parametrize("scene", SCENES)
def test_a_deadline_ends_every_wait_with_a_sentence(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as stack:
        call = scene(stack, monkeypatch)
        began = time.monotonic()
        error, end = ended(call, Deadline(0.3))
    assert type(error) is ServerUnreachable
    assert "did not answer within 0.3 seconds; check your network" in error.detail
    assert 0.3 <= end - began < SOON


@pytest.mark.parametrize("scene", SCENES)
def test_another_thread_cancels_every_wait(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    cancel = Cancel()
    with ExitStack() as stack, ThreadPoolExecutor(1) as pool:
        running = pool.submit(ended, scene(stack, monkeypatch), cancel)
        time.sleep(0.3)
        assert not running.done(), "it is still waiting"
        began = time.monotonic()
        cancel.cancel()
        error, end = running.result(PATIENCE)
        print(f"{scene.__name__}: {1000 * (end - began):.1f} ms")
    assert type(error) is Cancelled
    assert end - began < SOON


def test_what_cannot_be_repeated_may_have_been_done() -> None:
    with hostile(lambda connection: connection.recv(1) and None) as server:
        error, _ = ended(lambda: Http(server.origin).send(ANY), Deadline(0.1))
    assert error.detail.endswith(remedy_of(repeatable=False))


def test_nothing_is_sent_under_a_bound_that_has_ended() -> None:
    cancel = Cancel()
    cancel.cancel()
    with hostile(KEPT) as server:
        assert type(ended(lambda: Http(server.origin).send(node.VERSION), cancel)[0]) is Cancelled
        assert server.requests == []


def test_the_first_of_several_bounds_ends_a_call() -> None:
    with hostile(lambda connection: connection.recv(1) and None) as server, within(Deadline(60), Cancel()):
        error, _ = ended(lambda: Http(server.origin).send(node.VERSION), Deadline(0.1))
    assert "within 0.1 seconds" in error.detail
    assert current() == ()


def test_a_bound_that_ends_later_harms_no_call_outside_of_it() -> None:
    """Neither the connection that it left in the pool, nor one in another thread's use."""
    cancel = Cancel()
    with hostile(answering(3)) as server:
        caller = Http(server.origin)
        with within(cancel, Deadline(60)):
            assert caller.send(node.VERSION).version == "9"
        cancel.cancel()
        assert caller.send(node.VERSION).version == "9"
        assert caller.send(node.VERSION).version == "9"
        assert len(server.requests) == 1, "one connection served them all"
        caller.close()


def test_a_stream_stays_bound_until_it_is_closed() -> None:
    cancel = Cancel()
    with hostile(dripping(HEAD, b" ", 0.02)) as server:
        with within(cancel):
            opened = Http(server.origin).stream(PACK, MIB)
            pieces = opened.__enter__()
        assert next(pieces)
        threading.Timer(0.1, cancel.cancel).start()
        with pytest.raises(Cancelled):
            for _ in pieces:
                pass
        opened.__exit__(None, None, None)


def test_a_question_in_the_background_is_bound_as_who_asked_it() -> None:
    with hostile(lambda connection: connection.recv(1) and None) as server, within(Deadline(0.2)):
        asked = BackgroundCall(lambda: Http(server.origin).send(node.VERSION))
        with pytest.raises(ServerUnreachable, match=r"within 0\.2 seconds"):
            asked.answer(10)


def test_many_calls_end_together_and_leave_nothing() -> None:
    cancel = Cancel()
    before = threading.active_count()

    def wait(origin: str) -> type[SvcError]:
        return type(ended(lambda: Http(origin).send(node.VERSION), cancel, Deadline(60))[0])

    with ExitStack() as stack, ThreadPoolExecutor(20) as pool:
        stop = threading.Event()
        stack.callback(stop.set)
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=50))
        running = [pool.submit(wait, f"http://127.0.0.1:{server.getsockname()[1]}") for _ in range(20)]
        time.sleep(0.5)
        cancel.cancel()
        assert {one.result(PATIENCE) for one in running} == {Cancelled}
    until = time.monotonic() + PATIENCE
    while threading.active_count() > before + 1:
        assert time.monotonic() < until, "a timer is left"
        time.sleep(0.05)
