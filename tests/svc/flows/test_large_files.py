"""Files above the blob cap with the real command and a real relay: pushed, pulled, cloned, interrupted."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from localstore.core.model.limits import MIB
from localstore.folder import chunking
from localstore.sync.transfer import chunked_upload
from tests.svc.conftest import ROOT, Svc, clean_environment


def noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def made(alice: Svc, kind: str, name: str = "weights") -> str:
    """A repository of this kind, linked to the folder we are in; OWNER/NAME."""
    assert alice("repo", "create", name, "--kind", kind).code == 0
    full = f"{os.environ['TEST_HANDLE']}/{name}"
    assert alice("repo", "init", full).code == 0
    return full


def pushed(alice: Svc) -> dict[str, object]:
    answer = alice("push", "-m", "work", "--json")
    assert answer.code == 0, answer.err
    found: dict[str, object] = json.loads(answer.out)
    return found


def arriving(folder: Path) -> list[Path]:
    """Temporary files of downloads under way or interrupted."""
    return sorted(folder.glob(".svc-*.tmp"))


def within(folder: Path, alice: Svc, *words: str) -> int:
    """Exit code of a command in another folder."""
    with contextlib.chdir(folder):
        return alice(*words).code


# Runs a command and kills its own process with SIGKILL in the middle of the Nth transfer.
DYING = """
import os, signal, sys
from svc.api.sync_transport import BranchTransport
name, left = sys.argv[1], int(sys.argv[2])
real = getattr(BranchTransport, name)
def dying(self, *arguments):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, *arguments)
setattr(BranchTransport, name, dying)
from svc.cmd.frame.app import run
sys.exit(run(sys.argv[3:]))
"""


def killed(transfer: str, after: int, *words: str) -> None:
    """The command dies when it begins the transfer after `after` ones."""
    settings = {name: value for name, value in os.environ.items() if name.startswith("SVC_")}
    done = subprocess.run(
        [sys.executable, "-c", DYING, transfer, str(after), *words],
        env=clean_environment(**settings, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == -9, done.stderr


def test_large_files_of_a_model_are_pushed_pulled_and_cloned(alice: Svc, tmp_path: Path) -> None:
    full = made(alice, "model")
    large, text = noise(1, 17 * MIB + 5), "é".encode() * (14 * MIB)
    Path("a.bin").write_bytes(large)
    Path("copy.bin").write_bytes(large)
    Path("long.txt").write_bytes(text)  # over the cap of a text, so it is bytes
    Path("small.bin").write_bytes(b"\0\1")
    first = pushed(alice)
    assert first["sent"] == ["a.bin", "copy.bin", "long.txt", "small.bin"]
    assert len(large) < int(str(first["bytes"])) < len(large) + MIB, "a copy costs nothing, a pattern little"
    assert alice("repo", "clone", full, str(tmp_path / "b")).code == 0
    for name in ("a.bin", "copy.bin", "long.txt", "small.bin"):
        assert (tmp_path / "b" / name).read_bytes() == Path(name).read_bytes()
    assert not arriving(tmp_path / "b")

    edited = large[: 5 * MIB] + b"inserted" + large[5 * MIB :]
    Path("a.bin").write_bytes(edited)
    second = pushed(alice)
    assert int(str(second["bytes"])) < MIB, "chunks that stayed the same are not sent again"
    assert within(tmp_path / "b", alice, "pull") == 0
    assert (tmp_path / "b" / "a.bin").read_bytes() == edited
    assert (tmp_path / "b" / "copy.bin").read_bytes() == large
    assert within(tmp_path / "b", alice, "repo", "status") == 0
    assert not arriving(tmp_path / "b")


def test_a_push_reads_a_large_file_once_to_hash_and_to_cut_it(
    alice: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(alice, "model")
    Path("a.bin").write_bytes(noise(1, 17 * MIB))
    with monkeypatch.context() as patch:
        patch.setattr(chunked_upload, "_cut", None)  # the second pass
        assert pushed(alice)["sent"] == ["a.bin"]
    Path("a.bin").write_bytes(noise(2, 17 * MIB))
    monkeypatch.setattr(chunking, "KEPT_BYTES", 0)
    assert pushed(alice)["sent"] == ["a.bin"], "what was not kept is cut again"


def test_a_killed_upload_goes_on_where_it_was(alice: Svc) -> None:
    made(alice, "dataset")
    Path("big.bin").write_bytes(noise(3, 40 * MIB))
    killed("upload_pack", 2, "push", "-m", "dies")
    again = pushed(alice)
    assert again["sent"] == ["big.bin"]
    assert int(str(again["bytes"])) < 10 * MIB, "two packs of about 16 MiB were there"


def test_an_upload_killed_before_its_manifest_sends_only_that(alice: Svc) -> None:
    made(alice, "model")
    Path("big.bin").write_bytes(noise(4, 17 * MIB))
    killed("put_manifest", 0, "push", "-m", "dies")
    again = pushed(alice)
    assert (again["sent"], int(str(again["bytes"])) < MIB) == (["big.bin"], True)


def test_a_killed_clone_goes_on_where_it_was(alice: Svc, tmp_path: Path) -> None:
    full = made(alice, "model")
    data = noise(5, 40 * MIB)
    Path("big.bin").write_bytes(data)
    pushed(alice)
    target = tmp_path / "b"
    killed("fetch_pack", 2, "repo", "clone", full, str(target))
    [partial] = arriving(target)
    begun = partial.stat().st_size
    assert 20 * MIB < begun < 40 * MIB
    with partial.open("r+b") as file:  # a torn write at its end
        file.seek(begun - 1000)
        file.write(bytes(1000))
    assert alice("repo", "clone", full, str(target)).code == 0
    assert (target / "big.bin").read_bytes() == data
    assert not arriving(target)


def test_a_killed_pull_goes_on_and_leaves_the_old_version_meanwhile(alice: Svc, tmp_path: Path) -> None:
    full = made(alice, "model")
    old, new = noise(6, 17 * MIB), noise(7, 40 * MIB)
    Path("big.bin").write_bytes(old)
    pushed(alice)
    target = tmp_path / "b"
    assert alice("repo", "clone", full, str(target)).code == 0
    Path("big.bin").write_bytes(new)
    pushed(alice)
    with contextlib.chdir(target):
        killed("fetch_pack", 1, "pull")
    assert (target / "big.bin").read_bytes() == old
    assert within(target, alice, "pull") == 0
    assert (target / "big.bin").read_bytes() == new
    assert sorted(one.name for one in target.iterdir()) == [".svc", "big.bin"]


def test_a_restored_large_file_is_the_sealed_one(alice: Svc) -> None:
    made(alice, "model")
    data = noise(8, 17 * MIB)
    Path("big.bin").write_bytes(data)
    pushed(alice)
    Path("big.bin").write_bytes(b"gone wrong")
    assert alice("restore", "big.bin", "--yes").code == 0
    assert Path("big.bin").read_bytes() == data
