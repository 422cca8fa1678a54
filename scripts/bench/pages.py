"""Measures what a web page costs the relay: CPU of its process tree for a request, and bytes sent.

    python -m scripts.bench.pages [--files 100000] [--requests 100] [--write]

A public repository is read without a session, one request after the other, over a connection that stays open,
with gzip. "first" is the first request for a page after the start of the relay; the other figures are means.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import httpx

from scripts.bench.shared import report
from scripts.bench.shared.cpu import Cost, serving
from scripts.bench.shared.servers import relay_in

FOLDERS = 100
WARM_UP = 10  # requests that are not counted
AIM = 4.0  # milliseconds, without new rendering
SOURCE = Path(__file__).parents[2] / "relay" / "caller.py"
PAGES = {
    "overview": "/lib/bench/paged/dev",
    "root of the repository": "/lib/bench/paged/dev?tab=code",
    "one of its folders": "/lib/bench/paged/dev?tab=code&path=d001",
    "file of 400 lines": "/lib/bench/paged/dev?tab=code&path=file.py",
    "issues, none": "/lib/bench/paged/dev?tab=issues",
}


def fill(folder: Path, files: int) -> None:
    """Write `files` small files into FOLDERS folders, a README, and a source file of 400 lines."""
    for number in range(files):
        path = folder / f"d{number % FOLDERS:03}" / f"f{number // FOLDERS:05}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n", "utf-8")
    (folder / "README.md").write_text("# Paged\n\nA *repository* of [files](file.py).\n", "utf-8")
    lines = SOURCE.read_text("utf-8").splitlines()
    (folder / "file.py").write_text("\n".join((lines * 2)[:400]) + "\n", "utf-8")


def measure(base: Path, files: int, requests: int) -> list[list[str]]:
    """Measure each page. Returns a row for each: its name, CPU milliseconds of the first request, mean CPU
    milliseconds of later requests, bytes."""
    folder = base / "paged"
    folder.mkdir()
    fill(folder, files)
    rows = []
    with relay_in(base) as svc:
        svc.open(folder)
        svc.run("push", "-m", "First", cwd=folder)
        svc.run("repo", "visibility", "public", "--yes", cwd=folder)
        with httpx.Client(base_url=svc.environment["SVC_SERVER"], trust_env=False, timeout=60) as http:
            for name, address in PAGES.items():
                first, later = Cost(), Cost()
                with serving(svc.pid, first):
                    http.get(address).raise_for_status()
                for _ in range(WARM_UP):
                    http.get(address)
                with serving(svc.pid, later):
                    for _ in range(requests):
                        answer = http.get(address)
                each = later.cpu * 1000 / requests
                size = answer.headers["content-length"]
                rows.append([name, f"{first.cpu * 1000:.0f} ms", f"{each:.1f} ms", f"{each / AIM:.2f}", size])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        rows = measure(Path(folder), options.files, options.requests)
    heads = ["", "first", "each", f"of {AIM:.0f} ms", "bytes"]
    report.show("pages", f"{report.table(heads, rows)}\n\n{report.conditions()}", options.write)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
