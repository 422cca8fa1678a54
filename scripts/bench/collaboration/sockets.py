"""Measures what an event costs for each socket that receives it, and how long comments take during a push.

    python -m scripts.bench.collaboration.sockets [--sockets 120] [--events 100] [--files 10000] [--write]

There are 120 sockets (one address may open 128), and 10,000 files are pushed. The events are reactions, which
one connection adds and removes. The same is done without sockets, and the difference is the cost of the
sockets. Comments are sent one after another from before the push begins until it has ended.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from localstore.core.model import issue as issues
from localstore.core.model import repo as repos
from localstore.core.model.issue import CommentBody, IssueCreate
from localstore.core.model.repo import RepoPatch
from scripts.bench.collaboration.folders import environment, make_linked_folder, svc
from scripts.bench.ingest import signed_in
from scripts.bench.relay_cost import MeasuredRelay
from scripts.bench.shared import report
from scripts.bench.shared.cpu import Cost, serving
from svc.api import Api, connect
from svc.http.session import Sessions

MOST_EACH, MOST_WAIT = 50.0, 0.2  # microseconds; seconds
OF_ONE = 30  # sockets of one account


def events(api: Api, relay: MeasuredRelay, repo_id: str, count: int) -> float:
    """Cause `count` events. Returns the microseconds of the relay's CPU for each."""
    cost = Cost()
    with serving(relay.pid, cost):
        for number in range(count):
            route = issues.UNREACT if number % 2 else issues.REACT
            api.send(route, id=repo_id, n="1", reaction="heart")
        time.sleep(0.5)
    return cost.cpu * 1e6 / count


def listeners(base: Path, relay: MeasuredRelay, sockets: int) -> Iterator[Api]:
    """Make enough accounts to open `sockets` sockets, of which one account may open only a few. Yields, for
    each socket, the API of its account."""
    for number in range(0, sockets, OF_ONE):
        home = base / f"listener{number}"
        env = {**environment(base, relay.origin), "SVC_HOME": str(home)}
        svc(base, env, "login", "--device-key", "--handle", f"listener{number}")
        api = connect(relay.origin, Sessions(home))
        yield from [api] * min(OF_ONE, sockets - number)


def each(api: Api, base: Path, relay: MeasuredRelay, repo_id: str, sockets: int, count: int) -> float:
    """Measure the relay's CPU for one event and one socket, in microseconds."""
    api.send(repos.UPDATE, RepoPatch(visibility="public"), id=repo_id)
    events(api, relay, repo_id, 50)
    alone = events(api, relay, repo_id, count)
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(one.sync.socket()) for one in listeners(base, relay, sockets)]
        for one in opened:
            one.subscribe(repo_id)
            while one.receive(0.2) is not None:
                break
        time.sleep(1)
        heard = events(api, relay, repo_id, count)
        told = sum(1 for _ in range(count) if opened[-1].receive(1) is not None)
    if told < count:
        raise RuntimeError(f"the last socket heard {told} of {count} events")
    return (heard - alone) / sockets


def waits(api: Api, base: Path, relay: MeasuredRelay, count: int) -> list[float]:
    """Send comments while somebody pushes `count` new files. Returns the seconds until each was answered."""
    env = environment(base, relay.origin)
    folder, repo_id = make_linked_folder(api, base, env, "pushed")
    api.send(issues.CREATE, IssueCreate(title="talk"), id=repo_id)
    rng = random.Random(1)
    for number in range(count):
        path = folder / f"dir{number % 100}" / f"file{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"".join(b"line %d\n" % rng.getrandbits(32) for _ in range(30)))
    pushing = subprocess.Popen(
        [sys.executable, "-m", "svc", "push", "-m", "all"], cwd=folder, env=env, stdout=subprocess.DEVNULL
    )
    took = []
    while pushing.poll() is None:
        began = time.perf_counter()
        api.send(issues.COMMENT, CommentBody(body="and?"), id=repo_id, n="1")
        took.append(time.perf_counter() - began)
        time.sleep(0.55)  # a member may send 120 a minute
    if pushing.returncode:
        raise SystemExit("the push failed")
    svc(folder, env, "status")
    return sorted(took)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sockets", type=int, default=120)
    parser.add_argument("--events", type=int, default=100)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="svc-bench-") as folder,
        MeasuredRelay(Path(folder) / "relay") as relay,
    ):
        api, repo_id = signed_in(Path(folder), relay.origin)
        api.send(issues.CREATE, IssueCreate(title="heard"), id=repo_id)
        one = each(api, Path(folder), relay, repo_id, options.sockets, options.events)
        took = waits(api, Path(folder), relay, options.files)
    said = (
        f"An event costs {one:.0f} µs of the relay's CPU for each of {options.sockets} sockets "
        f"(≤{MOST_EACH:.0f} µs). While {options.files} new files are pushed, {len(took)} comments waited "
        f"{took[len(took) // 2] * 1000:.0f} ms (median), {took[-1] * 1000:.0f} ms at most "
        f"(≤{MOST_WAIT * 1000:.0f} ms)."
    )
    report.show("sockets", f"{said}\n\n{report.conditions()}", options.write)
    return 0 if one <= MOST_EACH and took[-1] <= MOST_WAIT else 1


if __name__ == "__main__":
    sys.exit(main())
