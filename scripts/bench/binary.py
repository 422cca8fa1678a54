"""Compares svc with git-lfs, hf_xet, borg and restic: a large binary and its second version.

    python -m scripts.bench.binary [--mib 512] [--rounds 5] [--alone] [--write]

The second version has one more byte at the beginning and 20 small edits. CPU is user and system time of the
process trees of client and server together. svc is the real command against a real relay, signed and
verified; `scripts/bench/peers.py` describes the other tools. The stored bytes are the size of the files in
which each tool stores the data: packs, chunks or segments; for svc also the database. All tools take turns;
the figures are medians.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from scripts.bench import peers
from scripts.bench.peers import FILE, Peer
from scripts.bench.shared import report
from scripts.bench.shared.cpu import Cost
from scripts.bench.shared.servers import relay_in
from scripts.bench.shared.sides import Svc
from scripts.bench.shared.trees import stored_bytes

MIB = 1024 * 1024
FIRST, SECOND, CLONE = "first push", "second push", "clone"
Figures = dict[tuple[str, str], list[tuple[Cost, int]]]
CPU_AIMS = {(FIRST, "hf_xet"): 1.0, (SECOND, "hf_xet"): 1.5, (SECOND, "git-lfs"): 0.2}
BYTES_AIMS = {(SECOND, "hf_xet"): 1.1, (SECOND, "git-lfs"): 1 / 200}


def first(path: Path, mib: int, seed: int) -> None:
    """Write a file of `mib` MiB of random bytes, which cannot be compressed."""
    source = random.Random(seed)
    with path.open("wb") as file:
        for _ in range(mib):
            file.write(source.randbytes(MIB))


def second(path: Path, seed: int) -> None:
    """Insert one byte at the beginning of the file, and change 16 bytes at each of 20 positions."""
    source = random.Random(-seed)
    data = bytearray(b"!") + path.read_bytes()
    for _ in range(20):
        at = source.randrange(len(data) - 16)
        data[at : at + 16] = source.randbytes(16)
    path.write_bytes(data)


class OurSide:
    name = "svc"

    def __init__(self, svc: Svc) -> None:
        self.svc = svc

    def open(self, folder: Path) -> None:
        self.svc.open(folder, "model")

    def push(self, folder: Path) -> Cost:
        return self.svc.push(folder)

    def clone(self, folder: Path) -> Cost | None:
        target = self.svc.base / f"{folder.name}-clone"
        cost = self.svc.clone(folder, target)
        if (target / FILE).read_bytes() != (folder / FILE).read_bytes():
            raise RuntimeError("the clone is another file")
        shutil.rmtree(target)
        return cost


Side = OurSide | Peer


def count_stored_bytes(side: Side) -> int:
    return sum(side.svc.measure_storage().values()) if isinstance(side, OurSide) else stored_bytes(side.store)


def measure(side: Side, base: Path, mib: int, seed: int, figures: Figures) -> None:
    folder = base / f"{side.name}-{seed}"
    folder.mkdir()
    side.open(folder)
    first(folder / FILE, mib, seed)
    for work, prepare in ((FIRST, None), (SECOND, second)):
        if prepare is not None:
            prepare(folder / FILE, seed)
        before = count_stored_bytes(side)
        cost = side.push(folder)
        figures[work, side.name].append((cost, count_stored_bytes(side) - before))
    cloned = side.clone(folder)
    if cloned is not None:
        figures[CLONE, side.name].append((cloned, 0))
    shutil.rmtree(folder)


def format_figures(figures: Figures) -> str:
    rows = []
    for (work, name), found in figures.items():
        cost, stored = _middle(found)
        ours, our_bytes = _middle(figures[work, "svc"])
        row = [work, name, f"{cost.cpu:.2f} s", "", f"{cost.wall:.2f} s", "", ""]
        if name != "svc":
            row[3] = report.against(ours.cpu / cost.cpu, CPU_AIMS.get((work, name)))
        if stored:
            row[5] = report.megabytes(stored)
            if name != "svc":
                row[6] = report.against(our_bytes / stored, BYTES_AIMS.get((work, name)))
        rows.append(row)
    heads = ["work", "by", "CPU", "svc to it (aim)", "wall", "stored", "svc to it (aim)"]
    return f"{report.table(heads, rows)}\n\n{report.conditions()}"


def _middle(found: list[tuple[Cost, int]]) -> tuple[Cost, int]:
    sizes = sorted(size for _, size in found)
    return report.median(cost for cost, _ in found), sizes[len(sizes) // 2]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--alone", action="store_true", help="without the peers")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    options = parser.parse_args()
    figures: Figures = defaultdict(list)
    with contextlib.ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="svc-bench-")))
        sides: list[Side] = [OurSide(stack.enter_context(relay_in(base)))]
        if not options.alone:
            python = peers.install()
            pid, url = stack.enter_context(peers.lfs_server(python, base / "lfs"))
            sides += [peers.LfsSide(base, url, pid, base / "lfs"), peers.XetSide(base, python)]
            sides += [peers.BorgSide(base), peers.ResticSide(base)]
        for number in range(1, options.rounds + 1):
            for side in sides:
                measure(side, base, options.mib, number, figures)
    report.show("binary", format_figures(figures), options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
