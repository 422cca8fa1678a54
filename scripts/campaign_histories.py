"""Play many random histories of several devices: campaign_histories.py FIRST COUNT. Failures print seeds."""

from __future__ import annotations

import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.localstore.histories import play


def main() -> int:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    began, failed = time.monotonic(), 0
    for seed in range(first, first + count):
        try:
            play(seed)
        except BaseException:
            failed += 1
            sys.stdout.write(f"seed {seed}\n")
            traceback.print_exc(limit=-4)
    sys.stdout.write(f"{count} histories, {failed} failed, {time.monotonic() - began:.0f} s\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
