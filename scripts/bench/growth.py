"""Measures how costs grow with the number of files and the length of the history, for svc and git.

    python -m scripts.bench.growth [--files 1000 10000 100000] [--seals 10 100 1000] [--rounds 3] [--write]

Files have 1,000 bytes on average. The histories are those of a tree of 1,000 files, of which each seal
changes one. First push and clone are done once for each size; everything else is done `--rounds` times, and
the figures are medians. CPU is user and system time of client and server together. `--write` puts the tables
into docs/benchmarks.md and the picture into docs/growth.svg.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from scripts.bench.shared import chart, report, sealing, trees
from scripts.bench.shared.cpu import Cost
from scripts.bench.shared.servers import both
from scripts.bench.shared.sides import Side

MEAN, EDITED, SMALL = 1_000, 100, 1_000
REVISED = 10  # files that the seals of a history change in turns; the first is blamed
SLACK = 0.1  # of an exponent, for noise
PICTURE = report.PAGE.parent / "growth.svg"
BYTES = "relay bytes"
Values = dict[str, dict[str, dict[int, float]]]
"""work → side → size → CPU seconds, or MB."""


class Looker:
    """Measures every task with one tool, svc or git (`side`), for one size of the tree or the history. The
    costs are added to `values`."""

    def __init__(self, side: Side, folder: Path, size: int, rounds: int, values: Values) -> None:
        self.side, self.folder, self.size, self.rounds, self.values = side, folder, size, rounds, values
        self.copy = folder.parent / f"{folder.name}-copy-{size}"
        self.files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("module*.py"))

    def note(self, work: str, costs: Sequence[Cost]) -> None:
        cost = report.median(costs)
        print(f"{self.folder.name} at {self.size}: {work} {cost.cpu:.2f} s", flush=True)
        self.values[work][self.side.name][self.size] = cost.cpu

    def note_bytes(self, before: int) -> None:
        now = sum(self.side.measure_storage().values())
        self.values[BYTES][self.side.name][self.size] = (now - before) / 1e6

    def all(self) -> None:
        """Run every task except the first push: status, a push of edits, clone, pull, log and blame."""
        side, folder = self.side, self.folder
        turns = range(self.rounds)
        self.note("status", [side.status(folder) for _ in turns])
        self.note(f"push of {EDITED} edits", [self._push(EDITED, turn) for turn in turns])
        self.note("clone", [side.clone(folder, self.copy)])
        self.note("pull of one change", [self._pull(turn) for turn in turns])
        self.note("log, 30 newest", [side.log(folder) for _ in turns])
        self.note("blame of one file", [self._blame() for _ in turns])
        shutil.rmtree(self.copy)

    def _push(self, edits: int, turn: int) -> Cost:
        trees.edit_some(self.folder, edits, seed=self.size + turn)
        return self.side.push(self.folder)

    def _pull(self, turn: int) -> Cost:
        self._push(1, 100 + turn)
        return self.side.pull(self.copy)

    def _blame(self) -> Cost:
        self.side.forget()
        return self.side.blame(self.folder, self.files[0])


def by_files(base: Path, sides: list[Side], sizes: list[int], rounds: int) -> Values:
    values: Values = defaultdict(lambda: defaultdict(dict))
    for size in sizes:
        for side in sides:
            folder = base / f"{side.name}-files-{size}"
            trees.text_tree(folder, size, size * MEAN)
            before = sum(side.measure_storage().values())
            side.open(folder)
            at = Looker(side, folder, size, rounds, values)
            at.note("first push", [side.push_first(folder)])
            at.note_bytes(before)
            at.all()
            shutil.rmtree(folder)
    return values


def by_seals(base: Path, sides: list[Side], lengths: list[int], rounds: int) -> Values:
    values: Values = defaultdict(lambda: defaultdict(dict))
    for side in sides:
        folder = base / f"{side.name}-seals"
        trees.text_tree(folder, SMALL, SMALL * MEAN)
        before, done = sum(side.measure_storage().values()), 1
        side.open(folder)
        side.push_first(folder)
        for length in lengths:
            at = Looker(side, folder, length, rounds, values)
            sealing.make(side, folder, at.files[:REVISED], length - done, seed=length)
            at.note_bytes(before)
            at.all()
            done = length + 2 * rounds
    return values


def exponent(found: dict[int, float]) -> float:
    """The exponent with which the cost grew between the two largest sizes. 0 means that it did not grow, 1
    that it grew in proportion. `found`: size → cost."""
    one, two = sorted(found)[-2:]
    return math.log(found[two] / found[one]) / math.log(two / one)


def format_figures(title: str, values: Values) -> str:
    sizes = sorted(next(iter(values.values()))["svc"])
    n_log_n = 1 + math.log(math.log(sizes[-1]) / math.log(sizes[-2])) / math.log(sizes[-1] / sizes[-2])
    rows = []
    for work, found in values.items():
        row = [work]
        for name in ("svc", "git"):
            unit = "MB" if work == BYTES else "s"
            row += [f"{found[name][size]:.2f} {unit}" for size in sizes]
            grown = exponent(found[name])
            row.append(f"**{grown:.2f}**" if grown > n_log_n + SLACK else f"{grown:.2f}")
        rows.append(row)
    heads = [title, *(f"{name} {head}" for name in ("svc", "git") for head in [*_short(sizes), "exponent"])]
    said = f"The exponent is that of the last step; n log n would have {n_log_n:.2f} there."
    return f"{report.table(heads, rows)}\n\n{said}"


def _short(sizes: list[int]) -> list[str]:
    return [f"{size:,}" for size in sizes]


def panels(title: str, values: Values) -> list[chart.Panel]:
    found = []
    for work, sides in values.items():
        sizes = sorted(sides["svc"])
        lines = {name: [max(line[size], 0.001) for size in sizes] for name, line in sides.items()}
        found.append(chart.Panel(f"{work}, {'MB' if work == BYTES else 's'} by {title}", sizes, lines))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--seals", type=int, nargs="+", default=[10, 100, 1_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="put table and picture into docs")
    options = parser.parse_args()
    with both() as (base, sides):
        files = by_files(base, sides, options.files, options.rounds)
        seals = by_seals(base, sides, options.seals, options.rounds)
    text = [format_figures("files", files), format_figures("seals", seals), report.conditions()]
    report.show("growth", "\n\n".join(text), options.write)
    if options.write:
        PICTURE.write_text(chart.svg([*panels("files", files), *panels("seals", seals)]), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
