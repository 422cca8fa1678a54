"""Does the main work on trees of real files and compares every byte; run by hand, takes some minutes.

    python -m scripts.campaign.real_tree [--files 10000] [--megabytes 200] [--seals 12]

It pushes Python's standard library, the packages of this environment and a folder of binaries, clones them
and compares every byte. Then it edits and pushes several times while git does the same, and compares blame
line by line with `git blame` of that history.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scripts.bench.shared import trees
from scripts.tour import StepFailed, TerminalDevice, same, say, start_relay

BLAMED = 40


class TwinHistory:
    """One history of edits, sealed by svc and committed by git. The git repository is beside the folder, not
    in it."""

    def __init__(self, device: TerminalDevice, repository: Path) -> None:
        self.device = device
        self.repository = repository
        self.seals: dict[str, str] = {}  # git commit → seal
        self.git("init", "-q")
        self.git("config", "user.name", "a")
        self.git("config", "user.email", "a@example.org")

    def git(self, *words: str) -> str:
        command = ["git", f"--git-dir={self.repository}", f"--work-tree={self.device.folder}", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def seal(self, message: str) -> None:
        pushed = self.device.svc("push", "-m", message).strip().splitlines()[-1]
        self.git("add", "-A", "-f", "--", ":!.svc")
        self.git("commit", "-qm", message)
        self.seals[self.git("rev-parse", "HEAD").strip()] = pushed

    def blame(self, path: str) -> tuple[int, int]:
        """Compare blame of a file by svc and git. Returns (number of lines on which they agree, number of all
        lines)."""
        theirs = re.findall(r"(?m)^([0-9a-f]{40}) \d+ \d+", self.git("blame", "--porcelain", "--", path))
        found = json.loads(self.device.svc("blame", path, "--json", "line,seal_id", quiet=True))
        ours = [row["seal_id"] for row in found]
        if len(ours) != len(theirs):
            raise StepFailed(f"blame of {path} has {len(ours)} lines, git has {len(theirs)}")
        return sum(self.seals[g] == o for g, o in zip(theirs, ours, strict=True)), len(ours)


def edit(folder: Path, chance: random.Random, count: int) -> list[Path]:
    """Change, add and remove lines in `count` Python files. Returns their paths."""
    chosen = chance.sample(sorted(folder.rglob("*.py")), count)
    for path in chosen:
        lines = path.read_text("utf-8", errors="surrogateescape").splitlines(keepends=True)
        for _ in range(chance.randrange(1, 6)):
            place = chance.randrange(len(lines) + 1)
            if lines and chance.random() < 0.3:
                del lines[place % len(lines)]
            else:
                lines.insert(place, f"# line {chance.random()}\n")
        path.write_text("".join(lines), "utf-8", errors="surrogateescape")
    return chosen


def acceptance(base: Path, server: str, options: argparse.Namespace) -> None:
    device = TerminalDevice("laptop", base, server)
    device.folder.mkdir(parents=True)
    count = trees.real_tree(device.folder, options.files)
    count += trees.binaries(device.folder / "binaries", options.megabytes)
    say(f"{count} files, {trees.stored_bytes(device.folder) / 1e6:.0f} MB")
    for words in (
        ("login", "--device-key", "--handle", "alice"),
        (
            "repo",
            "create",
            "tree",
            "--kind",
            "dataset",
        ),  # more than the 256 MiB of binaries that an app may hold
        ("repo", "init", "alice/tree"),
    ):
        device.svc(*words)
    history = TwinHistory(device, base / "history.git")
    history.seal("first")
    device.svc("repo", "clone", "alice/tree", str(base / "copy"), where=base)
    say(f"{same(device.folder, base / 'copy')} files are the same in folder and clone")
    chance = random.Random(options.seed)
    touched: set[Path] = set()
    for number in range(options.seals):
        touched |= set(edit(device.folder, chance, 60))
        history.seal(f"seal {number}")
    shutil.rmtree(base / "copy")
    device.svc("repo", "clone", "alice/tree", str(base / "copy"), where=base)
    say(f"{same(device.folder, base / 'copy')} files are the same after {options.seals} more seals")
    agreed = total = 0
    for path in chance.sample(sorted(touched), min(BLAMED, len(touched))):
        good, lines = history.blame(path.relative_to(device.folder).as_posix())
        agreed, total = agreed + good, total + lines
    say(f"blame: {agreed} of {total} lines as git ({agreed / max(total, 1):.2%})")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--seals", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="svc-real-tree-") as folder:
        relay, server = start_relay(Path(folder) / "relay")
        try:
            acceptance(Path(folder), server, options)
        except StepFailed as error:
            print(f"real_tree: {error}", file=sys.stderr)
            return 1
        finally:
            relay.terminate()
            relay.wait(20)
    say(f"all of it took {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
