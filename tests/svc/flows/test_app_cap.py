"""An app's `.svc.yaml` raises the cap of a file up to 100 MiB, with the real command and a real relay."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstore.core.model.limits import APP_FILE_CLAMP, BLOB_FILE, BLOB_TREE, MIB
from localstore.sync.transfer import send
from tests.svc.conftest import Svc
from tests.svc.flows.test_large_files import made, noise, pushed, within


def manifest(mib: int) -> None:
    Path(".svc.yaml").write_text(f"kind: app\nlimits: {{max_file_mib: {mib}}}\n")


def sparse(name: str, size: int) -> None:
    """A binary of this size that is quick to make and to send."""
    with Path(name).open("wb") as file:
        file.write(b"\0" + name.encode())
        file.truncate(size)


def skips(answer: dict[str, object]) -> list[tuple[str, int, int]]:
    skipped = answer["skipped"]
    assert isinstance(skipped, list)
    return [(one["path"], one["size"], one["cap"]) for one in skipped]


@pytest.mark.parametrize("kind", ["app", "lib"])
def test_large_files_are_skipped_and_named(alice: Svc, kind: str) -> None:
    made(alice, kind)
    sparse("big.bin", BLOB_FILE + 1)
    Path("ok.txt").write_text("fine\n")
    answer = pushed(alice)
    assert (answer["sent"], skips(answer)) == (["ok.txt"], [("big.bin", BLOB_FILE + 1, BLOB_FILE)])
    assert ("max_file_mib" in alice("status").out) == (kind == "app")


def test_status_knows_the_kind_of_a_repository_before_the_first_push(alice: Svc) -> None:
    made(alice, "dataset")
    sparse("big.bin", BLOB_FILE + 1)
    assert alice("status").out == "new\tbig.bin\t\n"


def test_no_manifest_raises_the_cap_of_a_lib(alice: Svc) -> None:
    made(alice, "lib")
    manifest(64)
    sparse("big.bin", BLOB_FILE + 1)
    answer = pushed(alice)
    assert (answer["sent"], skips(answer)) == ([".svc.yaml"], [("big.bin", BLOB_FILE + 1, BLOB_FILE)])


def test_a_raised_cap_holds_in_the_push_that_raises_it_up_to_the_clamp(alice: Svc, tmp_path: Path) -> None:
    full = made(alice, "app")
    manifest(500)
    Path("(first).bin").write_bytes(noise(11, 17 * MIB))  # its name sorts before the manifest's
    Path("forty.bin").write_bytes(noise(12, 40 * MIB))
    sparse("most.bin", APP_FILE_CLAMP)
    sparse("over.bin", 101 * MIB)
    answer = pushed(alice)
    assert answer["sent"] == ["(first).bin", ".svc.yaml", "forty.bin", "most.bin"]
    assert answer["refused"] == {}
    assert skips(answer) == [("over.bin", 101 * MIB, APP_FILE_CLAMP)]
    assert alice("repo", "clone", full, str(tmp_path / "b")).code == 0
    for name in ("(first).bin", "forty.bin", "most.bin"):
        assert (tmp_path / "b" / name).read_bytes() == Path(name).read_bytes()
    assert not (tmp_path / "b" / "over.bin").exists()
    assert within(tmp_path / "b", alice, "status") == 0


def test_large_files_of_an_app_fit_together_or_are_reported(alice: Svc) -> None:
    made(alice, "app")
    manifest(100)
    for name in ("a.bin", "b.bin", "c.bin"):
        sparse(name, BLOB_TREE // 3 + 1)
    sparse("d.bin", MIB)
    answer = pushed(alice)
    assert answer["sent"] == [".svc.yaml", "a.bin", "b.bin", "d.bin"]
    assert skips(answer) == [("c.bin", BLOB_TREE // 3 + 1, BLOB_TREE)]


def test_a_lowered_cap_corners_nobody(alice: Svc, tmp_path: Path) -> None:
    full = made(alice, "app")
    manifest(20)
    sparse("big.bin", 17 * MIB)
    pushed(alice)
    manifest(1)
    Path("new.txt").write_text("new\n")
    answer = pushed(alice)
    assert (answer["sent"], answer["skipped"]) == ([".svc.yaml", "new.txt"], [])
    sparse("big.bin", 18 * MIB)
    edited = alice("push", "-m", "edit")
    assert "limits.max_file_mib in .svc.yaml raises it" in edited.err
    assert alice("repo", "clone", full, str(tmp_path / "b")).code == 0
    assert (tmp_path / "b" / "big.bin").stat().st_size == 17 * MIB, "the version that entered before stays"
    manifest(18)
    answer = pushed(alice)  # the lane of `.svc.yaml` has a new epoch by now, which its edit is told first
    assert (answer["sent"], answer["refused"]) == ([".svc.yaml", "big.bin"], {})


def test_bytes_that_an_earlier_svc_sent_as_one_object_can_be_pushed(
    alice: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(alice, "app")
    manifest(20)
    sparse("big.bin", 17 * MIB)
    with monkeypatch.context() as earlier:
        earlier.setattr(send, "_is_large", lambda device, update: False)
        assert "refused big.bin: its bytes did not arrive" in alice("push", "-m", "as one object").err
    answer = pushed(alice)
    assert (answer["sent"], answer["refused"]) == (["big.bin"], {})
