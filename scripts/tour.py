"""Does the main work of svc on a real tree, with the commands that a person would type.

It is the program of `./scripts/quickstart`. A relay starts in a temporary folder. alice signs in from the
terminal and pushes this project's own source and some binaries. She changes the source on a second device,
pulls, asks who wrote each line, and clones it, byte for byte. Every command is the real `svc`; its time is
printed beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import filecmp
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE_ROOMS = ("svc", "tui", "relay", "localstore", "llm", "scripts", "docs", "tests")
LIVE_FILE = "notes.py"
COLUMNS = 96  # of the terminal that commands write to; what is shown is indented by four


class StepFailed(Exception):
    """Raised if a step had a wrong result; the message names the step."""


class TerminalDevice:
    """A device of alice on this machine, with its own SVC_HOME and folder."""

    def __init__(self, name: str, base: Path, server: str) -> None:
        self.name = name
        self.folder = base / name / "project"
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("SVC_")},
            "SVC_HOME": str(base / name / "home"),
            "SVC_SERVER": server,
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        }

    def svc(self, *words: str, where: Path | None = None, quiet: bool = False) -> str:
        """Run `svc WORDS` in a terminal, print its output unless `quiet`, and return the output. Raises
        StepFailed if the command fails."""
        started = time.monotonic()
        code, said = in_terminal(  # -P: the folder holds a copy of this project, which must not be what runs
            [sys.executable, "-P", "-m", "svc", *words],
            where or (self.folder if self.folder.exists() else self.folder.parent),
            {**self.environment, "PYTHONPATH": str(ROOT), "SVC_PLAIN": "1"},
        )
        took = time.monotonic() - started
        say(f"\n{self.name} $ svc {shlex.join(words)}    ({took:.2f} s)")
        for line in [] if quiet else said.splitlines():
            say(f"    {line}")
        if code:
            raise StepFailed(f"svc {shlex.join(words)} ended with {code}")
        return said


def in_terminal(words: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Run a command with a pseudo-terminal as its output. Returns (exit code, output)."""
    here, there = os.openpty()
    termios.tcsetwinsize(there, (40, COLUMNS))
    process = subprocess.Popen(
        words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=there, stderr=there
    )
    os.close(there)
    said = b""
    with contextlib.suppress(OSError):  # EIO: everybody has closed the terminal
        while piece := os.read(here, 65536):
            said += piece
    os.close(here)
    return process.wait(), said.decode("utf-8", "replace").replace("\r\n", "\n")


def say(text: str) -> None:
    print(text, flush=True)


def start_relay(data: Path, python: str = sys.executable) -> tuple[subprocess.Popen[str], str]:
    """Start a development relay on a free port. Returns (its process, its address)."""
    relay = subprocess.Popen(
        [python, "-P", "-m", "relay", "serve", "--dev", "--port", "0", "--data", str(data)],
        stdout=subprocess.PIPE,
        stderr=(data.parent / "relay.log").open("w"),
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    line = relay.stdout.readline() if relay.stdout else ""
    if "listening on " not in line:
        relay.wait(10)
        raise StepFailed("the relay did not start:\n" + (data.parent / "relay.log").read_text()[-2000:])
    say(f"$ relay serve --dev\n    {line.strip()}")
    return relay, line.split("listening on ")[1].strip()


def make_tree(folder: Path) -> tuple[int, int]:
    """Copy this project's source into `folder`, and write some binaries. Returns (number of files, bytes)."""
    folder.mkdir(parents=True)
    skip = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
    for room in SOURCE_ROOMS:
        if (ROOT / room).is_dir():
            shutil.copytree(ROOT / room, folder / room, ignore=skip)
    weights = folder / "weights"
    weights.mkdir()
    for number in range(8):
        (weights / f"layer-{number}.bin").write_bytes(os.urandom(1024 * 1024))
    (folder / LIVE_FILE).write_text("def area(w, h):\n    return w * h\n")
    files = [path for path in folder.rglob("*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)


def same(left: Path, right: Path) -> int:
    """Compare two trees. Returns the number of files if the trees are equal. Raises StepFailed if they
    differ."""
    names = sorted(str(p.relative_to(left)) for p in left.rglob("*") if p.is_file() and ".svc" not in p.parts)
    others = sorted(
        str(p.relative_to(right)) for p in right.rglob("*") if p.is_file() and ".svc" not in p.parts
    )
    if names != others:
        raise StepFailed(f"the trees differ in names: {sorted(set(names) ^ set(others))[:5]}")
    _, mismatch, errors = filecmp.cmpfiles(left, right, names, shallow=False)
    if mismatch or errors:
        raise StepFailed(f"the trees differ in bytes: {(mismatch + errors)[:5]}")
    return len(names)


def tour(base: Path, server: str) -> None:
    laptop, desktop = TerminalDevice("laptop", base, server), TerminalDevice("desktop", base, server)
    count, size = make_tree(laptop.folder)
    say(f"\nA folder of {count} files, {size / 1e6:.1f} MB: its own source and 8 MiB of random binaries.")

    laptop.svc("login", "--device-key", "--handle", "alice")
    laptop.svc("repo", "create", "project")
    laptop.svc("repo", "init", "alice/project")
    laptop.svc("push", "-m", "First seal")

    code = laptop.svc("auth", "device", "add", "--json", "code", "--jq", ".code").strip().strip('"')
    desktop.folder.parent.mkdir(parents=True, exist_ok=True)
    desktop.svc("login", "--device-key", "--handle", "alice", "--pair", code)
    desktop.svc("repo", "clone", "alice/project", str(desktop.folder), where=desktop.folder.parent)

    say("\nBoth devices edit the same function: the desktop renames a parameter, the laptop adds a default.")
    (desktop.folder / LIVE_FILE).write_text("def area(width, h):\n    return width * h\n")
    desktop.svc("push", "-m", "Call it width")
    (laptop.folder / LIVE_FILE).write_text("def area(w, h=1):\n    return w * h\n")
    laptop.svc("pull", "--merge")
    say(
        f"\nlaptop $ cat {LIVE_FILE}\n    "
        + (laptop.folder / LIVE_FILE).read_text().replace("\n", "\n    ").rstrip()
    )
    laptop.svc("push", "-m", "A default height")
    laptop.svc("blame", LIVE_FILE)
    laptop.svc("log")

    copy = base / "copy"
    laptop.svc("repo", "clone", "alice/project", str(copy), where=base)
    say(f"\nCompared byte for byte: {same(laptop.folder, copy)} files are the same in folder and clone.")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./scripts/quickstart", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--stay", action="store_true", help="leave the relay running and say how to use it")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the relay is ended too
    base = Path(tempfile.mkdtemp(prefix="svc-quickstart-"))
    relay: subprocess.Popen[str] | None = None
    started = time.monotonic()
    try:
        relay, server = start_relay(base / "relay")
        tour(base, server)
        say(f"\nThe main job took {time.monotonic() - started:.1f} s.")
        if options.stay:
            stay(relay, server, base)
        else:
            say("Next: ./scripts/quickstart --stay keeps the relay running; README.md goes on from here.")
    except StepFailed as error:
        print(f"quickstart: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if relay is not None:
            relay.terminate()
            relay.wait(20)
        shutil.rmtree(base, ignore_errors=True)
    return 0


def stay(relay: subprocess.Popen[str], server: str, base: Path) -> None:
    say(
        f"\nThe relay stays at {server} until you press Ctrl-C. In another terminal:\n"
        f"    source .venv/bin/activate\n"
        f"    export SVC_HOME={base / 'laptop' / 'home'} SVC_SERVER={server}\n"
        f"    cd {base / 'laptop' / 'project'} && svc status"
    )
    relay.wait()


if __name__ == "__main__":
    sys.exit(main())
