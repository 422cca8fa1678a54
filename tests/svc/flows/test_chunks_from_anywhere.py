"""A large file takes the chunks that files of this machine hold, and an interrupted one keeps every chunk."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from blake3 import blake3

from localstore.core.errors import ServerMisbehaved
from localstore.core.model.limits import MIB
from localstore.core.storage.chunks import ChunkRow
from localstore.folder.chunking import cut_into_chunks
from localstore.sync.transfer.fill import Filled, KnownFile, OtherBytes, fill
from tests.svc.conftest import ROOT, Svc, clean_environment
from tests.svc.flows.test_large_files import arriving, made, noise, pushed, within

# Runs a command, and adds what each fetched pack brought to a file. With a second argument the command kills
# itself after so many bytes.
COUNTING = """
import os, signal, sys
from svc.api.sync_transport import BranchTransport
counted, left = sys.argv[1], int(sys.argv[2])
real = BranchTransport.fetch_pack
def counting(self, digests):
    global left
    for piece in real(self, digests):
        with open(counted, "ab") as file:
            file.write(b"%d\\n" % len(piece))
        yield piece
        left -= len(piece)
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
BranchTransport.fetch_pack = counting
from svc.cmd.frame.app import run
sys.exit(run(sys.argv[3:]))
"""


def counted(file: Path, after: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command; killed after so many fetched bytes."""
    settings = {name: value for name, value in os.environ.items() if name.startswith("SVC_")}
    return subprocess.run(
        [sys.executable, "-c", COUNTING, str(file), str(after), *words],
        env=clean_environment(**settings, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=300,
    )


def total(file: Path) -> int:
    return sum(map(int, file.read_text().split()))


def tuned(base: bytes) -> tuple[bytes, int]:
    """The base with some of its bytes changed, as training changes some layers; and how many."""
    changed = bytearray(base)
    at, length = len(base) // 3, len(base) // 12
    changed[at : at + length] = noise(99, length)
    return bytes(changed), length


def test_a_clone_of_a_model_and_its_fine_tune_moves_their_difference(alice: Svc, tmp_path: Path) -> None:
    full = made(alice, "model")
    base = noise(41, 40 * MIB)
    tune, difference = tuned(base)
    Path("base.gguf").write_bytes(base)
    Path("sub").mkdir()
    Path("sub/tuned.gguf").write_bytes(tune)
    pushed(alice)
    target, figures = tmp_path / "b", tmp_path / "bytes"
    done = counted(figures, 1 << 40, "repo", "clone", full, str(target))
    assert done.returncode == 0, done.stderr
    assert "of them were on this machine and not fetched" in done.stderr
    assert (target / "base.gguf").read_bytes() == base
    assert (target / "sub/tuned.gguf").read_bytes() == tune
    assert total(figures) <= 1.1 * len(base) + difference

    again = alice("repo", "clone", full, str(tmp_path / "c"), "--json", "bytes,reused")
    told = json.loads(again.out)
    assert told["bytes"] == len(base) + len(tune)
    assert 0.9 * (len(base) - difference) < told["reused"] < len(base)


def test_a_pull_of_a_renamed_large_file_copies_it(
    alice: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = made(alice, "model")
    base = noise(43, 20 * MIB)
    Path("base.gguf").write_bytes(base)
    pushed(alice)
    target, figures = tmp_path / "b", tmp_path / "bytes"
    assert alice("repo", "clone", full, str(target)).code == 0
    Path("base.gguf").rename("other.gguf")
    pushed(alice)
    monkeypatch.chdir(target)
    figures.write_text("")
    done = counted(figures, 1 << 40, "pull")
    assert done.returncode == 0, done.stderr
    assert (target / "other.gguf").read_bytes() == base
    assert not (target / "base.gguf").exists()
    assert total(figures) < MIB


def test_a_pull_takes_chunks_of_a_file_at_another_path(alice: Svc, tmp_path: Path) -> None:
    full = made(alice, "model")
    base = noise(42, 24 * MIB)
    Path("base.gguf").write_bytes(base)
    pushed(alice)
    target, figures = tmp_path / "b", tmp_path / "bytes"
    assert alice("repo", "clone", full, str(target)).code == 0
    tune, difference = tuned(base)
    Path("tuned.gguf").write_bytes(tune)
    pushed(alice)
    with contextlib.chdir(target):
        done = counted(figures, 1 << 40, "pull")
    assert done.returncode == 0, done.stderr
    assert (target / "tuned.gguf").read_bytes() == tune
    assert total(figures) <= 1.3 * difference
    assert within(target, alice, "status") == 0


def test_ten_kills_in_one_clone_fetch_next_to_nothing_twice(alice: Svc, tmp_path: Path) -> None:
    full = made(alice, "model")
    data = noise(43, 44 * MIB)
    Path("big.bin").write_bytes(data)
    pushed(alice)
    target, figures = tmp_path / "b", tmp_path / "bytes"
    rng = random.Random(7)
    for _ in range(10):
        done = counted(figures, rng.randrange(3 * MIB, 4 * MIB), "repo", "clone", full, str(target))
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert len(arriving(target)) == 1
    assert counted(figures, 1 << 40, "repo", "clone", full, str(target)).returncode == 0
    assert (target / "big.bin").read_bytes() == data
    assert not arriving(target)
    assert total(figures) < 1.06 * len(data), "a pack's table comes again, and chunks that were under way"


# --- one file


class Store:
    """Chunks as a relay has them; counts those that are asked for."""

    def __init__(self, data: bytes, path: Path) -> None:
        path.write_bytes(data)
        with path.open("rb", buffering=0) as file:
            self.listed = cut_into_chunks(file)
        self.chunks = {one.digest: data[one.offset : one.offset + one.size] for one in self.listed}
        self.rows = [ChunkRow(one.digest.hex(), one.size) for one in self.listed]
        self.digest = blake3(data).digest()
        self.sent = 0

    def fetch(self, sizes: Mapping[bytes, int]) -> Iterator[tuple[bytes, bytes]]:
        """In another order than asked."""
        for digest in sorted(sizes):
            if digest in self.chunks:
                self.sent += len(self.chunks[digest])
                yield digest, self.chunks[digest]

    def known(self, path: Path) -> KnownFile:
        return KnownFile(lambda: os.open(path, os.O_RDONLY), lambda fd: self.listed)


def filled(store: Store, target: Path, *known: KnownFile) -> Filled:
    fd = os.open(target, os.O_RDWR | os.O_CREAT)
    try:
        return fill(fd, store.rows, store.digest, known, store.fetch)
    finally:
        os.close(fd)


DATA = noise(51, 3 * MIB) + bytes(MIB) + noise(52, MIB)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(DATA, tmp_path / "stored")


def test_a_chunk_that_repeats_is_fetched_once(store: Store, tmp_path: Path) -> None:
    told = filled(store, tmp_path / "new")
    assert (tmp_path / "new").read_bytes() == DATA
    assert told.fetched == store.sent < 4.3 * MIB
    assert told.fetched + told.copied == len(DATA)


def test_chunks_of_a_file_that_holds_them_are_not_fetched(store: Store, tmp_path: Path) -> None:
    told = filled(store, tmp_path / "new", store.known(tmp_path / "stored"))
    assert (tmp_path / "new").read_bytes() == DATA
    assert (told, store.sent) == (Filled(0, len(DATA), 0), 0)


def test_a_file_that_changed_or_went_is_no_source(store: Store, tmp_path: Path) -> None:
    changed = bytearray(DATA)
    changed[MIB : MIB + 10] = b"0123456789"
    (tmp_path / "stored").write_bytes(changed)
    told = filled(store, tmp_path / "new", store.known(tmp_path / "gone"), store.known(tmp_path / "stored"))
    assert (tmp_path / "new").read_bytes() == DATA
    assert 0 < told.fetched == store.sent < MIB


def test_what_is_in_place_stays_wherever_it_is(store: Store, tmp_path: Path) -> None:
    torn = bytearray(DATA)
    torn[MIB : 2 * MIB] = bytes(MIB)
    (tmp_path / "new").write_bytes(torn + b"too long")
    told = filled(store, tmp_path / "new")
    assert (tmp_path / "new").read_bytes() == DATA
    assert MIB <= told.fetched == store.sent < 1.3 * MIB
    assert told.kept == len(DATA) - told.fetched


def test_missing_chunks_and_other_bytes_are_errors(store: Store, tmp_path: Path) -> None:
    store.chunks.popitem()
    with pytest.raises(ServerMisbehaved, match="did not send all chunks"):
        filled(store, tmp_path / "new")
    whole = Store(DATA, tmp_path / "stored")
    whole.digest = bytes(32)
    with pytest.raises(OtherBytes):
        filled(whole, tmp_path / "new")
    whole.rows[3] = ChunkRow(whole.rows[3].blake3, whole.rows[3].size + 1)
    with pytest.raises(OtherBytes):
        filled(whole, tmp_path / "other")
