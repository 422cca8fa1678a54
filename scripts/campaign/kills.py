"""Kills commands after each write to the file system: campaign/kills.py [STRIDE] [SCENARIO...].

Prints every failure, and for each scenario how many kills were tried. With STRIDE n a kill is tried after
every n-th write; the default 1 tries all. In the scenario `relay` the relay is killed instead, at 60 moments
of a push.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.campaign.conftest import Place
from tests.campaign.failures.kills import SCENARIOS
from tests.campaign.world import Broken, Node

FAILURES = 50  # of one scenario, after which the rest is not looked at


def main() -> int:
    words = sys.argv[1:]
    stride = int(words.pop(0)) if words and words[0].isdigit() else 1
    failed = 0
    with tempfile.TemporaryDirectory() as base:
        node = Node(Path(base), forks=True)
        try:
            for name in words or SCENARIOS:
                failed += walk(Path(base), node, name, stride)
        finally:
            node.close()
    return 1 if failed else 0


def walk(base: Path, node: Node, name: str, stride: int) -> int:
    """Run one scenario again and again, and kill it at another write each time: at every `stride`-th. After a
    failure it continues with a new account, repository and devices. Returns the number of failures."""
    points, failures, number, serial = 0, 0, 1, 0
    scenario = None
    while True:
        if scenario is None:
            serial += 1
            scenario = SCENARIOS[name](Place(base / f"{name}-{serial}", node, f"{name}-{serial}"))
        try:
            if not scenario.killed(number):
                break
        except Broken as error:
            failures += 1
            scenario = None
            sys.stdout.write(f"{name}: {error}\n")
            sys.stdout.flush()
            if failures == FAILURES:
                break
        points += 1
        number += stride
    sys.stdout.write(f"{name}: killed at {points} points, {failures} failed\n")
    sys.stdout.flush()
    return failures


if __name__ == "__main__":
    sys.exit(main())
