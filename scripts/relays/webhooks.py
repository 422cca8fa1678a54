"""Runs 100 webhooks, some of them broken: one has no server, one hangs, one answers byte by byte and one
answers 1 GiB. Measures how soon the others get their messages, and checks what is lost when the relay is
killed.

    python -m scripts.relays.webhooks --rounds 5 --kills 5

In each round an issue is opened in every repository. In the second part the relay is killed (SIGKILL) during
deliveries and started again. Each webhook that answers must have each event in the end, under the same id.
The exit code is 1 if a message took longer than two seconds (MOST), or an event is missing.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

from tests.campaign.world import Machine, Node
from tests.relay.receiver import Received, Receiver, receiving

MOST = 2.0  # seconds in which whoever answers has its message
AWAKE = 180.0  # seconds in which what a dead relay held is sent again
BAD = ("hang", "drip", "giant", "dead")
OWNER, REPOS, EACH = "hook-owner", 5, 20


class WebhookOwner:
    """An account with five repositories of twenty webhooks each."""

    def __init__(self, base: Path, node: Node, target: Receiver) -> None:
        self.node, self.target = node, target
        self.machine = Machine(base, "owner", self.node)
        self.machine.ok("login", "--server", self.node.address, "--device-key", "--handle", OWNER)
        self.good: dict[str, list[str]] = {}
        for n in range(REPOS):
            self.machine.ok("repo", "create", f"r{n}", "--public")
            self.good[f"r{n}"] = [self._hook(n, m) for m in range(EACH)]
        self.good["r0"] = self.good["r0"][len(BAD) :]

    def _hook(self, n: int, m: int) -> str:
        """Create webhook `m` of repository `n`. Returns its path at the receiver. The first webhooks of the
        first repository are the broken ones."""
        how = BAD[m] if n == 0 and m < len(BAD) else "ok"
        path = f"/{how}/r{n}/{m}"
        url = f"http://127.0.0.1:9{path}" if how == "dead" else self.target.url + path
        self.machine.ok("repo", "webhook", "create", url, "--events", "issue", "-R", f"{OWNER}/r{n}")
        return path

    def happen(self) -> None:
        """Open an issue in each repository."""
        for name in self.good:
            self.machine.ok("issue", "create", "-t", "x", "-R", f"{OWNER}/{name}")

    def events(self) -> dict[str, set[str]]:
        """Name of the repository → ids of the events of its issues."""
        found: dict[str, set[str]] = {name: set() for name in self.good}
        rows = self.node.rows(
            "SELECT event.id, repo.name FROM event JOIN repo ON repo.id = event.repo_id "
            "WHERE event.kind = 'issue.create'"
        )
        for event, name in rows:
            found[name].add(str(event))
        return found

    def lacking(self) -> int:
        """The number of messages that have not come yet."""
        come: dict[str, set[str]] = {}
        for one in list(self.target.received):
            come.setdefault(one.path, set()).add(one.headers["webhook-id"])
        return sum(
            len(events - come.get(path, set()))
            for name, events in self.events().items()
            for path in self.good[name]
        )

    def wait(self, seconds: float) -> int:
        """Wait until all messages have come, at most `seconds`. Returns the number of missing messages."""
        until = time.monotonic() + seconds
        while (left := self.lacking()) and time.monotonic() < until:
            time.sleep(0.1)
        return left


def late(one: Received) -> float:
    """Seconds from the event until the message arrived."""
    return one.at - datetime.fromisoformat(one.message["timestamp"]).timestamp()


def soon(owner: WebhookOwner, rounds: int) -> bool:
    """Run the rounds without kills. Returns whether every webhook that answers got its messages in time."""
    owner.target.received.clear()
    for _ in range(rounds):
        owner.happen()
        if left := owner.wait(30):
            print(f"{left} messages did not come")
            return False
        time.sleep(0.5)
    taken = sorted(late(one) for one in owner.target.of("/ok") if one.message["type"] == "issue")
    print(
        f"{len(taken)} messages in {rounds} rounds: the median after {taken[len(taken) // 2]:.2f} s, "
        f"the last after {taken[-1]:.2f} s"
    )
    return taken[-1] <= MOST


def none_lost(owner: WebhookOwner, kills: int, seed: int) -> bool:
    """Kill the relay `kills` times. Returns whether each event reached each webhook that answers."""
    chance = random.Random(seed)  # no secret
    for _ in range(kills):
        owner.happen()
        time.sleep(chance.uniform(0, 0.15))
        owner.node.kill()
        owner.node.start()
    left = owner.wait(AWAKE)
    issues = [one for one in owner.target.of("/ok") if one.message["type"] == "issue"]
    seen = Counter((one.path, one.headers["webhook-id"]) for one in issues)
    twice = sum(1 for count in seen.values() if count > 1)
    print(f"{kills} kills: {len(seen)} messages, {left} lost, {twice} came more than once")
    return not left


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, receiving() as target:
        node = Node(Path(folder))
        try:
            owner = WebhookOwner(Path(folder), node, target)
            in_time = soon(owner, options.rounds)
            whole = none_lost(owner, options.kills, options.seed)
        finally:
            node.close()
    return 0 if in_time and whole else 1


if __name__ == "__main__":
    sys.exit(main())
