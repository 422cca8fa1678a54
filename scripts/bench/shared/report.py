"""Writes figures as Markdown tables into docs/benchmarks.md.

A script's table is between `<!-- NAME -->` and `<!-- /NAME -->`, so that each script replaces only its own
figures.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from scripts.bench.shared.cpu import Cost

PAGE = Path(__file__).resolve().parents[3] / "docs" / "benchmarks.md"


def median(costs: Iterable[Cost]) -> Cost:
    """The median of the CPU times and the median of the wall times."""
    found = list(costs)
    return Cost(statistics.median(c.cpu for c in found), statistics.median(c.wall for c in found))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def against(ratio: float, most: float | None) -> str:
    """A ratio as text, with the limit that it must not exceed: `0.30× (≤0.33×)`; bold if it exceeds the
    limit."""
    if most is None:
        return f"{ratio:.2f}×"
    said = f"{ratio:.2f}× (≤{most:.2g}×)"
    return said if ratio <= most else f"**{said}**"


def megabytes(size: float) -> str:
    return f"{size / 1e6:.2f} MB"


def conditions(python: str = sys.executable) -> str:
    """A sentence about the conditions of a measurement: the commit, the version of Python, and the load of
    the machine at the end."""
    commit = _run_command("git", "rev-parse", "--short", "HEAD")
    version = _run_command(python, "--version")
    load = os.getloadavg()[2]
    return f"Commit {commit}; {version}; load of the machine at the end {load:.1f} on {os.cpu_count()} cores."


def _run_command(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, cwd=PAGE.parent, check=True).stdout.strip()


def show(name: str, text: str, write: bool) -> None:
    """Print the figures in `text`. `write`: also put them into the part `name` of docs/benchmarks.md."""
    print(f"\n{text}", flush=True)
    if write:
        PAGE.write_text(replace_part(PAGE.read_text("utf-8"), name, text), "utf-8")


def replace_part(page: str, name: str, text: str) -> str:
    """The text of the page with the part called `name` replaced by `text`. Raises ValueError unless there is
    exactly one part of this name."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    pattern = re.compile(f"({re.escape(begin)}).*?({re.escape(end)})", re.DOTALL)
    changed, count = pattern.subn(lambda found: f"{found[1]}{text}\n{found[2]}", page)
    if count != 1:
        raise ValueError(f"the page has {count} places called {name}; it needs one")
    return changed
