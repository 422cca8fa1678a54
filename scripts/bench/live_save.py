"""Measures the time from a save until the bytes are on another device's disk, with `svc watch` on both.

    python -m scripts.bench.live_save [--files 10000] [--saves 200] [--write]

A relay, two agents and this process share the machine. Each save appends a line to a random file. The time is
measured from the end of the save until the other folder has the bytes."""

from __future__ import annotations

import argparse
import os
import random
import select
import statistics
import tempfile
import time
from pathlib import Path

from localstore.watch.inotify import MOVED_TO, Inotify
from scripts.bench.shared import report
from scripts.live.devices import Device, pair_devices
from scripts.tour import start_relay

AIM = (0.025, 0.060)  # seconds, median and 95 in 100
PAUSE = 0.15  # between two saves
PATIENCE = 20.0


def tree(folder: Path, files: int) -> list[str]:
    """Write `files` text files, 100 in each folder. Returns their paths."""
    paths = []
    for number in range(files):
        path = f"d{number // 100:04}/f{number % 100:02}.txt"
        (folder / path).parent.mkdir(exist_ok=True, parents=True)
        (folder / path).write_text("".join(f"line {at} of {number}\n" for at in range(20)))
        paths.append(path)
    return paths


def measure(first: Device, second: Device, paths: list[str], saves: int, seed: int) -> list[float]:
    """Save `saves` times. Returns the seconds until each save was on the other device, in order."""
    chance, took = random.Random(seed), []
    for number in range(saves):
        path = chance.choice(paths)
        line = f"save {number}\n".encode()
        with_events = Inotify()
        folder = os.open((second.folder / path).parent, os.O_RDONLY | os.O_DIRECTORY)
        with_events.add(folder, MOVED_TO)
        os.close(folder)
        opened = os.open(first.folder / path, os.O_WRONLY | os.O_APPEND)
        os.write(opened, line)
        os.close(opened)
        began = time.monotonic()
        target = second.folder / path
        while not target.read_bytes().endswith(line):
            left = began + PATIENCE - time.monotonic()
            if left <= 0:
                raise SystemExit(f"save {number} of {path} did not arrive within {PATIENCE:g} s")
            select.select([with_events.fd], [], [], min(left, 1.0))
            list(with_events.events())
        took.append(time.monotonic() - began)
        with_events.close()
        time.sleep(PAUSE)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--saves", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        base = Path(made)
        relay, server = start_relay(base / "relay")
        try:
            first, second = pair_devices(base, server, lambda folder: tree(folder, given.files))
            paths = sorted(str(path.relative_to(first.folder)) for path in first.folder.glob("d*/*"))
            with first.watching(), second.watching():
                first.wait_for("live")
                second.wait_for("live")
                measure(first, second, paths, 5, given.seed + 1)  # warm
                took = sorted(measure(first, second, paths, given.saves, given.seed))
        finally:
            relay.terminate()
            relay.wait(20)
    p95 = took[max(0, -(-len(took) * 95 // 100) - 1)]
    median = statistics.median(took)
    heads = ["", "median (≤25 ms)", "p95 (≤60 ms)", "longest"]
    shown = [_against(median, AIM[0]), _against(p95, AIM[1]), f"{took[-1] * 1000:.0f} ms"]
    rows = [[f"{given.saves} saves in {given.files:,} files", *shown]]
    report.show("live_save", f"{report.table(heads, rows)}\n\n{report.conditions()}", given.write)


def _against(seconds: float, bar: float) -> str:
    shown = f"{seconds * 1000:.1f} ms"
    return shown if seconds <= bar else f"**{shown}**"


if __name__ == "__main__":
    main()
