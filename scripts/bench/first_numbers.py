"""First numbers: push, a small second push, clone and status of a real tree, svc against git over HTTP.

    python -m scripts.bench.first_numbers [--files N] [--rounds 3]

CPU is user and system time of client and server process trees together; both servers are on loopback.
The svc figures are the real `svc` against the real relay, with signatures, sign-in and verification.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from scripts.bench import trees
from scripts.bench.cpu import Cost, run, serving
from scripts.bench.git_server import git_server
from scripts.tour import start_relay

Figures = dict[tuple[str, str], list[Cost]]
EDITED = 100


class Svc:
    """The real client against a real relay, each round in a repository of its own."""

    def __init__(self, base: Path, server: str, pid: int) -> None:
        self.pid = pid
        self.home = base / "home"
        self.environment = {
            **os.environ,
            "SVC_HOME": str(self.home),
            "SVC_SERVER": server,
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        }
        self.run("login", "--device-key", "--handle", "bench", cwd=base)

    def run(self, *words: str, cwd: Path) -> Cost:
        cost = Cost()
        with serving(self.pid, cost):
            own = run(
                [sys.executable, "-P", "-m", "svc", *words],
                cwd,
                {**self.environment, "PYTHONPATH": str(Path.cwd())},
            )
        return Cost(cost.cpu + own.cpu, own.wall)

    def round(self, number: int, tree: Path, base: Path, figures: Figures) -> None:
        folder, name = base / f"svc-{number}", f"tree-{number}"
        shutil.copytree(tree, folder)
        self.run("repo", "create", name, cwd=folder)
        self.run("repo", "init", f"bench/{name}", cwd=folder)
        figures["first push", "svc"].append(self.run("push", "-m", "first", cwd=folder))
        figures["status, unchanged", "svc"].append(self.run("repo", "status", cwd=folder))
        trees.edit_some(folder, EDITED)
        figures["push of 100 edits", "svc"].append(self.run("push", "-m", "second", cwd=folder))
        figures["clone", "svc"].append(
            self.run("repo", "clone", f"bench/{name}", f"clone-{number}", cwd=base)
        )


class Git:
    """git over HTTP through its own http-backend."""

    def __init__(self, root: Path, server: str, pid: int) -> None:
        self.root, self.server, self.pid = root, server, pid

    def run(self, *words: str, cwd: Path) -> Cost:
        cost = Cost()
        with serving(self.pid, cost):
            own = run(["git", "-c", "user.name=b", "-c", "user.email=b@b", "-c", "gc.auto=0", *words], cwd)
        return Cost(cost.cpu + own.cpu, own.wall)

    def round(self, number: int, tree: Path, base: Path, figures: Figures) -> None:
        folder, name = base / f"git-{number}", f"tree-{number}.git"
        shutil.copytree(tree, folder)
        bare = self.root / name
        subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
        subprocess.run(["git", "-C", str(bare), "config", "http.receivepack", "true"], check=True)
        self.run("init", "-q", "-b", "main", cwd=folder)
        self.run("remote", "add", "origin", f"{self.server}/{name}", cwd=folder)
        first = [
            self.run(*words, cwd=folder) for words in (("add", "-A", "-f"), ("commit", "-qm", "first"), PUSH)
        ]
        figures["first push", "git"].append(_sum(first))
        figures["status, unchanged", "git"].append(self.run("status", "-s", cwd=folder))
        trees.edit_some(folder, EDITED)
        second = [self.run(*words, cwd=folder) for words in (("commit", "-qam", "second"), PUSH)]
        figures["push of 100 edits", "git"].append(_sum(second))
        clone = ("clone", "-q", f"{self.server}/{name}", f"gitclone-{number}")
        figures["clone", "git"].append(self.run(*clone, cwd=base))


PUSH = ("push", "-q", "origin", "main")


def _sum(costs: list[Cost]) -> Cost:
    return Cost(sum(c.cpu for c in costs), sum(c.wall for c in costs))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    figures: Figures = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        base = Path(folder)
        count = trees.real_tree(base / "tree", options.files)
        print(f"{count} files, {trees.stored_bytes(base / 'tree') / 1e6:.1f} MB", flush=True)
        (base / "git").mkdir()
        relay, url = start_relay(base / "relay")
        try:
            with git_server(base / "git") as (pid, git_url):
                svc, git = Svc(base, url, relay.pid), Git(base / "git", git_url, pid)
                for number in range(options.rounds):
                    svc.round(number, base / "tree", base, figures)
                    git.round(number, base / "tree", base, figures)
                    shutil.rmtree(base / f"svc-{number}")
                    shutil.rmtree(base / f"git-{number}")
        finally:
            relay.terminate()
            relay.wait(20)
    for work in dict.fromkeys(work for work, _ in figures):
        ours, theirs = figures[work, "svc"], figures[work, "git"]
        cpu = [statistics.median(c.cpu for c in side) for side in (ours, theirs)]
        wall = [statistics.median(c.wall for c in side) for side in (ours, theirs)]
        print(
            f"{work:20} CPU svc {cpu[0]:6.2f} s  git {cpu[1]:6.2f} s  {cpu[0] / cpu[1]:5.2f}×"
            f"   wall svc {wall[0]:6.2f} s  git {wall[1]:6.2f} s  {wall[0] / wall[1]:5.2f}×"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
