"""The attacks on a relay's fairness: when they are measured, and what is said of them."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from scripts.attack import attackers
from scripts.attack.attackers import Until
from scripts.attack.fairness import KINDS, Times
from tests.patience import PATIENCE


class Silent(ThreadingHTTPServer):
    """Lets guests sign in, and answers nothing else until `released`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.released = threading.Event()


class Handler(BaseHTTPRequestHandler):
    server: Silent

    def do_POST(self) -> None:
        self.send_response(204)
        self.end_headers()

    def do_GET(self) -> None:
        self.server.released.wait(PATIENCE)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def silent() -> Iterator[Silent]:
    with Silent() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


def test_an_attack_is_measured_while_its_first_answers_are_worked_out(silent: Silent) -> None:
    context = multiprocessing.get_context("spawn")
    stop, begun = context.Event(), context.Event()
    url = f"http://127.0.0.1:{silent.server_port}"
    guests = threading.Thread(
        target=attackers.as_guests, args=(url, "127.0.0.1", ["/slow"], Until(PATIENCE, stop), begun)
    )
    guests.start()
    try:
        assert begun.wait(PATIENCE / 4)  # a guest waits 60 seconds for an answer
        assert not silent.released.is_set()
    finally:
        stop.set()
        silent.released.set()
        guests.join()


def test_a_measurement_that_broke_off_has_a_row_too() -> None:
    times = Times()
    with times.request("sign in"):
        raise AssertionError("refused")
    assert [times.describe(kind).strip() for kind in KINDS[1:]] == ["-"] * 3
    assert not times.within_limits()
    whole = Times()
    for kind in KINDS:
        with whole.request(kind):
            pass
    assert whole.within_limits()
    whole.of["edit"].append(2.0)
    assert not whole.within_limits()
