"""What the front of the local LLM server costs, beside the engine behind it.

    python -m scripts.llm.bench [--tokens N]

A tiny model makes N tokens in a stream, so the engine does little, and the CPU time of the front for a token
is what it is with any model. CPU time, not the clock: other work on the machine changes it little. The last
column is the bar; exit code 1 if one is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.llm.conftest import Kept, add, cpu_ticks

TICK = 1000 / os.sysconf("SC_CLK_TCK")  # milliseconds
IDLE_SECONDS = 5.0


class Figure(NamedTuple):
    """A figure, and the most that it may be."""

    name: str
    value: float
    unit: str
    bar: float


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokens", type=int, default=4000)
    tokens = parser.parse_args().tokens
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "llm"
        add(home, "loop", "loop", context=4096)
        began = time.monotonic()
        kept_server = Kept(home)
        start = time.monotonic() - began
        try:
            figures = [
                Figure("start to the first 200", start, "s", 1.5),
                *measure(kept_server, tokens),
            ]
        finally:
            kept_server.close()
    for figure in figures:
        mark = "" if figure.value <= figure.bar else "  missed"
        print(f"{figure.name:<40} {figure.value:>9.3f} {figure.unit:<3} of {figure.bar:g}{mark}")
    return int(any(figure.value > figure.bar for figure in figures))


def measure(server: Kept, tokens: int) -> list[Figure]:
    """The front's CPU time for a token of each API, its memory, and what it does when nobody asks."""
    front = server.front()
    figures = []
    stream(server, "/api/generate", 16)  # loads the model
    for path in ("/api/generate", "/api/chat"):
        before, rounds, count = cpu_ticks(front), 0, 0
        while count < tokens and rounds < 1 + tokens // 100:
            count, rounds = count + stream(server, path, min(tokens, 1000)), rounds + 1
        spent = (cpu_ticks(front) - before) * TICK
        figures.append(Figure(f"front, CPU a token, {path}", spent / max(count, 1), "ms", 0.25))
    before = cpu_ticks(front)
    time.sleep(IDLE_SECONDS)
    idle = (cpu_ticks(front) - before) * TICK / IDLE_SECONDS / 10
    figures.append(Figure("front, CPU when nobody asks", idle, "%", 0.5))
    figures.append(Figure("front, memory", resident(front) / 1e6, "MB", 80))
    return figures


def stream(server: Kept, path: str, count: int) -> int:
    """Have the model make tokens. Returns how many came."""
    body = {"model": "loop", "options": {"num_predict": count, "temperature": 0}}
    asks = {"messages": [{"role": "user", "content": "Hi"}]} if path == "/api/chat" else {"prompt": "Hi"}
    return sum(not line.get("done") for line in server.talk.stream(path, {**body, **asks}))


def resident(pid: int) -> int:
    """Bytes of a process that are in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main())
