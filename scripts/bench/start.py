"""Measures the CPU of starting svc: `svc --version` and a read over the network, compared with a Python that
does nothing.

    python -m scripts.bench.start [--rounds 25] [--write]

The figures are CPU of the client alone, with bytecode caches. The three commands take turns, and the figures
are medians.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from scripts.bench.shared import report
from scripts.bench.shared.cpu import Cost, run
from scripts.bench.shared.servers import relay_in

BARE = "python -c pass"
AIMS = {"svc --version": 8.0, "svc repo list": 20.0}
Figures = dict[str, list[Cost]]


def commands() -> dict[str, list[str]]:
    svc = [sys.executable, "-P", "-m", "svc"]
    return {BARE: [sys.executable, "-c", "pass"]} | {name: svc + name.split()[1:] for name in AIMS}


def measure(base: Path, rounds: int) -> Figures:
    figures: Figures = {name: [] for name in commands()}
    with relay_in(base) as svc:
        for number in range(rounds + 1):
            for name, words in commands().items():
                cost = run(words, base, svc.environment)
                if number:  # the first round fills the caches
                    figures[name].append(cost)
    return figures


def format_figures(figures: Mapping[str, list[Cost]]) -> str:
    bare = report.median(figures[BARE])
    rows = [[BARE, f"{bare.cpu * 1000:.1f} ms", ""]]
    for name, most in AIMS.items():
        cost = report.median(figures[name])
        rows.append([name, f"{cost.cpu * 1000:.1f} ms", report.against(cost.cpu / bare.cpu, most)])
    return f"{report.table(['', 'CPU', 'ratio (aim)'], rows)}\n\n{report.conditions()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        figures = measure(Path(folder), options.rounds)
    report.show("start", format_figures(figures), options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
