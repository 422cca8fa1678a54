"""Measures what the terminal app costs: bytes to the terminal, CPU per key, first paint, large files, memory.

    python -m scripts.bench.app [--proposals 1000] [--size 80x24 --size 200x50]

It makes its own relay and repository, with a file and a comparison of 100,000 lines, and with the given
number of proposals (10,000 take ten minutes). The app runs on a real pseudo-terminal. The cost of a key is
the CPU time of all threads of the app until nothing more is sent. It is measured in ticks of 10 ms over
several keys; on a busy machine the same work takes more.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from localstore.core.model import issue as issues
from localstore.core.model import proposal as proposals
from localstore.core.model import ref as refs
from localstore.core.model.issue import IssueCreate
from localstore.core.model.proposal import ProposalCreate
from localstore.core.model.ref import RefCreate
from scripts.bench.collaboration.folders import environment, make_linked_folder, svc, write
from scripts.bench.ingest import signed_in
from scripts.bench.shared.cpu import anonymous, cpu_of
from scripts.bench.tui import Terminal
from svc.api import Api

LINES = 100_000
ROOT = Path(__file__).resolve().parents[2]
# A relay that takes so many proposals of one account within a minute.
RELAY = """
from localstore.core.model import limits
from relay.run.cli import main
limits.POSTS_MEMBER = 10**9
main()
"""
WORDS = "retry upload token parse merge branch label cache queue stall resume frame".split()  # noqa: SIM905


def long_file(mark: str) -> bytes:
    """The content of a file with LINES lines of source. Every second line contains `mark`."""
    return b"".join(
        f"value_{number} = {number}  # {mark if number % 2 else 'same'}\n".encode() for number in range(LINES)
    )


def furnish(api: Api, base: Path, env: dict[str, str], count: int) -> Path:
    """Make a linked folder whose repository has everything that the benchmark opens. Returns the folder."""
    folder, repo_id = make_linked_folder(api, base, env, "app")
    source = b"".join(b"def f%d(x):\n    return x + %d\n\n\n" % (n, n) for n in range(200))
    write(folder, {"README.md": b"# Project\n\nRead me.\n", "a.py": source, "long.py": long_file("old")})
    write(folder, {"dense.py": b"x = 1\n" * LINES})  # as many lines as fit into a text that is edited
    for number in range(40):
        write(folder, {f"src/part{number:02}.py": source[: 200 + number]})
    svc(folder, env, "push", "-m", "First")
    write(folder, {"long.py": long_file("new")})
    svc(folder, env, "push", "-m", "Second")
    for number in range(60):
        title = f"{WORDS[number % 12]} and {WORDS[number % 7]}"
        api.send(issues.CREATE, IssueCreate(title=title, body="It hangs\n" * 30), id=repo_id)
    svc(folder, env, "repo", "branch", "topic")
    svc(folder, env, "switch", "topic")
    write(folder, {"README.md": b"# Project\n\nRead me twice.\n"})
    svc(folder, env, "push", "-m", "Third")
    svc(folder, env, "switch", "main")

    def propose(number: int) -> None:
        name = f"t{number:05}"
        title = f"{WORDS[number % 12]} the {WORDS[number % 7]} of {WORDS[number % 5]} {number}"
        api.send(refs.CREATE, RefCreate(type="branch", name=name, head="topic"), id=repo_id)
        api.send(proposals.CREATE, ProposalCreate(head=name, base="main", title=title), id=repo_id)

    with ThreadPoolExecutor(4) as pool:
        for done, _ in enumerate(pool.map(propose, range(count)), 1):
            if not done % 500:
                print(f"{done} proposals", flush=True)
    return folder


@contextmanager
def relay_on(data: Path) -> Iterator[str]:
    """A context that runs a relay on this data folder and yields its address."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", RELAY, "serve", "--dev", "--port", "0", "--data", str(data)],
        stdout=subprocess.PIPE,
        stderr=data.with_suffix(".log").open("a"),
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TR_RATE_LIMITS": "false"},
    )
    try:
        line = process.stdout.readline() if process.stdout else ""
        if "listening on " not in line:
            raise SystemExit(f"the relay did not start; see {data.with_suffix('.log')}")
        yield line.split("listening on ")[1].strip()
    finally:
        process.terminate()
        process.wait(30)


class Watched(Terminal):
    """The app on a pseudo-terminal of a given size, with methods that measure the cost of keys."""

    def __init__(self, folder: Path, env: dict[str, str], size: tuple[int, int]) -> None:
        super().__init__([str(Path(sys.executable).with_name("svc")), "tui"], folder, *size, env)

    @property
    def cpu(self) -> float:
        """The CPU milliseconds that all threads of the app have used, including threads that have ended."""
        return 1000 * cpu_of([self.pid])

    def still(self, quiet: float = 0.4) -> int:
        """Read what the app sends until it sends nothing for `quiet` seconds. Returns the number of bytes."""
        count = 0
        while more := self.read(quiet, 5.0):
            count += more
        return count

    def costs(self, keys: str) -> tuple[int, float]:
        """Type the keys at once. Returns (bytes sent by the app, CPU milliseconds)."""
        before = self.cpu
        os.write(self._line, keys.encode())
        return self.still(), self.cpu - before

    def each(self, keys: Sequence[str]) -> tuple[int, float]:
        """Type the keys one after the other. Returns (largest number of bytes for one key, mean CPU
        milliseconds of one key)."""
        before, most = self.cpu, 0
        for key in keys:
            os.write(self._line, key.encode())
            most = max(most, self.still(0.15))
        return most, (self.cpu - before) / len(keys)

    def memory(self) -> None:
        """Print the memory of the app: its private memory, its memory with mapped files, and the largest so
        far."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        whole, most = (int(status.split(f"{name}:")[1].split()[0]) // 1024 for name in ("VmRSS", "VmHWM"))
        own = anonymous([self.pid]) >> 20
        print(f"{'memory':<32} {own:>7} MB, {whole} with files, {most} at most")

    def expect(self, words: str, seconds: float = 60.0) -> None:
        if not self.shows(words, seconds):
            raise SystemExit(f"«{words}» is not on the screen:\n{self.text}")


def row(name: str, cost: tuple[int, float]) -> None:
    print(f"{name:<32} {cost[0]:>7} bytes {cost[1]:>8.1f} ms", flush=True)


def measure(folder: Path, env: dict[str, str], size: tuple[int, int], count: int) -> None:
    print(f"{size[0]} x {size[1]}")
    first = Watched(folder, env, size)  # keeps what it saw
    first.expect("Repositories")
    first.still(1.0)
    first.close()
    app, sent = Watched(folder, env, size), 0
    while "Repositories" not in app.text:
        sent += app.read(0.01, 0.02)
    row("first paint", (sent, app.cpu))
    row("start", (sent + app.still(1.0), app.cpu))
    app.memory()
    row("open a repository", app.costs("\r"))
    for tab in "12345678":
        row(f"tab {tab}", app.costs(tab))
    app.costs("2")
    row("a line", app.each("jjjjkkkk"))
    app.costs("G")
    row("open 100,000 lines", app.costs("\r"))
    app.expect(f"{LINES} lines")
    row("a line", app.each("jjjjjjjjjjkkkkkkkkkk"))
    row("a page", app.each(["\x04", "\x15"] * 5))
    row("first, last line", app.each(["G", "g"] * 5))
    row("search to the end", app.costs("/value_99999\r"))
    app.costs("h")
    app.expect("Second")
    row("open their comparison", app.costs("\r"))
    app.expect("M long.py")
    row("a line", app.each("jjjjjjjjjjkkkkkkkkkk"))
    row("a page", app.each(["\x04", "\x15"] * 5))
    row("first, last line", app.each(["G", "g"] * 5))
    app.memory()
    app.costs("3")
    for _ in range(2):  # the second time they are known, and read again
        app.costs("p")
        app.expect(f"Proposals open · {count}")
        app.still(5.0)
        app.costs("p")
        app.expect("Issues open")
    app.costs("p")
    app.expect(f"Proposals open · {count}")
    app.still(5.0)
    app.memory()
    app.costs("/")
    row("a key of a filter", app.each("retry upload"))
    row("a key taken back", app.each(["\x7f"] * 12))
    app.costs("\x1b")
    row("times move on, in a minute", (max(app.read(1.0, 2.0) for _ in range(60)), 0.0))
    app.close()


def measure_editing(folder: Path, env: dict[str, str], size: tuple[int, int]) -> None:
    """Measure what keys cost in texts that are edited live: a small text, and one of 100,000 lines."""
    for keys, lines in (("Gkk", 800), ("Gk", LINES)):
        print(f"{size[0]} x {size[1]}, editing {lines:,} lines")
        app = Watched(folder, env, size)
        app.expect("Repositories")
        app.still(1.0)
        app.costs("\r")
        app.costs("2")
        app.costs(keys)
        app.costs("\r")
        app.still(2.0)
        row("begin", app.costs("e"))
        app.expect("saved")
        app.still(3.0)
        row("a letter", app.each("a letter and another"))
        row("a letter taken back", app.each(["\x7f"] * 10))
        row("a new line", app.each(["\r"] * 5))
        row("the cursor", app.each(["\x1b[B", "\x1b[C"] * 5))
        row("a page", app.each(["\x1b[6~", "\x1b[5~"] * 3))
        row("idle 3 s", (app.read(3.0, 3.1), 0.0))
        app.memory()
        app.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--proposals", type=int, default=1000)
    parser.add_argument("--size", action="append")
    parser.add_argument("--editing", action="store_true", help="only texts that are edited")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as made:
        base = Path(made)
        with relay_on(base / "relay") as url:
            env = environment(base, url)
            api, _ = signed_in(base, url)
            folder = furnish(api, base, env, options.proposals)
            for size in options.size or ["80x24", "200x50"]:
                width, height = map(int, size.split("x"))
                if not options.editing:
                    measure(folder, env, (width, height), options.proposals)
                measure_editing(folder, env, (width, height))
            svc(folder, env, "watch", "stop", "--all")


if __name__ == "__main__":
    main()
