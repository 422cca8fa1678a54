"""Measures what the front of the local LLM server costs in addition to the engine behind it.

    python -m scripts.llm.bench [--tokens N] [--model FILE.gguf]

First a tiny model makes N tokens in a stream. The engine then does little, and the front's CPU time for a
token is the same as with any model. CPU time is measured, not wall time, because other work on the machine
hardly changes it. Then a model of a real size answers, in turns through the front and directly from its
runner. This model is FILE.gguf, or without --model one that is made here and needs about 10 ms a token. Of
the wall times, the fastest round counts, because other work disturbed it least. The last column is the limit;
the exit code is 1 if one is exceeded.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from llm.task import KEY_VARIABLE
from localstore.core.times import rfc3339_now
from localstore.models import names
from localstore.models.intake import take_in
from localstore.models.store import Models, Record
from tests.llm.conftest import Kept, add, cpu_ticks, free_port

TICK = 1000 / os.sysconf("SC_CLK_TCK")  # milliseconds
IDLE_SECONDS = 5.0
STARTS = 5
ROUNDS = 12
ROUND_TOKENS = 32
LAYERS = 45  # of the model that is made, which then needs more than 10 ms a token: 97 MB


class Figure(NamedTuple):
    """A measured value, and the limit (`bar`) that it must not exceed."""

    name: str
    value: float
    unit: str
    bar: float


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokens", type=int, default=4000)
    parser.add_argument("--model", type=Path, help="instead of one that is made")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "llm"
        add(home, "loop", "loop", context=4096)
        add_real(home, arguments.model)
        figures = [Figure("svc llm start to the first 200", measure_start(home), "s", 1.5)]
        kept_server = Kept(home)
        try:
            figures += measure(kept_server, arguments.tokens)
            figures += compare(kept_server)
        finally:
            kept_server.close()
    for figure in figures:
        mark = "" if figure.value <= figure.bar else "  missed"
        print(f"{figure.name:<40} {figure.value:>9.3f} {figure.unit:<3} of {figure.bar:g}{mark}")
    return int(any(figure.value > figure.bar for figure in figures))


def measure(server: Kept, tokens: int) -> list[Figure]:
    """Measure the front's CPU time for a token by each API, its memory, and its CPU while it has nothing to
    do."""
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


def add_real(home: Path, file: Path | None) -> None:
    """Install a model under the name `real`: the given file, or a model that is made here."""
    if file is None:
        add(home, "real", "loop", context=4096, layers=LAYERS)
        return
    copied = home / "real.gguf"
    shutil.copy(file, copied)
    models = Models(home)
    models.put(names.parse("real"), Record(model=take_in(models, copied).digest, modified_at=rfc3339_now()))
    copied.unlink()


def measure_start(home: Path) -> float:
    """The seconds that `svc llm start` takes until the server answers."""
    seconds = []
    variables = {**os.environ, "SVC_LLM_HOME": str(home), "SVC_HOME": str(home.parent / "svc")}
    variables["SVC_LLM_PORT"] = str(free_port())
    svc = [sys.executable, "-m", "svc", "llm"]
    for _ in range(STARTS):
        began = time.monotonic()
        subprocess.run([*svc, "start"], env=variables, check=True, capture_output=True)
        seconds.append(time.monotonic() - began)
        subprocess.run([*svc, "stop"], env=variables, check=True, capture_output=True)
    return min(seconds)


class Turn(NamedTuple):
    """One answer of ROUND_TOKENS tokens: seconds to the first token, seconds from it to the last, and CPU
    milliseconds of the front and of the runner."""

    first: float
    rest: float
    front: float
    runner: float


def compare(server: Kept) -> list[Figure]:
    """Measure what the front costs with a slow engine: tokens a second, and time to the first token."""
    list(
        server.talk.stream("/api/generate", {"model": "real", "prompt": "Hi", "options": {"num_predict": 1}})
    )
    pids = (server.front(), server.runners()[-1])
    variables = Path(f"/proc/{pids[1]}/environ").read_bytes().decode().split("\0")
    key = next(word.partition("=")[2] for word in variables if word.startswith(f"{KEY_VARIABLE}="))
    ways = {"front": (server.port, ""), "alone": (port_of(pids[1]), key)}
    turns: dict[str, list[Turn]] = {way: [] for way in ways}
    for round_number in range(ROUNDS + 1):
        for way, (port, way_key) in ways.items():
            # Each has a prompt of its own, which the engine has not read yet.
            turn = take_turn(port, way_key, pids, f"{round_number} {way}, tell me everything.")
            if round_number:  # the first one warms up
                turns[way].append(turn)
    best = {
        way: Turn(
            min(turn.first for turn in rows),
            min(turn.rest for turn in rows),
            statistics.median(turn.front for turn in rows),
            statistics.median(turn.runner for turn in rows),
        )
        for way, rows in turns.items()
    }
    front, alone = best["front"], best["alone"]
    print(
        f"the engine alone: {alone.rest * 1000 / (ROUND_TOKENS - 1):.1f} ms a token, "
        f"{alone.runner / ROUND_TOKENS:.1f} ms of them CPU; first token {alone.first * 1000:.1f} ms"
    )
    return [
        Figure("front's CPU, of the engine's a token", 100 * front.front / front.runner, "%", 2),
        Figure("tokens/s lost by the clock", 100 * (1 - alone.rest / front.rest), "%", 2),
        Figure("first token over the engine's", (front.first - alone.first) * 1000, "ms", 50),
    ]


def take_turn(port: int, key: str, pids: tuple[int, int], prompt: str) -> Turn:
    """Request ROUND_TOKENS tokens by /v1 from the front or a runner on `port`. `pids`: the process ids of the
    front and the runner."""
    before = [cpu_ticks(pid) for pid in pids]
    body = {
        "model": "real",
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": ROUND_TOKENS, "temperature": 0, "stream": True, "ignore_eos": True,
    }  # fmt: skip
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    began = time.monotonic()
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Authorization": f"Bearer {key}"})
    answer = connection.getresponse()
    times = []
    while line := answer.readline():
        if b'"content":"' in line:
            times.append(time.monotonic())
    connection.close()
    after = [cpu_ticks(pid) for pid in pids]
    front, runner = ((end - start) * TICK for start, end in zip(before, after, strict=True))
    return Turn(times[0] - began, times[-1] - times[0], front, runner)


def port_of(pid: int) -> int:
    """The TCP port on which a process listens."""
    inodes = set()
    for name in Path(f"/proc/{pid}/fd").iterdir():
        inodes.add(str(name.readlink()).removeprefix("socket:[").removesuffix("]"))
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[9] in inodes:
            return int(words[1].partition(":")[2], 16)
    raise LookupError(f"process {pid} listens on no port")


def stream(server: Kept, path: str, count: int) -> int:
    """Request a stream of `count` tokens from the model. Returns how many arrived."""
    body = {"model": "loop", "options": {"num_predict": count, "temperature": 0}}
    asks = {"messages": [{"role": "user", "content": "Hi"}]} if path == "/api/chat" else {"prompt": "Hi"}
    return sum(not line.get("done") for line in server.talk.stream(path, {**body, **asks}))


def resident(pid: int) -> int:
    """The resident memory of a process in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main())
