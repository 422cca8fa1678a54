"""Makes a history of many small edits, each sealed (svc) or committed (git). As a program it seals the edits
in one process, in a linked folder:

python -m scripts.bench.shared.sealing COUNT SEED PATH…
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from scripts.bench.shared.sides import Side, Svc
from svc.cmd.frame.app import run

PLACES = 10  # of a revision: as many lines replaced, inserted or deleted, in turns


def revise(path: Path, chance: random.Random) -> None:
    """Change some random lines of the file."""
    lines = path.read_bytes().splitlines(keepends=True)
    for number in range(PLACES):
        at = chance.randrange(len(lines)) if lines else 0
        line = f"# {chance.randrange(10**12)} was written here\n".encode()
        if number % 3 == 0:
            lines[at : at + 1] = [line]
        elif number % 3 == 1:
            lines.insert(at, line)
        else:
            del lines[at : at + 1]
    path.write_bytes(b"".join(lines))


def revisions(folder: Path, paths: list[str], count: int, seed: int) -> Iterator[int]:
    """Edit the files in turn, and yield the number of each edit after making it. The same seed always makes
    the same edits."""
    chance = random.Random(seed)
    for number in range(count):
        revise(folder / paths[number % len(paths)], chance)
        yield number


def make(side: Side, folder: Path, paths: list[str], count: int, seed: int) -> None:
    """Make `count` edits and seal each. For git each edit is committed, and all commits are pushed at
    once."""
    if isinstance(side, Svc):
        side.python("scripts.bench.shared.sealing", str(count), str(seed), *paths, cwd=folder)
        return
    for _ in revisions(folder, paths, count, seed):
        side.run("commit", "-qam", "revised", cwd=folder)
    side.run("push", "-q", "origin", "main", cwd=folder)


def main() -> int:
    count, seed, *paths = sys.argv[1:]
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        for number in revisions(Path.cwd(), paths, int(count), int(seed)):
            if code := run(["push", "-m", f"revised {number}"]):
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
