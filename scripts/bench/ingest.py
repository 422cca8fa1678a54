"""Measures the relay's CPU for uploads: packs of random 64 KiB chunks from the real client.

    python -m scripts.bench.ingest [--packs 8] [--rounds 3]

MB are 10^6 bytes; CPU is user and system time of the relay's process tree, with TCP over loopback.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from localstore.core.encoding import digest
from localstore.core.model.limits import CHUNK_TARGET, MIB
from localstore.core.storage.pack import Pack, write_packs
from scripts.bench.shared.cpu import Cost, serving
from scripts.tour import start_relay
from svc.api import Api, connect
from svc.http.session import Sessions

CHUNKS = 60 * MIB // CHUNK_TARGET  # of one pack


def packs(count: int) -> Iterator[Pack]:
    for _ in range(count):
        chunks = [os.urandom(CHUNK_TARGET) for _ in range(CHUNKS)]
        yield from write_packs((digest(one), one, False) for one in chunks)


def signed_in(base: Path, server: str) -> tuple[Api, str]:
    """Sign in, and create a repository to upload to. Returns (API, id of the repository)."""
    environment = {
        **os.environ,
        "SVC_HOME": str(base / "home"),
        "SVC_SERVER": server,
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        "PYTHONPATH": str(Path.cwd()),
    }
    os.environ["PYTHON_KEYRING_BACKEND"] = environment["PYTHON_KEYRING_BACKEND"]
    for words in (("login", "--device-key", "--handle", "bench"), ("repo", "create", "bytes")):
        subprocess.run(
            [sys.executable, "-m", "svc", *words], env=environment, check=True, stdout=subprocess.DEVNULL
        )
    api = connect(server, Sessions(base / "home"))
    return api, api.repo.find("bench", "bytes").id


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--packs", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        base = Path(folder)
        relay, url = start_relay(base / "relay")
        try:
            api, repo_id = signed_in(base, url)
            figures = [_round(api, repo_id, relay.pid, options.packs) for _ in range(options.rounds)]
        finally:
            relay.terminate()
            relay.wait(20)
    for size, cost in figures:
        print(
            f"{size / 1e6:.0f} MB: CPU {size / 1e6 / cost.cpu:5.0f} MB/s, wall {size / 1e6 / cost.wall:5.0f}"
        )
    median = statistics.median(size / 1e6 / cost.cpu for size, cost in figures)
    print(f"median {median:.0f} MB/s of relay CPU")
    return 0


def _round(api: Api, repo_id: str, pid: int, count: int) -> tuple[int, Cost]:
    cost, size = Cost(), 0
    for pack in packs(count):
        began = time.perf_counter()
        with serving(pid, cost):
            api.payload.put_pack(repo_id, pack)
        cost.wall += time.perf_counter() - began
        size += pack.size
    return size, cost


if __name__ == "__main__":
    sys.exit(main())
