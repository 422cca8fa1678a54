"""Reads CPU seconds, wall time and memory of process trees from /proc. Linux only."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Cost:
    """The cost of one task: seconds of CPU (user and system, including ended child processes) and of wall
    time."""

    cpu: float = 0.0
    wall: float = 0.0


def tree(pid: int) -> list[int]:
    """The ids of the process `pid` and of all its living descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in task.read_text().split():
                found += tree(int(child))
    return found


def cpu_of(pids: Sequence[int]) -> float:
    """The CPU seconds of these processes and of their ended children."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))
    return total / _TICKS


@contextlib.contextmanager
def serving(pid: int, cost: Cost) -> Iterator[None]:
    """A context that measures the CPU of a server's process tree and adds it to `cost.cpu` at the end."""
    before = cpu_of(tree(pid))
    yield
    cost.cpu += cpu_of(tree(pid)) - before


def run(words: Sequence[str | Path], cwd: Path, environment: Mapping[str, str] | None = None) -> Cost:
    """Run a command. Returns the cost of the command and its children. Raises RuntimeError with its output if
    it fails."""
    started = time.perf_counter()
    child = subprocess.Popen(
        [str(word) for word in words],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output = child.stdout.read() if child.stdout else b""
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.stdout:
        child.stdout.close()
    if child.returncode:
        raise RuntimeError(
            f"{words} ended with {child.returncode}:\n{output.decode(errors='replace')[-2000:]}"
        )
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - started)


def anonymous(pids: Sequence[int]) -> int:
    """The anonymous memory (RssAnon) of these processes in bytes: memory that is no part of a file."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            found = re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
            total += int(found[1]) * 1024 if found else 0
    return total


class Peak:
    """A context that samples the anonymous memory of process trees every few milliseconds. `most`: name of
    the tree → largest number of bytes."""

    def __init__(self, roots: Mapping[str, int]) -> None:
        """`roots`: name → process id of the topmost process of a process tree."""
        self.roots, self.most = roots, dict.fromkeys(roots, 0)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(0.02):
            for name, pid in self.roots.items():
                self.most[name] = max(self.most[name], anonymous(tree(pid)))
