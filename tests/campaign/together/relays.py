"""Two relays of one PostgreSQL database, and one address for both."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests import databases
from tests.campaign.cable import Cable
from tests.campaign.world import Node
from tests.svc.conftest import ROOT, clean_environment


class Relays(Node):
    """Two relays of one PostgreSQL database behind one address; new connections reach the one that the cable
    leads to."""

    def __init__(self, base: Path, cable: Cable) -> None:
        self.cable = cable
        self.base, self.address, self.forks = base, cable.address, False
        self.control, self.serial, self.port, self.proxy = base / "weather.json", 0, 0, None
        self.url = databases.postgres_url()
        self.stores = {"DATABASE_URL": self.url}
        self.both: list[subprocess.Popen[str]] = []
        self.ports: list[int] = []
        for number in (0, 1):
            self.revive(number)
        self.lead_to(0)

    def revive(self, number: int) -> None:
        """Start relay `number`, at another port than before."""
        del self.both[number : number + 1], self.ports[number : number + 1]
        self.start()
        assert isinstance(self.relay, subprocess.Popen)
        self.both.insert(number, self.relay)
        self.ports.insert(number, self.port)

    def lead_to(self, number: int) -> None:
        """Let new connections reach relay `number`."""
        self.cable.upstream = self.ports[number]

    def slay(self, number: int) -> None:
        """Kill relay `number`, and with it every connection to it."""
        self.relay = self.both[number]
        self.kill()

    def close(self) -> None:
        for relay in self.both:
            self.relay = relay
            super().close()


@contextlib.contextmanager
def serving(base: Path, cable: Cable) -> Iterator[Relays]:
    """Both relays and their signer, until the end of the block."""
    signer = subprocess.Popen(
        [sys.executable, "-m", "relay", "signer", "--data", str(base / "data")],
        cwd=ROOT,
        env=clean_environment(),
        stderr=subprocess.DEVNULL,
    )
    try:
        with contextlib.closing(Relays(base, cable)) as found:
            yield found
    finally:
        signer.terminate()
        signer.wait(20)
