"""The agent sends what was queued: at once while the server answers, else when it answers again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scripts.live.devices import Device, Relay, pair_devices
from tests.patience import PATIENCE

SOON = PATIENCE


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    relay = Relay(tmp_path / "relay")
    relay.start()
    yield relay
    relay.kill()


@pytest.fixture
def device(relay: Relay, tmp_path: Path) -> Iterator[Device]:
    device, _ = pair_devices(
        tmp_path / "devices", relay.server, lambda folder: (folder / "a.txt").write_text("a\n")
    )
    yield device
    device.end_agent()


def until(what: Callable[[], object]) -> None:
    end = time.monotonic() + SOON
    while not what():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.05)


def labels(device: Device) -> list[str]:
    return [one["name"] for one in json.loads(device.svc("label", "list", "--json", "name"))]


def queued(device: Device) -> list[str]:
    return [one["state"] for one in json.loads(device.svc("queue", "list", "--json", "state"))]


def test_what_was_queued_is_sent_by_the_agent(device: Device, relay: Relay) -> None:
    device.svc("label", "create", "before", "--queue")
    assert queued(device) == ["waiting"]
    device.svc("watch", "--detach")
    until(lambda: queued(device) == [])
    device.wait_for("live")
    device.svc("label", "create", "at-once", "--queue")
    until(lambda: queued(device) == [])
    relay.kill()
    device.svc("label", "create", "later", "--queue")
    device.svc("label", "create", "later", "--queue")
    relay.start()
    until(lambda: queued(device) == ["refused"])
    device.wait_for(
        "live", 45
    )  # not polling for a minute: the socket is tried as soon as requests get through
    assert sorted(labels(device)) == ["at-once", "before", "later"]
