"""Compares `svc blame` with `git blame` on the same history: one file of 10,000 lines, changed by 500 seals.

    python -m scripts.bench.blame [--rounds 5] [--lines 10000] [--seals 500] [--write]

The figures are CPU of client and relay together. Cold: the relay has cached nothing about this file, because
the relay's table of cached results is emptied before each round. Warm: blame ran before, then one more seal
was made. The results of svc and git are compared line by line.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from scripts.bench.shared import report, sealing
from scripts.bench.shared.cpu import Cost
from scripts.bench.shared.servers import both
from scripts.bench.shared.sides import Git, Side, Svc
from scripts.bench.shared.trees import real_text

FILE = "long.py"
COLD, WARM = "cold", "after one more seal"
AIM = 1.0
Figures = dict[tuple[str, str], list[Cost]]


def text(lines: int) -> bytes:
    found: list[bytes] = []
    for data in real_text(1):
        found += data.splitlines(keepends=True)
        if len(found) >= lines:
            return b"".join(found[:lines])
    raise AssertionError("real text has no end")


def same(svc: Svc, git: Git, folders: dict[str, Path]) -> None:
    """Raise RuntimeError unless blame by svc and by git divides the lines between seals and commits in the
    same way. `folders`: "svc" and "git" → the folder in which each runs."""
    words = [sys.executable, "-P", "-m", "svc", "blame", FILE, "--json", "seal_id"]
    ours = subprocess.run(words, cwd=folders["svc"], env=svc.environment, capture_output=True, check=True)
    owners = [row["seal_id"] for row in json.loads(ours.stdout)]
    said = subprocess.run(
        ["git", "blame", "-s", "--abbrev=39", FILE], cwd=folders["git"], capture_output=True, check=True
    )
    others = [line.split()[0].lstrip(b"^")[:39] for line in said.stdout.splitlines()]
    pairs = set(zip(owners, others, strict=True))
    if not len(pairs) == len(set(owners)) == len(set(others)):
        raise RuntimeError("svc and git blame different seals")


def measure(base: Path, sides: list[Side], lines: int, seals: int, rounds: int) -> Figures:
    folders = {side.name: base / f"{side.name}-blame" for side in sides}
    for side in sides:
        folder = folders[side.name]
        folder.mkdir()
        (folder / FILE).write_bytes(text(lines))
        side.open(folder)
        side.push_first(folder)
        sealing.make(side, folder, [FILE], seals, seed=1)
    figures: Figures = {(work, side.name): [] for work in (COLD, WARM) for side in sides}
    for number in range(rounds):
        for side in sides:
            side.forget()
        for work in (COLD, WARM):
            for side in sides:
                figures[work, side.name].append(side.blame(folders[side.name], FILE))
            if work == COLD:
                for side in sides:
                    sealing.make(side, folders[side.name], [FILE], 1, seed=100 + number)
    svc, git = sides
    if isinstance(svc, Svc) and isinstance(git, Git):
        same(svc, git, folders)
    return figures


def format_figures(figures: Figures) -> str:
    rows = []
    for work in (COLD, WARM):
        svc, git = (report.median(figures[work, name]) for name in ("svc", "git"))
        seconds = [f"{value:.2f} s" for value in (svc.cpu, git.cpu, svc.wall, git.wall)]
        cpu = report.against(svc.cpu / git.cpu, AIM)
        rows.append([work, *seconds[:2], cpu, *seconds[2:], report.against(svc.wall / git.wall, None)])
    heads = ["blame", "svc CPU", "git CPU", "ratio (aim)", "svc wall", "git wall", "ratio"]
    return f"{report.table(heads, rows)}\n\n{report.conditions()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--seals", type=int, default=500)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    options = parser.parse_args()
    with both() as (base, sides):
        figures = measure(base, sides, options.lines, options.seals, options.rounds)
    report.show("blame", format_figures(figures), options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
