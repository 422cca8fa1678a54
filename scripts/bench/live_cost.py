"""Measures what a save, a seal and idle time cost the agents of `svc watch`: CPU, wake-ups and memory.

    python -m scripts.bench.live_cost [--files 1000 10000] [--saves 20] [--rest 60] [--write]

Two devices watch one branch. CPU is that of the agent's process, on the device that saves and on the other
device. A cost that grows with the folder shows work over the whole tree. During the idle time both folders
are watched and nothing happens. A wake-up is a voluntary context switch of any thread."""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from scripts.bench.live_save import tree
from scripts.bench.shared import report
from scripts.live.devices import Device, pair_devices
from scripts.tour import start_relay

TICK = os.sysconf("SC_CLK_TCK")
PATIENCE = 60.0
CALM = 3.0  # seconds after which nothing follows any more


def cpu(device: Device) -> float:
    """The CPU seconds that the device's agent has used."""
    words = Path(f"/proc/{device.agent_pid()}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICK


def wakeups(device: Device) -> int:
    """The number of voluntary context switches of all threads of the device's agent so far."""
    tasks = Path(f"/proc/{device.agent_pid()}/task").iterdir()
    lines = [line for task in tasks for line in (task / "status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


def memory(device: Device) -> int:
    """The anonymous resident memory of the agent in bytes."""
    lines = Path(f"/proc/{device.agent_pid()}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def await_arrival(first: Device, second: Device, path: str) -> None:
    wanted, until = (first.folder / path).read_bytes(), time.monotonic() + PATIENCE
    while not (second.folder / path).exists() or (second.folder / path).read_bytes() != wanted:
        if time.monotonic() > until:
            raise SystemExit(f"{path} did not arrive within {PATIENCE:g} s")
        time.sleep(0.005)


def cost(devices: tuple[Device, Device], times: int, act: Callable[[int], None]) -> list[float]:
    """Call `act` `times` times. Returns the CPU milliseconds that one call costs each agent."""
    before = [cpu(device) for device in devices]
    for number in range(times):
        act(number)
    time.sleep(CALM)
    return [(cpu(device) - old) * 1000 / times for device, old in zip(devices, before, strict=True)]


def measure_costs(files: int, saves: int, rest: float) -> list[list[str]]:
    chance = random.Random(files)
    rows = []
    with tempfile.TemporaryDirectory(prefix="svc-cost-") as made:
        relay, server = start_relay(Path(made) / "relay")
        try:

            def fill(folder: Path) -> None:
                tree(folder, files)
                for number in range(saves):
                    (folder / f"d0000/b{number}.bin").write_bytes(chance.randbytes(50_000))

            first, second = devices = pair_devices(Path(made), server, fill)
            paths = sorted(str(path.relative_to(first.folder)) for path in first.folder.glob("d*/f*"))
            with first.watching(), second.watching():
                first.wait_for("live")
                second.wait_for("live")

                def text(number: int) -> None:
                    path = chance.choice(paths)
                    with (first.folder / path).open("a") as file:
                        file.write(f"save {number}\n")
                    await_arrival(first, second, path)

                def binary(number: int) -> None:
                    path = f"d0000/b{number}.bin"
                    (first.folder / path).write_bytes(chance.randbytes(50_000))
                    await_arrival(first, second, path)

                def seal(number: int) -> None:
                    text(number)
                    first.svc("push", "-m", f"Seal {number}")
                    time.sleep(CALM)

                cost(devices, 3, text)  # warm
                kinds = {"a text": text, "50 kB of bytes": binary, "a seal after a save": seal}
                for name, act in kinds.items():
                    mine, theirs = cost(devices, min(saves, 4) if act is seal else saves, act)
                    rows.append([name, f"{files:,}", f"{mine:.0f} ms", f"{theirs:.0f} ms"])
                time.sleep(CALM)
                before, began = wakeups(first), time.monotonic()
                time.sleep(rest)
                often = (wakeups(first) - before) * 20 / (time.monotonic() - began)
                rows.append(
                    [f"rest: {often:.1f} wake-ups in 20 s", f"{files:,}", f"{memory(first) >> 20} MB", ""]
                )
        finally:
            relay.terminate()
            relay.wait(20)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--saves", type=int, default=20)
    parser.add_argument("--rest", type=float, default=60.0)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    given = parser.parse_args()
    rows = [row for files in given.files for row in measure_costs(files, given.saves, given.rest)]
    heads = ["", "files", "CPU of the agent", "CPU of the other's"]
    report.show("live_cost", f"{report.table(heads, rows)}\n\n{report.conditions()}", given.write)


if __name__ == "__main__":
    main()
