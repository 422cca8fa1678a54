"""Tries to exhaust a relay's memory and cores by reading from it, and measures what other people notice.

    python -m scripts.attack.memory [--frames 160] [--fetches 8] [--archives 16] [--tree 40]

A relay starts on a free port of the loopback address with a new data folder. An attacker uploads tiny objects
in the largest frames that the relay accepts. Clients that are not signed in then request these objects, many
at once, and read nothing of the answers for a while. The same is done with archives of a large tree.
Meanwhile other accounts send small requests. The largest resident memory of the relay and the median time of
those requests are compared with the limits: half of a container of 4 GiB, and 100 ms. The exit code is 1 if
one is exceeded.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import secrets
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec
import zstandard

from localstore.core.encoding import digest
from localstore.core.model.limits import FRAME_RAW_MAX, KIB, MIB
from localstore.core.storage.frame import ZSTD
from localstore.core.storage.pack import Frame, FrameRow, ObjectRow, Pack, write_packs
from scripts.fuzz.api import RelayProcess, requests_of, serving
from tests.relay.auth.people import Device
from tests.relay.conftest import Account
from tests.relay.histories import Repository, create

RESIDENT_LIMIT, MEDIAN_LIMIT = 2048 * MIB, 0.1  # bytes, seconds
PACK_FRAMES = 32  # of the largest frames: a pack unpacks to at most 1 GiB
SIZES = (FRAME_RAW_MAX, MIB, 512 * KIB)
LAZY = 1.0  # seconds for which a reader takes nothing


@dataclass
class Watch:
    """Sends small requests of other accounts, and samples the relay's memory. `took`: seconds of each
    request; `refused`: number of refused ones; `peak`: largest memory in bytes."""

    served: RelayProcess
    path: str
    took: list[float] = field(default_factory=list)
    refused: int = 0
    peak: int = 0

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """A context during which small requests are sent and the relay's memory is sampled."""
        stop = threading.Event()
        threads = [threading.Thread(target=work, args=(stop,)) for work in (self._ask, self._sample)]
        for one in threads:
            one.start()
        try:
            yield
        finally:
            stop.set()
            for one in threads:
                one.join()

    def _ask(self, stop: threading.Event) -> None:
        with httpx.Client(base_url=self.served.url, trust_env=False, timeout=60) as http:
            while not stop.is_set() and self.served.alive():
                began = time.perf_counter()
                with contextlib.suppress(httpx.HTTPError):
                    self.refused += http.get(self.path).status_code != 200
                self.took.append(time.perf_counter() - began)
                time.sleep(0.02)

    def _sample(self, stop: threading.Event) -> None:
        while not stop.is_set() and self.served.alive():
            with contextlib.suppress(OSError, IndexError):
                self.peak = max(self.peak, self.served.anonymous_memory())
            time.sleep(0.01)


def hostile_pack(raw_len: int, frames: int, tiny: list[bytes]) -> bytes:
    """A pack of `frames` frames of `raw_len` bytes. Each frame has a filler that compresses to almost
    nothing, then a few random bytes as an object. The digests of these objects are added to `tiny`."""
    made = []
    for _ in range(frames):
        small = secrets.token_bytes(16)
        filler = secrets.token_bytes(8) + bytes(raw_len - len(small) - 8)
        rows = [ObjectRow(digest(filler), len(filler)), ObjectRow(digest(small), len(small))]
        stored = zstandard.ZstdCompressor(level=1).compress(filler + small)
        made.append(Frame(FrameRow(ZSTD, raw_len, len(stored), rows), stored))
        tiny.append(digest(small))
    return b"".join(Pack(msgspec.msgpack.encode([one.row for one in made]), made).parts())


def upload(http: httpx.Client, repo: Repository, frames: int) -> tuple[list[bytes], int, int]:
    """Upload tiny objects in the largest frames that the relay accepts. Returns (digests of the objects,
    bytes sent, bytes of a frame)."""
    for raw_len in SIZES:
        tiny: list[bytes] = []
        sent = 0
        while len(tiny) < frames * (FRAME_RAW_MAX // raw_len if raw_len < FRAME_RAW_MAX else 1):
            pack = hostile_pack(raw_len, PACK_FRAMES if raw_len == FRAME_RAW_MAX else 512, tiny)
            table = pack[12 : 12 + int.from_bytes(pack[8:12], "big")]
            answer = http.post(f"{repo.url}/packs", content=pack, extensions={"blake3": digest(table)})
            if answer.status_code != 201:
                print(f"  frames of {raw_len // KIB} KiB: {answer.status_code} {answer.json().get('detail')}")
                break
            sent += len(pack)
        else:
            return tiny, sent, raw_len
    return [], 0, 0


def fetch(url: str, path: str, body: bytes, begin: threading.Barrier) -> tuple[int, int]:
    """Send a request without signing in, and read nothing of its answer for a while. `begin`: the barrier at
    which all clients wait, so that they send at the same time. Returns (status, bytes received)."""
    got = 0
    with httpx.Client(base_url=url, trust_env=False, timeout=120) as http:
        begin.wait()
        try:
            with http.stream("POST" if body else "GET", path, content=body or None) as answer:
                time.sleep(LAZY)
                for part in answer.iter_raw():
                    got += len(part)
                return answer.status_code, got
        except httpx.HTTPError:
            return 0, got


def at_once(url: str, path: str, body: bytes, many: int) -> list[tuple[int, int]]:
    begin = threading.Barrier(many)
    with ThreadPoolExecutor(many) as threads:
        return list(threads.map(lambda _: fetch(url, path, body, begin), range(many)))


def report(name: str, watch: Watch, answers: list[tuple[int, int]], seconds: float) -> bool:
    """Print the results of an attack. `answers`: (status, bytes received) of each of its requests. Returns
    whether the limits were kept."""
    statuses = sorted(status for status, _ in answers)
    counted = ", ".join(f"{statuses.count(one)}x {one or 'cut'}" for one in dict.fromkeys(statuses))
    median = statistics.median(watch.took) if watch.took else float("inf")
    worst = max(watch.took, default=float("inf"))
    alive, peak = watch.served.alive(), watch.peak
    life = f"relay {'lives' if alive else 'DIED'}, peak {peak / MIB:.0f} MiB (limit {RESIDENT_LIMIT // MIB})"
    good = alive and watch.peak <= RESIDENT_LIMIT and median <= MEDIAN_LIMIT and not watch.refused
    print(
        f"{name}: {len(answers)} at once in {seconds:.1f} s ({counted}); {life}; "
        f"others: {len(watch.took)} requests, median {median * 1000:.1f} ms "
        f"(limit {MEDIAN_LIMIT * 1000:.0f}), worst {worst * 1000:.0f} ms, {watch.refused} refused: "
        f"{'holds' if good else 'BROKEN'}"
    )
    return good


def sign_in(url: str) -> Account:
    device, handle = Device(url), f"u{secrets.token_hex(6)}"
    granted = device.sign_in(handle).json()
    token = device.client(granted["token"]).token
    assert token is not None
    return Account(granted["user_id"], handle, device.key, granted["session_id"], token)


def large_tree(repo: Repository, mib: int) -> str:
    """Seal `mib` files of 1 MiB each, which compress to about a half. Returns the id of the seal."""
    chance = random.Random(1)
    words = [secrets.token_hex(4).encode() for _ in range(4000)]
    texts = {f"text/{n:04}.txt": b" ".join(chance.choice(words) for _ in range(MIB // 9)) for n in range(mib)}
    return repo.seal(texts)[0]


def attack(asked: argparse.Namespace, served: RelayProcess) -> bool:
    owner = sign_in(served.url)
    good = True
    with requests_of(owner, served.url) as http:
        repo = create(http, owner, "target", visibility="public")
        tiny, sent, raw_len = upload(http, repo, asked.frames)
        print(f"{sent} bytes uploaded: {len(tiny)} tiny objects in frames of {raw_len // KIB} KiB")
        lots: list[tuple[str, str, bytes, int]] = [
            ("packs/fetch", f"{repo.url}/packs/fetch", b"".join(tiny[:60_000]), many)
            for many in (1, asked.fetches)
        ]
        many_small = [secrets.token_bytes(24) for _ in range(60_000)]
        for pack in write_packs((digest(one), one, True) for one in many_small):
            http.post(
                f"{repo.url}/packs", content=b"".join(pack.parts()), extensions={"blake3": pack.toc_digest}
            ).raise_for_status()
        half = b"".join(digest(one) for one in many_small[::2])
        lots.append(("30,000 digests", f"{repo.url}/packs/fetch", half, 4 * asked.fetches))
        if asked.archives:
            head = large_tree(repo, asked.tree)
            lots.append(("archive", f"{repo.url}/archive/{head}.tar.gz", b"", asked.archives))
        for name, path, body, many in lots:
            watch = Watch(served, "/api/v1/repos?limit=5")
            began = time.perf_counter()
            with watch.watching():
                answers = at_once(served.url, path, body, many)
            good &= report(name, watch, answers, time.perf_counter() - began)
            if not served.alive():
                return False
    return good


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--frames", type=int, default=160, help="of 32 MiB, or as many bytes in smaller ones")
    parser.add_argument("--fetches", type=int, default=8, help="answers asked for at once")
    parser.add_argument("--archives", type=int, default=16, help="asked for at once; 0: none")
    parser.add_argument("--tree", type=int, default=40, help="MiB of text in the archive")
    asked = parser.parse_args()
    variables: dict[str, Any] = {"TR_RATE_LIMITS": "on"}
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), **variables) as served:
        good = attack(asked, served)
    print("every limit holds" if good else "a limit is BROKEN")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
