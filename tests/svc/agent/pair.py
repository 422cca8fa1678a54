"""Two devices of one account with a folder each, and their relay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.live.devices import Device, Relay, paired


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

    found = paired(tmp_path_factory.mktemp("devices"), relay.server, fill)
    yield found
    for device in found:
        device.end_agent()
