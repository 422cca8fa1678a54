"""Measures how long commands wait for a folder in which another process works, round after round.

    python -m scripts.bench.holder [--times 100] [--write]

The other process begins a round every 100 ms, or at once if the last round took longer. In each round it
locks the folder for 20 to 200 ms. The figures are the times for which commands wait for this lock. A command
that fails ends the run."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from localstore.folder import lock
from localstore.folder.link import RepoLink
from localstore.home import Home
from localstore.sync.owning import Bound, RoundOwner, Turn
from scripts.bench.shared import report
from scripts.tour import start_relay
from svc.api import connect
from svc.api.sync_transport import BranchTransport
from svc.cmd.frame.app import run
from svc.flows.status import status
from svc.http.session import Sessions

AIM = 0.250  # seconds, of 95 in 100
COMMANDS = ("status", "diff", "pull", "push", "switch", "restore")
EVERY, HOLD = 0.1, (0.02, 0.2)


def hold(folder: Path) -> None:
    """Work on the folder in rounds until this process is ended."""
    home = Home.default()

    def bind(link: RepoLink) -> Bound:
        sessions = Sessions(home.root)
        transport = BranchTransport(connect(link.server, sessions), link.repo_id, link.branch)
        return transport, sessions.identity.device

    rounds = RoundOwner(folder, home, bind, Turn("holder", 60))
    chance, told = random.Random(1), False
    while True:
        began = time.monotonic()
        with rounds.round() as copy:
            held = time.monotonic()
            status(copy, offline=True)
            if not told:
                print("holding", flush=True)
                told = True
            time.sleep(max(0.0, held + chance.uniform(*HOLD) - time.monotonic()))
        time.sleep(max(0.0, began + EVERY - time.monotonic()))


@contextlib.contextmanager
def holding(folder: Path) -> Iterator[None]:
    words = [sys.executable, "-m", "scripts.bench.holder", "--hold", str(folder)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "holding\n"
        yield
        assert process.poll() is None, "the holder ended"
    finally:
        process.kill()
        process.wait()


def svc(*words: str) -> None:
    """Run the command `svc WORDS`. Raises an error if it fails."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(list(words))
    if code:
        raise SystemExit(f"svc {' '.join(words)} ended with {code}: {err.getvalue()}")


def prepare_folder(base: Path, folder: Path) -> None:
    """Make a linked folder with two branches."""
    svc("login", "--device-key", "--handle", "ann")
    svc("repo", "create", "demo")
    folder.mkdir()
    os.chdir(folder)
    for number in range(200):
        (folder / f"file-{number}.txt").write_text(f"file {number}\n" * 20)
    svc("repo", "init", "ann/demo")
    svc("push", "-m", "First")
    svc("repo", "branch", "other")


def step(folder: Path, name: str, number: int) -> None:
    """Run the command `name`, after an edit if the command needs one."""
    file = folder / f"file-{number % 200}.txt"
    if name == "push":
        file.write_text(f"edit {number}\n")
        svc("push", "-m", f"Edit {number}")
    elif name == "switch":
        svc("switch", "other" if number % 2 == 0 else "main")
    elif name == "restore":
        file.write_text("by mistake\n")
        svc("restore", file.name)
    else:
        svc(name)


def measure(base: Path, times: int) -> dict[str, list[float]]:
    """Run each command `times` times while another process works in the folder. Returns, for each command,
    the seconds that its runs waited for the lock of the folder."""
    waits: dict[str, list[float]] = {name: [] for name in COMMANDS}
    folder, waited, own = base / "folder", [0.0], lock.own_working_copy

    @contextlib.contextmanager
    def measure_wait(*words: object, **named: object) -> Iterator[None]:
        began = time.monotonic()
        with own(*words, **named):  # type: ignore[arg-type]
            waited[0] += time.monotonic() - began
            yield

    prepare_folder(base, folder)
    lock.own_working_copy = measure_wait
    with holding(folder):
        for number in range(times):
            for name in COMMANDS:
                waited[0] = 0.0
                step(folder, name, number)
                waits[name].append(waited[0])
    return waits


def format_figures(waits: dict[str, list[float]]) -> str:
    """The waiting times of each command, as a Markdown table."""
    rows = []
    for name, found in waits.items():
        found.sort()
        p95 = found[max(0, -(-len(found) * 95 // 100) - 1)]
        shown = f"{p95 * 1000:.0f} ms"
        rows.append(
            [
                f"svc {name}",
                str(len(found)),
                f"{statistics.median(found) * 1000:.0f} ms",
                shown if p95 <= AIM else f"**{shown}**",
                f"{found[-1] * 1000:.0f} ms",
            ]
        )
    heads = ["", "runs, none refused", "median wait", f"p95 (≤{AIM * 1000:.0f} ms)", "longest"]
    return f"{report.table(heads, rows)}\n\n{report.conditions()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--hold", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    options = parser.parse_args()
    if options.hold:
        hold(options.hold)
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as name:
        base = Path(name)
        relay, url = start_relay(base / "relay", sys.executable)
        os.environ.update(
            SVC_HOME=str(base / "home"),
            SVC_SERVER=url,
            PYTHON_KEYRING_BACKEND="keyring.backends.null.Keyring",
        )
        os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
        try:
            waits = measure(base, options.times)
        finally:
            relay.terminate()
            relay.wait(20)
            os.chdir("/")
    report.show("holder", format_figures(waits), options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
