"""Passwords are hashed a few at a time, whoever waits for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from relay.signing import sign_in
from relay.signing.sign_in import Passwords


class Hasher:
    """One that takes until it is let go."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.go = threading.Event()

    def hash(self, password: str) -> str:
        self.began.append(password)
        self.go.wait(30)
        return password


@pytest.fixture
def hasher() -> Iterator[Hasher]:
    made = Hasher()
    yield made
    made.go.set()


async def test_those_who_hang_up_make_no_room_for_more(hasher: Hasher) -> None:
    passwords = Passwords()
    passwords._hasher = hasher  # type: ignore[assignment]
    few = sign_in._HASHERS_AT_ONCE
    asked = [asyncio.create_task(passwords.hash(f"{n}")) for n in range(2 * few)]
    while len(hasher.began) < few:
        await asyncio.sleep(0)
    for one in asked[:few]:
        one.cancel()
    for _ in range(3):
        await asyncio.to_thread(lambda: None)
    assert len(hasher.began) == few
    hasher.go.set()
    done = await asyncio.gather(*asked, return_exceptions=True)
    assert done[few:] == [f"{n}" for n in range(few, 2 * few)]
