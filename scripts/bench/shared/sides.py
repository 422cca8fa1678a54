"""svc and git as objects with the same methods, which do the same work on the same folders.

Most methods return the cost of the work: CPU of the client and of the server's process tree together.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from localstore.home import Home
from scripts.bench.shared.cpu import Cost, run, serving
from scripts.bench.shared.trees import stored_bytes
from svc.flows.watcher import running_watchers

FIRST = ("add", "-A", "-f"), ("commit", "-qm", "first"), ("push", "-q", "origin", "main")
# With `add -A`, because a push of svc takes in new files too, which `commit -a` does not look for.
NEXT = ("add", "-A"), ("commit", "-qm", "next"), ("push", "-q", "origin", "main")


class Svc:
    """The real client, signed in as bench, and a real relay with its data in `base`/relay. `serving`: ids of
    the processes whose CPU counts in addition to the client's."""

    name = "svc"

    def __init__(self, base: Path, server: str, pid: int, python: str = sys.executable) -> None:
        self.base, self.pid, self.serving, self._python = base, pid, [pid], python
        self.environment = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "",  # an installed svc has its bytecode
            "SVC_HOME": str(base / "home"),
            "SVC_SERVER": server,
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
            "PYTHONPATH": str(Path.cwd()),
        }
        self.run("login", "--device-key", "--handle", "bench", cwd=base)

    def run(self, *words: str, cwd: Path) -> Cost:
        return self.python("svc", *words, cwd=cwd)

    def python(self, module: str, *words: str, cwd: Path) -> Cost:
        cost = Cost()
        with ExitStack() as stack:
            for pid in self.serving:
                stack.enter_context(serving(pid, cost))
            own = run([self._python, "-P", "-m", module, *words], cwd, self.environment)
        return Cost(cost.cpu + own.cpu, own.wall)

    def open(self, folder: Path, kind: str = "lib") -> None:
        """Create a repository with the folder's name, and link the folder to it."""
        self.run("repo", "create", folder.name, "--kind", kind, cwd=folder)
        self.run("repo", "init", f"bench/{folder.name}", cwd=folder)

    def push_first(self, folder: Path) -> Cost:
        return self.run("push", "-m", "first", cwd=folder)

    def push(self, folder: Path) -> Cost:
        return self.run("push", "-m", "next", cwd=folder)

    def status(self, folder: Path) -> Cost:
        return self.run("status", cwd=folder)

    @contextmanager
    def watching(self, folder: Path) -> Iterator[int]:
        """A context in which a watcher process watches the folder. Its CPU counts as part of the cost. Yields
        its process id."""
        self.run("watcher", "start", cwd=folder)
        (watcher,) = running_watchers(Home(self.base / "home"))
        self.serving.append(watcher.pid)
        try:
            yield watcher.pid
        finally:
            self.serving.remove(watcher.pid)
            self.run("watcher", "stop", cwd=folder)

    def clone(self, folder: Path, target: Path) -> Cost:
        return self.run("repo", "clone", f"bench/{folder.name}", str(target), cwd=target.parent)

    def pull(self, folder: Path) -> Cost:
        return self.run("pull", cwd=folder)

    def log(self, folder: Path) -> Cost:
        """List the 30 newest seals, which is the page that `svc log` shows."""
        return self.run("log", "--limit", "30", cwd=folder)

    def blame(self, folder: Path, path: str) -> Cost:
        return self.run("blame", path, cwd=folder)

    def forget(self) -> None:
        """Empty the relay's cache of results of blame."""
        with sqlite3.connect(self.base / "relay" / "relay.db", timeout=30) as db:
            db.execute("DELETE FROM blame_cache")

    def measure_storage(self) -> dict[str, int]:
        """The bytes on the relay's disk: those of packs, and those of used pages of the database."""
        with sqlite3.connect(f"file:{self.base / 'relay' / 'relay.db'}?mode=ro", uri=True) as db:
            ask = ("page_count", "freelist_count", "page_size")
            pages, free, size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ask)
        return {"packs": stored_bytes(self.base / "relay" / "objects"), "database": (pages - free) * size}


class Git:
    """git over HTTP with its own http-backend. The bare repositories are in `root`."""

    name = "git"

    def __init__(self, root: Path, server: str, pid: int) -> None:
        self.root, self.server, self.pid = root, server, pid

    def run(self, *words: str, cwd: Path) -> Cost:
        cost = Cost()
        with serving(self.pid, cost):
            own = run(["git", "-c", "user.name=b", "-c", "user.email=b@b", "-c", "gc.auto=0", *words], cwd)
        return Cost(cost.cpu + own.cpu, own.wall)

    def open(self, folder: Path) -> None:
        bare = self._bare(folder)
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(bare)], check=True)
        for setting in ("http.receivepack=true", "gc.auto=0"):
            subprocess.run(["git", "-C", str(bare), "config", *setting.split("=")], check=True)
        self.run("init", "-q", "-b", "main", cwd=folder)
        self.run("remote", "add", "origin", f"{self.server}/{bare.name}", cwd=folder)

    def push_first(self, folder: Path) -> Cost:
        return total([self.run(*words, cwd=folder) for words in FIRST])

    def push(self, folder: Path) -> Cost:
        return total([self.run(*words, cwd=folder) for words in NEXT])

    def status(self, folder: Path) -> Cost:
        return self.run("status", "-s", cwd=folder)

    def clone(self, folder: Path, target: Path) -> Cost:
        return self.run(
            "clone", "-q", f"{self.server}/{self._bare(folder).name}", str(target), cwd=target.parent
        )

    def pull(self, folder: Path) -> Cost:
        return self.run("pull", "-q", "--ff-only", "origin", "main", cwd=folder)

    def log(self, folder: Path) -> Cost:
        return self.run("log", "-n", "30", cwd=folder)

    def blame(self, folder: Path, path: str) -> Cost:
        return self.run("blame", path, cwd=folder)

    def forget(self) -> None:
        """Does nothing, because git has no cache of results of blame."""

    def measure_storage(self) -> dict[str, int]:
        """The bytes of every object, pack and index on the server, as a push left them, without a gc."""
        return {"objects": sum(stored_bytes(bare / "objects") for bare in self.root.glob("*.git"))}

    def _bare(self, folder: Path) -> Path:
        return self.root / f"{folder.name}.git"


Side = Svc | Git


def total(costs: list[Cost]) -> Cost:
    return Cost(sum(c.cpu for c in costs), sum(c.wall for c in costs))
