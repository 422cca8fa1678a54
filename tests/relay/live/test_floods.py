"""A session that sends frames without end, by the limits of a relay as it runs: the others go on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from localstore.core.identity.bearer import to_text
from localstore.core.model.live import UpdateBatch
from localstore.core.model.sync import Here, Open, Updates
from scripts.attack.attackers import frame
from scripts.bench.live import Listener
from svc.http.credential import Credential
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository
from tests.relay.live.copies import Copies, join


@pytest.fixture(scope="module")
def relay_variables() -> dict[str, str]:
    return {"RUST_LOG": "off"}  # with rate limits


def opens(who: Account, repo_id: str, replica: int) -> Iterator[msgspec.Struct]:
    """Ten thousand channels, most of them where there is nothing."""
    for number in range(10_000):
        branch = "main" if number % 2 else f"b{number}"
        yield Open(channel=number, repo_id=repo_id, branch=branch, replica=replica, device_key_id=who.key.id)


def places(who: Account, repo_id: str, replica: int) -> Iterator[msgspec.Struct]:
    yield Open(channel=1, repo_id=repo_id, branch="main", replica=replica, device_key_id=who.key.id)
    for number in range(20_000):
        yield Here(channel=1, path=f"{number}.txt", line=number)


def batches(who: Account, repo_id: str, replica: int) -> Iterator[msgspec.Struct]:
    yield Open(channel=1, repo_id=repo_id, branch="main", replica=replica, device_key_id=who.key.id)
    for number in range(10_000):
        batch = UpdateBatch(device_key_id=who.key.id, replica=replica, updates=[])
        yield Updates(channel=number % 3, id=number, batch=batch)


@pytest.mark.parametrize("kind", [opens, places, batches])
def test_others_go_on_beside_a_flood(
    relay: Relay,
    repo: Repository,
    copies: Copies,
    account: Callable[..., Account],
    kind: Callable[..., Iterator[msgspec.Struct]],
) -> None:
    hostile = account()
    relay.run(join(relay, repo.id, hostile.id))
    its_copy = copies(hostile, connected=False)
    ann, bob = copies(), copies()
    origin: Any = SimpleNamespace(origin=relay.url)
    listener = Listener(origin, Credential(to_text(hostile.token), hostile.key), "127.0.0.9")
    messages = [msgspec.json.encode(one) for one in kind(hostile, repo.id, its_copy.replica)]
    flood = b"".join(frame(1, one) for one in messages)
    over = threading.Event()

    def pour() -> None:
        listener.line.settimeout(0.2)
        sent = 0
        while not over.is_set() and sent < len(flood):
            try:
                sent += listener.line.send(flood[sent : sent + 65536])
            except TimeoutError:
                continue  # it is made to wait
            except OSError:
                return  # it was cut off

    thread = threading.Thread(target=pour)
    thread.start()
    try:
        for number in range(10):
            (answer,) = ann.say(ann.create(f"{number}.txt", b"x"))
            assert answer.result == "ok"
            ann.reach(answer.seq)
            bob.reach(answer.seq)
        bob.equals_bootstrap()
    finally:
        over.set()
        thread.join()
        listener.line.shutdown(socket.SHUT_RDWR)
        listener.line.close()
    open_channels = relay.run(channels_of(relay, repo.id))
    assert open_channels <= 256 + 2


async def channels_of(relay: Relay, repo_id: str) -> int:
    return sum(len(peer.channels) for peer in relay.node.hub.channels.peers(repo_id))
