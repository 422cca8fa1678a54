"""Where a large file is while it arrives, and that nothing of it stays behind."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import rmtree

import pytest

from localstore.core.model.limits import MIB
from localstore.folder.positioned import write_at
from localstore.sync.transfer import fill
from svc.api.sync_transport import BranchTransport
from tests.svc.conftest import Svc
from tests.svc.flows.test_large_files import arriving, killed, made, noise, pushed, within

LINK = [".gitignore", "id", "repo.json", "state.json"]


def listed(folder: Path) -> list[str]:
    return sorted(one.name for one in (folder / ".svc").iterdir())


@pytest.fixture
def pair(alice: Svc, tmp_path: Path) -> Path:
    """A clone in step with the folder we are in, whose repository holds `big.bin` in two versions."""
    full = made(alice, "model")
    Path("big.bin").write_bytes(noise(31, 17 * MIB))
    pushed(alice)
    assert alice("repo", "clone", full, str(tmp_path / "b")).code == 0
    Path("big.bin").write_bytes(noise(32, 36 * MIB))
    pushed(alice)
    return tmp_path / "b"


def test_the_link_has_its_two_files_alone_while_a_large_file_arrives(
    alice: Svc, pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[list[str], int]] = []
    real = BranchTransport.fetch_pack

    def watched(self: BranchTransport, digests: Sequence[bytes]) -> Iterator[bytes]:
        for piece in real(self, digests):
            seen.append((listed(pair), len(arriving(pair))))
            yield piece

    monkeypatch.setattr(BranchTransport, "fetch_pack", watched)
    assert within(pair, alice, "pull") == 0
    assert seen and all(one == (LINK, 1) for one in seen)
    assert (listed(pair), arriving(pair)) == (LINK, [])
    assert (pair / "big.bin").read_bytes() == Path("big.bin").read_bytes()


def test_a_part_is_never_pushed_whatever_the_rules_say_and_goes_on_later(alice: Svc, pair: Path) -> None:
    assert within(pair, alice, "pull") == 0
    with contextlib.chdir(pair):
        first = json.loads(alice("log", "--json", "id").out)[1]["id"]
        killed("fetch_pack", 1, "restore", "big.bin", "--source", first)
        [part] = arriving(pair)
        Path(".svcignore").write_text("!*.tmp\n!.svc-*\n")
        Path("new.tmp").write_text("a file of the user's\n")
        assert json.loads(alice("status", "--json").out)["new"] == [".svcignore", "new.tmp"]
        assert pushed(alice)["sent"] == [".svcignore", "new.tmp"]
        assert arriving(pair) == [part]
        assert alice("restore", "big.bin", "--source", first).code == 0
    assert (pair / "big.bin").read_bytes() == noise(31, 17 * MIB)
    assert arriving(pair) == []


def test_an_abandoned_download_is_removed_by_the_next_pull_that_ends(alice: Svc, pair: Path) -> None:
    with contextlib.chdir(pair):
        killed("fetch_pack", 1, "pull")
    assert len(arriving(pair)) == 1
    Path("big.bin").write_bytes(b"\0small now")
    pushed(alice)
    assert within(pair, alice, "pull") == 0
    assert (arriving(pair), (pair / "big.bin").read_bytes()) == ([], b"\0small now")


def test_an_abandoned_download_is_removed_after_the_folder_was_linked_anew(alice: Svc, pair: Path) -> None:
    full = json.loads((pair / ".svc" / "repo.json").read_text())["repo"]
    with contextlib.chdir(pair):
        killed("fetch_pack", 1, "pull")
        rmtree(".svc")
        assert alice("repo", "init", full).code == 0
        assert alice("pull", "--merge").code == 0
    assert arriving(pair) == []


def test_a_full_disk_is_named_and_the_download_goes_on_when_there_is_room(
    alice: Svc, pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = 0

    def full(fd: int, data: bytes, offset: int) -> None:
        nonlocal written
        written += len(data)
        if written > 20 * MIB:
            raise OSError(28, "No space left on device")
        write_at(fd, data, offset)

    with monkeypatch.context() as patch, contextlib.chdir(pair):
        patch.setattr(fill, "write_at", full)
        answer = alice("pull")
    assert (answer.code, answer.out) == (1, "")
    assert f"No space left on device: {pair}; free some space, then try again" in answer.err
    assert (pair / "big.bin").read_bytes() == noise(31, 17 * MIB)
    assert listed(pair) == LINK
    [part] = arriving(pair)
    assert part.stat().st_size > 16 * MIB
    assert within(pair, alice, "pull") == 0
    assert (arriving(pair), (pair / "big.bin").stat().st_size) == ([], 36 * MIB)
