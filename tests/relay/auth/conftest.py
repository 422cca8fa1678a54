"""People in front of the running relay."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from relay.base import clock
from relay.events.jobs import Jobs
from tests.relay.auth.people import Browser, Device, Terminal
from tests.relay.auth.provider import Provider


@pytest.fixture
def name() -> Callable[[], str]:
    """Handles nobody has."""
    return lambda: f"u{secrets.token_hex(6)}"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """An identity provider on this machine."""
    running = Provider()
    yield running
    running.close()


@pytest.fixture
def browser(relay) -> Iterator[Callable[[], Browser]]:
    made: list[Browser] = []

    def make() -> Browser:
        made.append(Browser(relay.url))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def device(relay) -> Callable[[], Device]:
    return lambda: Device(relay.url)


@pytest.fixture
def terminal(device, name) -> Callable[[], Terminal]:
    """A terminal signed in by device key, to an account of its own."""

    def make() -> Terminal:
        one = device()
        answer = one.sign_in(name())
        assert answer.status_code == 201, answer.text
        return one.client(answer.json()["token"])

    return make


@pytest.fixture
def later(relay) -> Iterator[Callable[[int], None]]:
    """Move the relay's clock on, to so many seconds after now."""
    with pytest.MonkeyPatch.context() as patch:

        def move(seconds: int) -> None:
            shifted = SimpleNamespace(time_ns=lambda: time.time_ns() + seconds * 10**9)
            patch.setattr(clock, "time", shifted)

        yield move
    # A sweep that began in the future deletes what expires until then, also that of the test that comes next.
    relay.run(_ended(relay.node.jobs))


async def _ended(jobs: Jobs) -> None:
    await asyncio.gather(*jobs._runs, return_exceptions=True)
