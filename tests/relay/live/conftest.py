"""A repository, and copies of its branch that listen."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import pytest

from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create
from tests.relay.live.copies import Copies, Copy, join


@pytest.fixture
def repo(relay: Relay, account: Callable[..., Account]) -> Repository:
    owner = account()
    return create(relay.client(owner), owner, f"r{secrets.token_hex(4)}")


@pytest.fixture
def copies(relay: Relay, repo: Repository, account: Callable[..., Account]) -> Iterator[Copies]:
    """`copies()`: a connected copy of somebody who may write."""
    made: list[Copy] = []

    def make(who: Account | None = None, connected: bool = True) -> Copy:
        if who is None:
            who = account()
            relay.run(join(relay, repo.id, who.id))
        copy = Copy(relay, who, repo.id)
        made.append(copy)
        if connected:
            copy.connect()
        return copy

    yield make
    for one in made:
        one.leave()
