"""Attacks a relay in ways that could make others wait, and measures how long another person's requests take
meanwhile.

    python -m scripts.attack.fairness [--seconds 10] [--only WORDS] [--same-address]

Each attack has its own relay and its own processes. It runs for a limited time, over loopback alone.
Meanwhile another person signs in, looks at a repository, pushes one edit and seals one file, over and over.
The table shows how long each of these requests took, and the largest memory of the relay (RssAnon). The
attackers come from 127.0.0.2, the other person from 127.0.0.1; with --same-address all come from 127.0.0.1.
The relays use the database that DATABASE_URL names, if it is set.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path

import httpx

from scripts.attack import attackers
from scripts.attack.world import LiveText, RepositoryOwner
from scripts.fuzz import api as fuzz_api

MOST = 0.100  # seconds: the median that an innocent person's requests must stay under
BEGINNING = 180.0  # seconds in which an attack that prepares itself must have begun
LEAVING = 2.0  # seconds in which an attack may end by itself
WORST = 1.0  # seconds: the longest wait of an innocent person for one request
MEMORY = 1 << 30  # bytes: far below a container of 4 GiB
KINDS = ("sign in", "view", "edit", "seal")
REQUESTS = {"seal": 4}  # that one time stands for; others stand for one


class Times:
    """The seconds that each request took, by kind of request, and the number of failed requests."""

    def __init__(self) -> None:
        self.of: dict[str, list[float]] = {kind: [] for kind in KINDS}
        self.failed = 0

    @contextlib.contextmanager
    def request(self, kind: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        except (httpx.HTTPError, AssertionError) as error:
            self.failed += 1
            print(f"    {kind} failed: {error!r}"[:120], flush=True)
        finally:
            self.of[kind].append((time.monotonic() - began) / REQUESTS.get(kind, 1))

    def describe(self, kind: str) -> str:
        """The median and the longest time of one kind of request, as text in milliseconds."""
        seconds = self.of[kind]
        if not seconds:
            return f"{'-':>14}"
        return f"{statistics.median(seconds) * 1e3:6.0f} /{max(seconds) * 1e3:6.0f}"

    def within_limits(self) -> bool:
        """Whether requests of each kind were sent, none failed, and none took too long."""
        return not self.failed and all(
            seconds and statistics.median(seconds) < MOST and max(seconds) < WORST
            for seconds in self.of.values()
        )


def innocent(
    person: RepositoryOwner, text: LiveText, seconds: float, memory: list[int], relay: fuzz_api.RelayProcess
) -> Times:
    """Sign in, read and edit in turn for `seconds`, with a short pause after each round. Returns the times of
    the requests. Samples of the relay's memory are appended to `memory`."""
    times, until = Times(), time.monotonic() + seconds
    while time.monotonic() < until:
        for answer in person.sign_in_steps():
            with times.request("sign in"):
                answer()
        if times.failed > 3:
            break
        with times.request("view"):
            person.view()
        with times.request("edit"):
            text.edit_once()
        with times.request("seal"):
            person.seal()
        memory.append(relay.anonymous_memory())
        time.sleep(0.05)
    return times


@contextlib.contextmanager
def _end_on_leaving(relay: fuzz_api.RelayProcess) -> Iterator[None]:
    """A context that ends the relay on leaving, by SIGKILL if the relay is too busy to end."""
    try:
        yield
    finally:
        relay.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            relay.process.wait(10)
        relay.process.kill()


def _await_begin(attack: attackers.Attack, processes: Sequence[BaseProcess], begun: Event) -> bool:
    """Wait until the attack's requests are being sent. Returns False if its processes end before that."""
    if attack.warm_up is not None:
        time.sleep(attack.warm_up if processes else 0)
        return True
    until = time.monotonic() + BEGINNING
    while time.monotonic() < until and any(process.is_alive() for process in processes):
        if begun.wait(1):
            return True
    return begun.is_set()


def run(name: str, seconds: float, source: str) -> bool:
    """Run the attack `name`, and print its row of the table. `source`: the address from which it comes.
    Returns whether the limits were kept."""
    attack = attackers.ATTACKS[name]
    with (
        tempfile.TemporaryDirectory(prefix="fairness-") as folder,
        fuzz_api.serving(Path(folder), TR_RATE_LIMITS="on") as relay,
        _end_on_leaving(relay),
        RepositoryOwner(relay.url) as person,
    ):
        text = person.text(b"one line\n" * 20)
        memory = [relay.anonymous_memory()]
        context = multiprocessing.get_context("fork")
        stop, begun = context.Event(), context.Event()
        most = BEGINNING + seconds + 60
        processes = [
            context.Process(target=attack.work, args=(relay.url, source, most, number, stop, begun))
            for number in range(attack.processes)
        ]
        for process in processes:
            process.start()
        try:
            attacked = _await_begin(attack, processes, begun)
            times = innocent(person, text, seconds, memory, relay)
            attacked = attacked and all(process.exitcode in (None, 0) for process in processes)
        finally:
            stop.set()
            for process in processes:
                process.join(LEAVING)  # its requests may wait for answers much longer
                if process.is_alive():
                    process.kill()
        held = times.within_limits() and max(memory) < MEMORY and relay.alive() and attacked
        verdict = ("held" if held else "BROKEN") if attacked else "BROKEN: the attack did not begin, or ended"
        row = "  ".join(times.describe(kind) for kind in KINDS)
        print(f"{name:28} {row}  {max(memory) >> 20:5} MiB  {verdict}", flush=True)
        return held


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", default="", help="attacks whose names hold these words")
    parser.add_argument("--same-address", action="store_true", help="attack from the innocent's address")
    asked = parser.parse_args()
    os.environ.setdefault("PYTHONPATH", str(Path.cwd()))
    source = "127.0.0.1" if asked.same_address else "127.0.0.2"
    print(f"{'':28} " + "  ".join(f"{kind:>14}" for kind in KINDS) + "  memory   (ms, median / worst)")
    names = [name for name in attackers.ATTACKS if asked.only in name]
    held = [run(name, asked.seconds, source) for name in names]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
