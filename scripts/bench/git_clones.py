"""Measures git over https: what a clone costs compared with `git http-backend`, and how many clones at once
disturb others.

    python -m scripts.bench.git_clones [--repository .] [--most 1000] [--rounds 7] [--clones 200] [--write]

A relay gets a seal for each commit of the first-parent line of a repository. A git server gets the same
commits, packed by git. Both are cloned in turns; the figures are medians of the CPU of client and server
together. Then many clones start at once, with low priority because they stand for other machines. Meanwhile
an account pushes to another repository and reads it, one request after another. These requests are also
measured before, without clones.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from scripts.bench.shared import report
from scripts.bench.shared.cpu import Cost, Peak, anonymous, run, serving
from scripts.bench.shared.git_server import git_server
from scripts.campaign.git.places import GitProgram, RestartableRelay, relay_on
from scripts.campaign.git.real import import_commits
from scripts.campaign.git.source import Source
from tests.relay.conftest import Account
from tests.relay.histories import Repository, create, ok

MOST_CPU, MOST_WAIT = 1.3, 0.1  # times git's; seconds, the median of those who wait
QUIET, MIB = 20, 1 << 20
Waits = dict[str, list[float]]


def fill(base: Path, repository: Path, most: int) -> tuple[str, Account, str]:
    """Fill a relay's data folder in `base` with the first `most` commits of a git repository. Returns (full
    name of the repository, an account, id of another repository of that account)."""
    with (
        contextlib.closing(Source(repository, base / "scratch")) as source,
        relay_on(base / "relay") as relay,
    ):
        name = import_commits(relay, source, source.commits("--first-parent")[:most])
        other = relay.account("other")
        with relay.client(other, event_hooks={}) as http:
            made = create(http, other, "beside")
            made.seal({"x": b"0"})
        return name, other, made.id


def measure_clones(
    base: Path, git: GitProgram, served: RestartableRelay, address: str, rounds: int
) -> dict[str, list[Cost]]:
    """Clone from svc and from git in turns. Returns "svc" or "git" → the cost of each clone."""
    git("clone", "-q", "--bare", address, base / "peer/peer.git")
    git("-C", base / "peer/peer.git", "repack", "-adfq")
    figures: dict[str, list[Cost]] = defaultdict(list)
    with git_server(base / "peer") as (pid, peer):
        for number in range(rounds + 1):
            for name, server, url in (
                ("svc", served.process.pid, address),
                ("git", pid, f"{peer}/peer.git"),
            ):
                cost = Cost()
                with serving(server, cost):
                    words = git.words("clone", "-q", url, base / f"{name}-{number}")
                    own = run(words, base, git.environment)
                if number:  # the first round fills the caches
                    figures[name].append(Cost(cost.cpu + own.cpu, own.wall))
    return figures


def waits(repository: Repository, goes_on: Callable[[int], bool]) -> Waits:
    """Push and read, one after another, while `goes_on` returns True for the number of the next round.
    Returns the seconds of each request by kind."""
    seconds: Waits = {"push": [], "read": []}
    number = 0
    while goes_on(number):
        number += 1
        began = time.perf_counter()
        repository.seal({"x": b"%d" % time.monotonic_ns()})
        pushed = time.perf_counter()
        ok(repository.http.get(repository.url))
        seconds["push"].append(pushed - began)
        seconds["read"].append(time.perf_counter() - pushed)
    return seconds


def measure_crowd(
    base: Path, git: GitProgram, served: RestartableRelay, address: str, beside: Repository, clones: int
) -> list[str]:
    quiet = waits(beside, lambda number: number < QUIET)
    before = anonymous([served.process.pid])
    began = time.perf_counter()
    with Peak({"tree": served.process.pid}) as peak, _own_peak(served) as own:
        words = ["nice", "-n", "19", *git.words("clone", "-q", "--bare", address)]
        running = [
            subprocess.Popen([*words, str(base / f"crowd-{number}")], env=git.environment)
            for number in range(clones)
        ]
        busy = waits(beside, lambda _: any(one.poll() is None for one in running))
    took = time.perf_counter() - began
    failed = sum(one.returncode != 0 for one in running)
    rows = [
        [
            name,
            *(f"{statistics.median(seconds[name]) * 1000:.0f} ms" for seconds in (quiet, busy)),
            f"{max(busy[name]) * 1000:.0f} ms",
            str(len(busy[name])),
        ]
        for name in quiet
    ]
    return [
        report.table(["beside the clones", "without clones, median", "median", "longest", "number"], rows),
        f"{clones} clones in {took:.1f} s, {failed} failed. Memory of the relay: {before // MIB} MiB before, "
        f"at most {max(own) // MIB} MiB, with its processes of git {peak.most['tree'] // MIB} MiB.",
    ]


@contextlib.contextmanager
def _own_peak(served: RestartableRelay) -> Iterator[list[int]]:
    """A context that samples the memory of the relay's process. Yields a list with one item: the largest
    number of bytes so far."""
    import threading

    seen, done = [0], threading.Event()

    def look() -> None:
        while not done.wait(0.05):
            seen.append(anonymous([served.process.pid]))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


def format_figures(figures: dict[str, list[Cost]], crowd: list[str]) -> str:
    svc, git = (report.median(figures[name]) for name in ("svc", "git"))
    ratio = report.against(svc.cpu / git.cpu, MOST_CPU)
    head = ["", "svc CPU", "git CPU", "ratio (aim)", "svc wall", "git wall"]
    row = ["clone", *(f"{one.cpu:.2f} s" for one in (svc, git)), ratio]
    row += [f"{one.wall:.2f} s" for one in (svc, git)]
    return "\n\n".join([report.table(head, [row]), *crowd, report.conditions()])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repository", type=Path, default=Path())
    parser.add_argument("--most", type=int, default=1000, help="the oldest commits to import")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--clones", type=int, default=200)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        base = Path(folder)
        git = GitProgram(base / "home")
        name, other, beside = fill(base, asked.repository, asked.most)
        served = RestartableRelay(base / "relay")
        try:
            address = f"{served.url}/{name}.git"
            git("clone", "-q", address, base / "built")
            figures = measure_clones(base, git, served, address, asked.rounds)
            with served.client(other) as http:
                crowd = measure_crowd(
                    base, git, served, address, Repository(http, other, {"id": beside}), asked.clones
                )
        finally:
            served.close()
    report.show("git_clones", format_figures(figures, crowd), asked.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
