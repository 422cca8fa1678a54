"""Play random histories against the real client and the real relay, for as long as asked.

    python -m scripts.campaign_real --seconds 600 --seed 1 --devices 3

Prints each failure with the commands that led to it, keeps its folders, and ends with 1 if there was one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.campaign.history import Figures, play
from tests.campaign.world import Node


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--devices", type=int, default=3, help="the last of three or more is another account")
    parser.add_argument("--acts", type=int, default=30, help="commands in a history")
    asked = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="svc-campaign-"))
    total = Figures()
    node = Node(base)
    end = time.monotonic() + asked.seconds
    try:
        while time.monotonic() < end:
            seed = asked.seed + total.histories
            played = play(node, base, seed, asked.devices, asked.acts, total.histories)
            for failure in played.failures:
                print(failure, flush=True)
            total.add(played)
    finally:
        node.close()
    print(
        f"{total.histories} histories, {total.commands} commands ({total.refused} refused), "
        f"{total.words} edits, {total.conflicts} conflict copies, {total.seals} seals, "
        f"{total.client_kills} clients killed, "
        f"{total.relay_kills} relays killed, {total.cuts} connections cut, "
        f"{len(total.failures)} failures; {base}"
    )
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
