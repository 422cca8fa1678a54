"""Measures the memory for a large tree: peak RssAnon of client and relay in push and clone.

    python -m scripts.bench.memory [--gib 4] [--write]

Half of the tree is one large file, which is stored in chunks. The other half are files of 8 MiB. All bytes
are random. The tree is deleted once it is pushed, so that the disk holds it twice at most.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.bench.shared import report, trees
from scripts.bench.shared.cpu import Peak
from scripts.bench.shared.servers import relay_in
from scripts.bench.shared.sides import Svc

MIB = 1024 * 1024
AIMS = {"client": 300, "relay": 400}  # MB
Peaks = dict[str, dict[str, int]]


def make(folder: Path, mib: int) -> None:
    trees.binaries(folder, mib // 2)
    chance = random.Random(2)
    with (folder / "large.bin").open("wb") as file:
        for _ in range(mib // 2):
            file.write(chance.randbytes(MIB))


def peaks(svc: Svc, words: list[str], cwd: Path) -> dict[str, int]:
    """Run `svc WORDS`. Returns "client" or "relay" → its peak memory in bytes."""
    command = [sys.executable, "-P", "-m", "svc", *words]
    client = subprocess.Popen(command, cwd=cwd, env=svc.environment, stdout=subprocess.DEVNULL)
    with Peak({"client": client.pid, "relay": svc.pid}) as peak:
        code = client.wait()
    if code:
        raise RuntimeError(f"svc {' '.join(words)} ended with {code}")
    return peak.most


def measure(base: Path, gib: float) -> Peaks:
    folder, copy = base / "large", base / "copy"
    make(folder, int(gib * 1024))
    size = trees.stored_bytes(folder)
    with relay_in(base) as svc:
        svc.open(folder, "model")
        found = {"push": peaks(svc, ["push", "-m", "all"], folder)}
        shutil.rmtree(folder)
        found["clone"] = peaks(svc, ["repo", "clone", "bench/large", str(copy)], base)
    came = sum(path.stat().st_size for path in copy.glob("*.bin"))
    if came != size:
        raise RuntimeError(f"the clone has {came} bytes of {size}")
    return found


def format_figures(found: Peaks, gib: float) -> str:
    rows = [[work, *(_format_peak(name, sizes[name]) for name in AIMS)] for work, sizes in found.items()]
    heads = [f"{gib:g} GiB", *(f"{name} (aim)" for name in AIMS)]
    return f"{report.table(heads, rows)}\n\n{report.conditions()}"


def _format_peak(name: str, size: int) -> str:
    said = f"{size / 1e6:.0f} MB (≤{AIMS[name]})"
    return said if size <= AIMS[name] * 1e6 else f"**{said}**"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gib", type=float, default=4)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        found = measure(Path(folder), options.gib)
    report.show("memory", format_figures(found, options.gib), options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
