"""Two devices of one account with a folder each, and their relay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.live.devices import Device, Relay, pair_devices
from tests.patience import until


@pytest.fixture(scope="module")
def relay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    relay = Relay(tmp_path_factory.mktemp("relay"))
    relay.start()
    yield relay
    relay.kill()


@pytest.fixture(scope="module")
def devices(relay: Relay, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Device, Device]]:
    def fill(folder: Path) -> None:
        (folder / "a.txt").write_text("".join(f"line {number}\n" for number in range(10)))

    found = pair_devices(tmp_path_factory.mktemp("devices"), relay.server, fill)
    yield found
    for device in found:
        device.end_agent()


def shared(devices: tuple[Device, Device], name: str, text: str) -> str:
    """A file with this text, which both devices have in folders that are watched. Returns its name."""
    first, second = devices
    for device in devices:
        device.svc("watch", "--detach")
        device.wait_for("live")
    (first.folder / name).write_text(text)
    until(lambda: (second.folder / name).exists())
    for device in devices:
        device.wait_for("live")
    return name
