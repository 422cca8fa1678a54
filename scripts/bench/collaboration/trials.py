"""Measures the cost of trying merges. After each seal, the relay tries again to merge the branch's open
proposals, of which there are 0, 1, 10 or 50.

    python -m scripts.bench.collaboration.trials [--files 2000] [--edited 40] [--rounds 3] [--write]

There are two figures, medians of the rounds. One is the CPU that the relay uses after a seal until it has
nothing to do, less its CPU for a seal on a branch without proposals. The other is how long another account's
reads of the repository take meanwhile. Main and the branches change files as in
`scripts.bench.collaboration.merging`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from localstore.core.model import repo as repos
from scripts.bench.collaboration.folders import seal
from scripts.bench.collaboration.merging import Files, make_proposals, sides
from scripts.bench.ingest import signed_in
from scripts.bench.relay_cost import MeasuredRelay
from scripts.bench.shared import report
from scripts.bench.shared.cpu import cpu_of, tree
from svc.api import Api
from svc.http.client import Http

PROPOSALS = (0, 1, 10, 50)
MOST_WAIT = 0.2  # seconds


@dataclass(slots=True)
class Seen:
    """What the relay did after one seal. `cpu`: seconds of CPU; `wall`: seconds until it had nothing to do;
    `waits`: seconds of each read meanwhile."""

    cpu: float
    wall: float
    waits: list[float]


def await_rest(relay: MeasuredRelay) -> tuple[float, float]:
    """Wait until the relay has nothing to do. Returns (the time from which it had nothing to do, its CPU
    seconds at that time)."""
    used, since = cpu_of(tree(relay.pid)), time.perf_counter()
    while time.perf_counter() - since < 0.7:
        time.sleep(0.1)
        now = cpu_of(tree(relay.pid))
        if now - used > 0.02:
            used, since = now, time.perf_counter()
    return since, used


def move_main(api: Api, relay: MeasuredRelay, repo_id: str, head: str, text: bytes) -> tuple[str, Seen]:
    """Seal a file onto main, whose newest seal is `head`, and wait until the relay has nothing to do. Returns
    (id of the new seal, what the relay did after it)."""
    _, before = await_rest(relay)
    began = time.perf_counter()
    head = seal(api, repo_id, "main", {"new": text}, head)
    until, used = await_rest(relay)
    return head, Seen(used - before, until - began, [])


def measure_waits(api: Api, other: Api, repo_id: str, head: str, text: bytes) -> tuple[str, list[float]]:
    """Seal a file onto main, whose newest seal is `head`. Meanwhile, and for a second after, read the
    repository with the account `other`. Returns (id of the new seal, seconds of each read)."""
    waits: list[float] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            began = time.perf_counter()
            other.send(repos.GET, id=repo_id)
            waits.append(time.perf_counter() - began)
            time.sleep(0.01)

    reading = threading.Thread(target=read)
    reading.start()
    try:
        head = seal(api, repo_id, "main", {"new": text}, head)
        time.sleep(1)
    finally:
        over.set()
        reading.join()
    return head, waits


def measure(folder: Path, files: tuple[Files, Files, list[Files]], rounds: int) -> dict[int, Seen]:
    found = {}
    with MeasuredRelay(folder / "relay") as relay:
        api, _ = signed_in(folder, relay.origin)
        other = Api(Http(relay.origin, api.http.credential))
        base, ours, theirs = files
        for many in PROPOSALS:
            repo_id, head = make_proposals(api, f"with{many}", base, ours, theirs[:many])
            seen = []
            for number in range(rounds):
                head, one = move_main(api, relay, repo_id, head, b"%d\n" % number)
                head, one.waits = measure_waits(api, other, repo_id, head, b"%d, again\n" % number)
                seen.append(one)
            found[many] = Seen(
                statistics.median(one.cpu for one in seen),
                statistics.median(one.wall for one in seen),
                sorted(wait for one in seen for wait in one.waits),
            )
    return found


def format_figures(found: dict[int, Seen]) -> str:
    plain = found[0]
    lines = [
        [
            str(many),
            f"{max(one.cpu - plain.cpu, 0) * 1000:.0f} ms",
            f"{one.wall:.1f} s",
            f"{statistics.median(one.waits) * 1000:.0f} ms",
            f"{one.waits[-1] * 1000:.0f} ms",
        ]
        for many, one in found.items()
    ]
    heads = [
        "open proposals",
        "CPU of trials",
        "the relay rests after",
        "a read waits",
        "at most (aim 200 ms)",
    ]
    return f"{report.table(heads, lines)}\n\n{report.conditions()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--edited", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    options = parser.parse_args()
    files = sides(options.files, options.edited, max(PROPOSALS))
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        found = measure(Path(folder), files, options.rounds)
    report.show("trials", format_figures(found), options.write)
    return 0 if all(one.waits[-1] <= MOST_WAIT for one in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
