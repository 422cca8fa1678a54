"""A large binary and its second version: svc against git-lfs and hf_xet.

    python -m scripts.bench.binary [--mib 512] [--rounds 1] [--peers FOLDER]

The second version has one byte in front and 20 small edits. CPU is user and system time of client and
server process trees together. svc is the real command against a real relay, signed and verified. `--peers`
is a virtual environment that holds `hf_xet`, `giftless` and `gunicorn`; without it svc runs alone. git-lfs
talks to giftless, a real LFS server, over HTTP; its git repository is a folder. hf_xet has no server that
runs offline: its own local store (`local://`) stands in, so it pays neither HTTP nor a server.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hmac
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from scripts.bench.cpu import Cost, run, serving
from scripts.bench.sides import Svc
from scripts.tour import start_relay

MIB = 1024 * 1024
LFS_KEY = "bench-" * 8
FILE = "model.bin"
Figures = dict[tuple[str, str], list[tuple[Cost, int]]]

XET = """
import hf_xet, sys
with hf_xet.XetSession().new_upload_commit(endpoint="local://" + sys.argv[2]) as commit:
    commit.start_upload_file(sys.argv[1])
"""

GIFTLESS = """
TRANSFER_ADAPTERS:
  basic:
    factory: giftless.transfer.basic_streaming:factory
    options:
      storage_class: giftless.storage.local_storage:LocalStorage
      storage_options: {{path: {store}}}
AUTH_PROVIDERS:
  - factory: giftless.auth.jwt:factory
    options: {{algorithm: HS256, private_key: {key}}}
PRE_AUTHORIZED_ACTION_PROVIDER: null
"""


def first(path: Path, mib: int, seed: int) -> None:
    """Bytes that nothing compresses."""
    source = random.Random(seed)
    with path.open("wb") as file:
        for _ in range(mib):
            file.write(source.randbytes(MIB))


def second(path: Path, seed: int) -> None:
    """One byte inserted in front, 20 edits of 16 bytes."""
    source = random.Random(-seed)
    data = bytearray(b"!") + path.read_bytes()
    for _ in range(20):
        at = source.randrange(len(data) - 16)
        data[at : at + 16] = source.randbytes(16)
    path.write_bytes(data)


def size_of(folder: Path) -> int:
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())


class OurSide:
    name = "svc"

    def __init__(self, base: Path, server: str, pid: int) -> None:
        self.base, self.store = base, base / "relay" / "objects"
        self.svc = Svc(base, server, pid)

    def open(self, folder: Path) -> None:
        self.svc.run("repo", "create", folder.name, "--kind", "model", cwd=folder)
        self.svc.run("repo", "init", f"bench/{folder.name}", cwd=folder)

    def push(self, folder: Path) -> Cost:
        return self.svc.run("push", "-m", "version", cwd=folder)

    def clone(self, folder: Path) -> Cost | None:
        target = self.base / f"{folder.name}-clone"
        cost = self.svc.run("repo", "clone", f"bench/{folder.name}", str(target), cwd=self.base)
        if (target / FILE).read_bytes() != (folder / FILE).read_bytes():
            raise RuntimeError("the clone is another file")
        shutil.rmtree(target)
        return cost


class LfsSide:
    name = "git-lfs"

    def __init__(self, base: Path, url: str, pid: int, store: Path) -> None:
        self.base, self.url, self.pid, self.store = base, url, pid, store

    def open(self, folder: Path) -> None:
        bare = self.base / f"{folder.name}.git"
        self._git("init", "-q", "--bare", str(bare), cwd=self.base)
        self._git("init", "-q", "-b", "main", cwd=folder)
        self._git("remote", "add", "origin", str(bare), cwd=folder)
        self._git("lfs", "install", "--local", cwd=folder)
        self._git("config", "lfs.url", f"{self.url}/bench/{folder.name}", cwd=folder)
        self._git("config", "http.extraheader", self._header(), cwd=folder)
        self._git("config", "lfs.locksverify", "false", cwd=folder)
        self._git("lfs", "track", "*.bin", cwd=folder)

    def push(self, folder: Path) -> Cost:
        steps = (("add", "-A"), ("commit", "-qm", "version"), ("push", "-q", "origin", "main"))
        costs = [self._git(*words, cwd=folder) for words in steps]
        return Cost(sum(one.cpu for one in costs), sum(one.wall for one in costs))

    def clone(self, folder: Path) -> Cost | None:
        target = self.base / f"{folder.name}-clone"
        lfs = ("-c", f"lfs.url={self.url}/bench/{folder.name}", "-c", f"http.extraheader={self._header()}")
        smudge = ("-c", "filter.lfs.process=git-lfs filter-process", "-c", "filter.lfs.smudge=git-lfs smudge")
        bare = self.base / f"{folder.name}.git"
        cost = self._git(*lfs, *smudge, "clone", "-q", "-b", "main", str(bare), str(target), cwd=self.base)
        if (target / FILE).stat().st_size != (folder / FILE).stat().st_size:
            raise RuntimeError("git-lfs left a pointer")
        shutil.rmtree(target)
        return cost

    def _header(self) -> str:
        claims = {"sub": "bench", "scopes": ["obj:bench/*/*:*"], "exp": int(time.time()) + 3600}
        body = ".".join(_b64(json.dumps(one).encode()) for one in ({"alg": "HS256", "typ": "JWT"}, claims))
        mac = hmac.new(LFS_KEY.encode(), body.encode(), "sha256").digest()
        return f"Authorization: Bearer {body}.{_b64(mac)}"

    def _git(self, *words: str, cwd: Path) -> Cost:
        cost = Cost()
        with serving(self.pid, cost):
            own = run(["git", "-c", "user.name=b", "-c", "user.email=b@b", "-c", "gc.auto=0", *words], cwd)
        return Cost(cost.cpu + own.cpu, own.wall)


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class XetSide:
    name = "hf_xet"

    def __init__(self, base: Path, python: Path) -> None:
        self.home, self.store, self.python = base / "xet-home", base / "xet", python
        self.home.mkdir()
        self.store.mkdir()

    def open(self, folder: Path) -> None:
        """Nothing to prepare."""

    def push(self, folder: Path) -> Cost:
        environment = {**os.environ, "HOME": str(self.home), "HF_HOME": str(self.home)}
        words = [str(self.python), "-c", XET, str(folder / FILE), str(self.store)]
        return run(words, folder, environment)

    def clone(self, folder: Path) -> Cost | None:
        return None


Side = OurSide | LfsSide | XetSide


def measure(side: Side, base: Path, mib: int, seed: int, figures: Figures) -> None:
    folder = base / f"{side.name}-{seed}"
    folder.mkdir()
    side.open(folder)
    first(folder / FILE, mib, seed)
    for work, prepare in (("first push", None), ("second push", second)):
        if prepare is not None:
            prepare(folder / FILE, seed)
        before = size_of(side.store)
        cost = side.push(folder)
        figures[work, side.name].append((cost, size_of(side.store) - before))
    cloned = side.clone(folder)
    if cloned is not None:
        figures["clone", side.name].append((cloned, 0))
    shutil.rmtree(folder)


@contextlib.contextmanager
def lfs_server(python: Path, store: Path) -> Iterator[tuple[int, str]]:
    """giftless under gunicorn; pid and address."""
    store.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    words = [str(python), "-m", "gunicorn", "-w", "2", "-t", "300", "-b", f"127.0.0.1:{port}"]
    server = subprocess.Popen(
        [*words, "giftless.wsgi_entrypoint:app"],
        env={**os.environ, "GIFTLESS_CONFIG_STR": GIFTLESS.format(store=store, key=LFS_KEY)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(100):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(url, timeout=1).close()
                break
            time.sleep(0.1)
        yield server.pid, url
    finally:
        server.terminate()
        server.wait(20)


def report(figures: Figures) -> None:
    for (work, name), found in figures.items():
        cost, stored = min(found, key=lambda one: one[0].cpu)
        ours = min(one[0].cpu for one in figures[work, "svc"])
        kept = min(one[1] for one in figures[work, "svc"])
        line = f"{work:12} {name:8} CPU {cost.cpu:6.2f} s  wall {cost.wall:6.2f} s"
        line += f"  stored {stored / 1e6:8.2f} MB"
        bytes_ratio = f", {kept / stored:.4f}× the bytes" if stored else ""
        print(line if name == "svc" else f"{line}   svc: {ours / cost.cpu:.2f}× the CPU{bytes_ratio}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--peers", type=Path)
    options = parser.parse_args()
    figures: Figures = defaultdict(list)
    with contextlib.ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="svc-bench-")))
        relay, url = start_relay(base / "relay")
        stack.callback(relay.wait, 20)
        stack.callback(relay.terminate)
        sides: list[Side] = [OurSide(base, url, relay.pid)]
        if options.peers is not None:
            python = options.peers.absolute() / "bin" / "python"
            pid, lfs_url = stack.enter_context(lfs_server(python, base / "lfs"))
            sides += [LfsSide(base, lfs_url, pid, base / "lfs"), XetSide(base, python)]
        for number in range(1, options.rounds + 1):
            for side in sides:
                measure(side, base, options.mib, number, figures)
    report(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
