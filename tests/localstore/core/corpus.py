"""Real program text and plausible edits of it, the same on every run of one Python version."""

from __future__ import annotations

import random
import sysconfig
from pathlib import Path

NAMES = [
    "argparse",
    "bisect",
    "calendar",
    "cmd",
    "copy",
    "csv",
    "fnmatch",
    "heapq",
    "queue",
    "shlex",
    "textwrap",
]


def programs() -> list[list[bytes]]:
    """The lines of some modules of the standard library."""
    folder = Path(sysconfig.get_path("stdlib"))
    return [(folder / f"{name}.py").read_bytes().splitlines(keepends=True) for name in NAMES]


def edited(rng: random.Random, lines: list[bytes], pool: list[bytes], times: int) -> list[bytes]:
    """`lines` after `times` random deletions, insertions from `pool`, repetitions, touches, replacements."""
    lines = list(lines)
    for _ in range(times):
        at, size = rng.randrange(len(lines) + 1), rng.randrange(1, 8)
        start = rng.randrange(len(pool))
        match rng.randrange(5):
            case 0:
                del lines[at : at + size]
            case 1:
                lines[at:at] = pool[start : start + size]
            case 2:
                lines[at:at] = lines[start : start + size]
            case 3:
                lines[at : at + 1] = [line.replace(b"e", b"E") for line in lines[at : at + 1]]
            case _:
                lines[at : at + size] = pool[start : start + size]
    return lines
