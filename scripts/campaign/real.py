"""Plays random histories with the real client and the real relay for a given time.

    python -m scripts.campaign.real --seconds 600 --seed 1 --devices 3
    TMPDIR=/dev/shm python -m scripts.campaign.real --seconds 3600 --histories 300 --devices 2 --workers 2

Each of n workers has one relay for all its histories, and plays every n-th seed. Commands wait mostly for the
disk, so a folder in memory halves the time. The results are the same there, because only processes are killed
and the power stays on. Prints each failure with the commands that led to it, keeps the folders of failures,
and exits with 1 if there was one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tests.campaign.history import Figures, play
from tests.campaign.world import Node


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60, help="after which no history begins")
    parser.add_argument("--histories", type=int, default=sys.maxsize, help="play no more than so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--devices", type=int, default=3, help="the last of three or more is another account")
    parser.add_argument("--acts", type=int, default=30, help="commands in a history")
    parser.add_argument("--workers", type=int, default=1, help="processes that play side by side")
    asked = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="svc-campaign-"))
    began = time.monotonic()
    total = Figures()
    with ProcessPoolExecutor(asked.workers, multiprocessing.get_context("fork")) as pool:
        for done in as_completed([pool.submit(_work, asked, base, n) for n in range(asked.workers)]):
            total.add(done.result())
    print(
        f"{total.histories} histories, {total.commands} commands ({total.refused} refused), "
        f"{total.words} edits, {total.conflicts} conflict copies, {total.seals} seals, "
        f"{total.client_kills} clients killed, "
        f"{total.relay_kills} relays killed, {total.cuts} connections cut, "
        f"{len(total.failures)} failures, {time.monotonic() - began:.0f} s; {base}"
    )
    return 1 if total.failures else 0


def _work(asked: argparse.Namespace, base: Path, number: int) -> Figures:
    """Play every n-th history, beginning with `number`, where n is `asked.workers`. Returns the figures."""
    base = base / f"worker-{number}"
    base.mkdir()
    total = Figures()
    node = Node(base, forks=True)
    end = time.monotonic() + asked.seconds
    try:
        serial = number
        while time.monotonic() < end and serial < asked.histories:
            played = play(node, base, asked.seed + serial, asked.devices, asked.acts, serial)
            for failure in played.failures:
                print(failure, flush=True)
            total.add(played)
            serial += asked.workers
            if played.failures:
                node.kill()
                node.start()
    finally:
        node.close()
    return total


if __name__ == "__main__":
    sys.exit(main())
