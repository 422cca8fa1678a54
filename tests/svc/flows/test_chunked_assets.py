"""Uploads of large assets that are interrupted, repeated, or of a file that changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localstore.core.errors import ServerUnreachable
from localstore.core.model.limits import MIB
from svc.api.payload import PayloadCalls
from svc.flows.assets import chunked
from tests.svc.conftest import Svc
from tests.svc.flows.test_large_files import made, noise, pushed

SIZE = 20 * MIB


@pytest.fixture
def released(alice: Svc) -> Svc:
    """alice in a folder with `dist/big.bin`, whose repository has a release v1."""
    made(alice, "lib")
    Path("a.txt").write_text("one\n")
    pushed(alice)
    assert alice("repo", "release", "create", "v1").code == 0
    Path("dist").mkdir()
    Path("dist/big.bin").write_bytes(noise(81, SIZE))
    return alice


@pytest.fixture
def packs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the packs that were sent."""
    sent: list[int] = []
    put = PayloadCalls.put_pack

    def noted(self: PayloadCalls, repo_id: str, pack: Any) -> None:
        put(self, repo_id, pack)
        sent.append(pack.size)

    monkeypatch.setattr(PayloadCalls, "put_pack", noted)
    return sent


def test_an_upload_goes_on_with_what_is_missing(
    released: Svc, packs: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put = PayloadCalls.put_pack

    def cut(self: PayloadCalls, repo_id: str, pack: Any) -> None:
        if len(packs) == 3:
            raise ServerUnreachable("the line is cut")
        put(self, repo_id, pack)

    with monkeypatch.context() as patch:
        patch.setattr(PayloadCalls, "put_pack", cut)
        assert released("repo", "release", "upload", "v1", "dist/big.bin").code == 1
    assert len(packs) == 3
    assert released("repo", "release", "upload", "v1", "dist/big.bin").code == 0
    assert SIZE < sum(packs) < SIZE + MIB
    assert released("repo", "release", "download", "v1", "-D", str(tmp_path / "got")).code == 0
    assert (tmp_path / "got/big.bin").read_bytes() == Path("dist/big.bin").read_bytes()


def test_what_is_there_is_not_sent_again(released: Svc, packs: list[int]) -> None:
    assert released("repo", "release", "upload", "v1", "dist/big.bin").code == 0
    packs.clear()
    assert released("repo", "release", "upload", "v1", "dist/big.bin").code == 0
    Path("dist/other.bin").write_bytes(Path("dist/big.bin").read_bytes())
    assert released("repo", "release", "upload", "v1", "dist/other.bin").code == 0
    assert packs == []
    Path("dist/big.bin").write_bytes(noise(82, SIZE))
    assert released("repo", "release", "upload", "v1", "dist/big.bin").code == 1
    assert packs == []
    assert released("repo", "release", "upload", "v1", "dist/big.bin", "--clobber").code == 0
    assert sum(packs) > SIZE


def test_a_file_that_changes_meanwhile_is_named(released: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = chunked.chunks_of

    def changing(*given: Any) -> Any:
        found = cut(*given)
        Path("dist/big.bin").write_bytes(noise(83, SIZE))
        return found

    monkeypatch.setattr(chunked, "chunks_of", changing)
    refused = released("repo", "release", "upload", "v1", "dist/big.bin")
    assert refused.code == 1
    assert "big.bin changed while it was sent; try again" in refused.err
    assert "big.bin" not in released("repo", "release", "view", "v1").out
