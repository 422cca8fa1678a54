"""Plays many random histories of several devices: campaign/histories.py FIRST COUNT [DEVICES [TYPING]].
FIRST: the first seed. COUNT: the number of seeds. TYPING: the share of live edits that are sent as typed
edits, from 0 to 1. Prints the seeds that failed."""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.localstore.histories import play


def main() -> int:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    devices = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    typing = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0
    began, failed = time.monotonic(), 0
    total: Counter[str] = Counter()
    for seed in range(first, first + count):
        try:
            world = play(seed, devices, typing=typing)
            total["words"] += world.count
            total["merges"] += world.merges
            total["conflicts"] += world.clashes
            total["typed updates"] += world.relay.typed
            total["words torn by typing"] += world.tears
        except BaseException:
            failed += 1
            sys.stdout.write(f"seed {seed}\n")
            traceback.print_exc(limit=-4)
    figures = ", ".join(f"{number} {name}" for name, number in total.items())
    sys.stdout.write(f"{count} histories, {failed} failed, {figures}, {time.monotonic() - began:.0f} s\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
