"""Compares svc with git over HTTP on source trees, for the tasks that have a target ratio.

    python -m scripts.bench.source_trees [--rounds 5] [--files 10000] [--many 100000] [--python P] [--write]

On a tree of 97 MB in 10,000 text files it measures the first push, the bytes stored, a push of 100 edits, and
a clone. On a tree of 100,000 files it measures status in a new process each time: with nothing changed, the
same with svc's watcher, and with a few files edited. Both tools take turns, and the figures are medians. CPU
is user and system time of client, server and watcher together. Both servers are on loopback.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections import defaultdict
from pathlib import Path

from scripts.bench.shared import report, trees
from scripts.bench.shared.cpu import Cost, serving
from scripts.bench.shared.servers import both
from scripts.bench.shared.sides import Side, Svc

Figures = dict[str, dict[str, list[Cost]]]
Bytes = dict[str, list[dict[str, int]]]
EDITED = 100
MEAN = 9_700  # bytes of a file: 97 MB in 10,000
MANY_MEAN = 1_000  # bytes of each of the 100,000 files whose status is asked
FEW = 10  # files edited between two statuses
FIRST, EDITS, CLONE, STATUS = "first push", "push of 100 edits", "clone", "status, nothing changed"
WATCHED, FEW_WATCHED = f"{STATUS}, watcher running", f"status, {FEW} edited, watcher running"
AIMS = {
    FIRST: 1 / 3,
    EDITS: 1.6,
    CLONE: 1.2,
    STATUS: 2.5,
    WATCHED: 1.0,
    FEW_WATCHED: None,
}  # CPU, as a ratio to git
WALL_AIMS = {CLONE: 1.2}
STORED_AIM = 1.0


def one_round(side: Side, number: int, tree: Path, base: Path, figures: Figures, kept: Bytes) -> None:
    """Run each task once with one tool. Its costs are added to `figures`, and the bytes that it stores to
    `kept`. No files are deleted before the end of the run, because ext4 creates files slowly for minutes
    after a deletion. That would add up to two seconds to a clone."""
    folder, copy = base / f"{side.name}-{number}", base / f"{side.name}-{number}-clone"
    shutil.copytree(tree, folder)
    side.open(folder)
    before = side.measure_storage()
    figures[FIRST][side.name].append(side.push_first(folder))
    kept[side.name].append({name: size - before[name] for name, size in side.measure_storage().items()})
    trees.edit_some(folder, EDITED)
    figures[EDITS][side.name].append(side.push(folder))
    figures[CLONE][side.name].append(side.clone(folder, copy))


def many(sides: list[Side], files: int, rounds: int, base: Path, figures: Figures) -> None:
    for side in sides:
        trees.text_tree(base / f"{side.name}-many", files, files * MANY_MEAN)
        side.open(base / f"{side.name}-many")
        side.push_first(base / f"{side.name}-many")
        side.status(base / f"{side.name}-many")  # git refreshes what was written within the index's second
    for _ in range(rounds):
        for side in sides:
            figures[STATUS][side.name].append(side.status(base / f"{side.name}-many"))
    svc, git = sides
    if not isinstance(svc, Svc):
        raise TypeError(svc)
    with svc.watching(base / "svc-many") as watcher:
        svc.status(base / "svc-many")  # the first one goes everywhere
        for number in range(rounds):
            for side in sides:
                figures[WATCHED][side.name].append(side.status(base / f"{side.name}-many"))
            for side in sides:
                heard = Cost()
                with serving(watcher if side is svc else git.pid, heard):
                    trees.edit_some(base / f"{side.name}-many", FEW, seed=number)
                cost = side.status(base / f"{side.name}-many")
                figures[FEW_WATCHED][side.name].append(Cost(heard.cpu + cost.cpu, cost.wall))


def format_figures(figures: Figures, kept: Bytes, files: dict[str, int], python: str) -> str:
    rows = []
    for work, found in figures.items():
        svc, git = report.median(found["svc"]), report.median(found["git"])
        cpu = report.against(svc.cpu / git.cpu, AIMS[work])
        wall = report.against(svc.wall / git.wall, WALL_AIMS.get(work))
        seconds = [f"{value:.2f} s" for value in (svc.cpu, git.cpu, svc.wall, git.wall)]
        rows.append([f"{work}, {files[work]:,} files", *seconds[:2], cpu, *seconds[2:], wall])
    heads = ["work", "svc CPU", "git CPU", "ratio (aim)", "svc wall", "git wall", "ratio"]
    return "\n\n".join([report.table(heads, rows), describe_storage(kept), report.conditions(python)])


def describe_storage(kept: Bytes) -> str:
    """A sentence with the bytes that svc and git store, and what these bytes consist of. For each tool they
    are the median of the rounds."""
    svc, git = (sorted(kept[name], key=_all)[len(kept[name]) // 2] for name in ("svc", "git"))
    ratio = report.against(_all(svc) / _all(git), STORED_AIM)
    packs = report.against(svc["packs"] / _all(git), None)
    parts = " + ".join(f"{name} {report.megabytes(size)}" for name, size in svc.items())
    return (
        f"Stored by the first push: svc {report.megabytes(_all(svc))} ({parts}), "
        f"git {report.megabytes(_all(git))} of objects before gc: {ratio}; packs alone {packs}."
    )


def _all(sizes: dict[str, int]) -> int:
    return sum(sizes.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--many", type=int, default=100_000, help="files whose status is asked; 0: none")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    parser.add_argument(
        "--python", metavar="P", default=sys.executable, help="the Python that svc and its relay run on"
    )
    options = parser.parse_args()
    figures: Figures = defaultdict(lambda: defaultdict(list))
    kept: Bytes = defaultdict(list)
    with both(options.python) as (base, sides):
        for number in range(options.rounds):
            # Texts of its own for each round: svc stores once what several repositories hold.
            tree = base / f"tree-{number}"
            trees.text_tree(tree, options.files, options.files * MEAN, seed=number + 1)
            for side in sides:
                one_round(side, number, tree, base, figures, kept)
        if options.many:
            many(sides, options.many, options.rounds, base, figures)
    counts = dict.fromkeys((FIRST, EDITS, CLONE), options.files)
    counts |= dict.fromkeys((STATUS, WATCHED, FEW_WATCHED), options.many)
    report.show("source_trees", format_figures(figures, kept, counts, options.python), options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
