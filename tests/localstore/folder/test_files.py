from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from localstore.folder import files as module
from localstore.folder.files import Blocked, FetchedFile, Files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    folder.mkdir()
    return folder


def test_creates_directories_on_the_way_and_reads_back(root: Path) -> None:
    files = Files(root)
    files.create("a/b/c.txt", [b"one ", b"two"], None, sync=True)
    assert files.read("a/b/c.txt") == b"one two"
    assert b"".join(files.chunks("a/b/c.txt")) == b"one two"
    assert files.names("a/b") == ["c.txt"]
    with pytest.raises(FileExistsError):
        files.create("a/b/c.txt", [b"x"], None, sync=False)
    files.remove("a/b/c.txt")
    files.prune("a/b/c.txt")
    assert list(root.iterdir()) == []


def test_never_follows_a_link_out_of_the_folder(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"theirs")
    (root / "d").symlink_to(outside)
    (root / "link").symlink_to(outside / "secret")
    files = Files(root)
    with pytest.raises(Blocked):
        files.create("d/new", [b"mine"], None, sync=False)
    with pytest.raises(Blocked):
        files.move("d/secret", "stolen")
    with pytest.raises(OSError):
        files.read("link")
    assert files.stat("d/secret") is None
    assert sorted(p.name for p in outside.iterdir()) == ["secret"]


def test_a_directory_swapped_for_a_link_between_two_writes_leads_nowhere(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    files = Files(root)
    files.create("d/one", [b"1"], None, sync=False)
    files.forget()
    (root / "d").rename(root / "e")
    (root / "d").symlink_to(outside)
    with pytest.raises(Blocked):
        files.create("d/two", [b"2"], None, sync=False)
    assert list(outside.iterdir()) == []


def test_a_removed_directory_is_not_written_to_through_its_old_descriptor(root: Path) -> None:
    files = Files(root)
    files.create("d/one", [b"1"], None, sync=False)
    (root / "d/one").unlink()
    (root / "d").rmdir()
    files.create("d/two", [b"2"], None, sync=False)
    assert (root / "d/two").read_bytes() == b"2"


@pytest.mark.parametrize("native", [True, False])
def test_exchange_and_move(root: Path, native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.setattr(module, "_libc_function", lambda name: None)
    files = Files(root)
    files.create("a", [b"A"], None, sync=False)
    files.create("d/b", [b"B"], None, sync=False)
    files.exchange("a", "d/b")
    assert (files.read("a"), files.read("d/b")) == (b"B", b"A")
    with pytest.raises(FileExistsError):
        files.move("a", "d/b")
    files.move("a", "d/c")
    assert sorted(path.name for path in (root / "d").iterdir()) == ["b", "c"]
    with pytest.raises(FileNotFoundError):
        files.exchange("d/c", "missing")


def test_a_fetched_file_is_copied_into_another_file_system(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mounted(*_: object) -> bool:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    files = Files(root)
    files.create("part", [b"bytes"], None, sync=False)
    monkeypatch.setattr(module, "_renameat2", mounted)
    info = files.place(FetchedFile("part"), "d/file", 0o640, sync=True)
    assert (info.st_ino, info.st_mode & 0o777) == ((root / "d/file").stat().st_ino, 0o640)
    assert (root / "d/file").read_bytes() == b"bytes"
    assert not (root / "part").exists()


def test_a_failed_write_leaves_nothing(root: Path) -> None:
    def broken() -> object:
        yield b"begun"
        raise OSError(28, "No space left on device")

    files = Files(root)
    with pytest.raises(OSError, match="No space"):
        files.create("x", broken(), None, sync=False)  # type: ignore[arg-type]
    assert list(root.iterdir()) == []


def test_a_special_file_is_not_opened(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(OSError):
        Files(root).read("pipe")


def test_a_whole_file_is_read_only_where_it_is_one_and_small_enough(root: Path) -> None:
    files = Files(root)
    (root / "full").write_bytes(b"12345")
    (root / "empty").write_bytes(b"")
    (root / "link").symlink_to("full")
    (root / "d").mkdir()
    assert files.read_up_to("full", 5) == b"12345"
    assert files.read_up_to("full", 4) is None
    assert files.read_up_to("empty", 0) == b""
    for nothing in ("link", "d", "no", "no/no", "full/no"):
        assert files.read_up_to(nothing, 9) is None
    files.close()


def test_a_file_that_grows_while_it_is_read_is_read_to_its_end_or_not_at_all(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, fstat = Files(root), os.fstat
    (root / "grows").write_bytes(b"1")

    def then_it_grows(fd: int) -> os.stat_result:
        before = fstat(fd)
        (root / "grows").write_bytes(b"123456789")
        return before

    monkeypatch.setattr(os, "fstat", then_it_grows)
    assert files.read_up_to("grows", 9) == b"123456789"
    (root / "grows").write_bytes(b"1")
    assert files.read_up_to("grows", 8) is None
