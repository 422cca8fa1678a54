from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from localstore.core.encoding import digest
from localstore.folder.files import Files
from localstore.folder.scan import scan
from localstore.folder.scan_result import Scan, ScanChanges
from localstore.folder.stat_cache import RACY, RecordedFolder, Stat


def looked(root: Path, seen: Mapping[str, RecordedFolder], known: Known) -> tuple[Scan, ScanChanges]:
    with closing(Files(root)) as files:
        return scan(files, seen, known)


def walk(root: Path, cache: Mapping[str, Stat] | None = None, tracked: Collection[str] = ()) -> Scan:
    """A walk after one that recorded `cache`, files of the root."""
    seen = {"": RecordedFolder.of([*cache.values()], b"")} if cache else {}
    return looked(root, seen, Known(tracked))[0]


class Known(frozenset[str]):
    def tracks(self, path: str) -> bool:
        return path in self

    def tracks_below(self, folder: str) -> bool:
        return any(path.startswith(folder + "/") for path in self)


def write(root: Path, path: str, data: bytes = b"x") -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return target


def test_finds_files_with_kind_size_and_digest(tmp_path: Path) -> None:
    write(tmp_path, "a/b.txt", b"text")
    write(tmp_path, "c.bin", b"\0bytes")
    found = walk(tmp_path).files
    assert {path: (stat.kind, stat.size, stat.digest) for path, stat in found.items()} == {
        "a/b.txt": ("text", 4, digest(b"text")),
        "c.bin": ("blob", 6, digest(b"\0bytes")),
    }


def test_rules_leave_files_out_but_not_those_that_are_tracked(tmp_path: Path) -> None:
    write(tmp_path, ".gitignore", b"*.log\nout/\n")
    for path in ("keep.txt", "new.log", "old.log", "out/old.txt", "out/new.txt", "node_modules/x"):
        write(tmp_path, path)
    found = walk(tmp_path, tracked={"old.log", "out/old.txt"})
    assert sorted(found.files) == [".gitignore", "keep.txt", "old.log", "out/old.txt"]
    assert found.ignored == 3


def test_what_it_cannot_take_is_reported_and_never_counts_as_removed(tmp_path: Path) -> None:
    write(tmp_path, "nested/.git/HEAD")
    write(tmp_path, "nested/a.txt")
    write(tmp_path, "other/.svc/repo.json")
    write(tmp_path, "home/.svc")
    write(tmp_path, "home/device.json")
    (tmp_path / "link").symlink_to("nested")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / os.fsdecode(b"bad\xff.txt")).write_bytes(b"x")
    write(tmp_path, "evil\u202e.txt")
    found = walk(tmp_path, tracked={"nested/a.txt", "link", "pipe"})
    reasons = {one.path: one.reason for one in found.skipped}
    assert reasons == {
        "nested": "nested repository",
        "other": "nested repository",
        "home": "svc's own data",
        "link": "symlink",
        "pipe": "special",
        "bad\\xff.txt": "not UTF-8",
        "evil\\u202e.txt": "unsafe name",
    }
    assert found.files == {}
    assert all(found.unknown(path) for path in ("nested/a.txt", "link", "pipe", "other/deep/file"))
    assert not found.unknown("gone.txt")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_folder_hides_its_files(tmp_path: Path) -> None:
    write(tmp_path, "d/a.txt").parent.chmod(0)
    try:
        found = walk(tmp_path, tracked={"d/a.txt"})
    finally:
        (tmp_path / "d").chmod(0o755)
    assert found.unknown("d/a.txt")
    assert found.skipped[0].reason.startswith("unreadable")


def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    target = write(tmp_path, "a.txt", b"old")
    old = target.stat()
    wrong = Stat(
        "a.txt", 3, old.st_mtime_ns, old.st_ctime_ns, old.st_ino, "text", digest(b"???"),
        max(old.st_mtime_ns, old.st_ctime_ns) + 10**10,
    )  # fmt: skip
    assert walk(tmp_path, {"a.txt": wrong}).files["a.txt"].digest == digest(b"???")


def test_a_file_hashed_right_after_it_changed_is_not_trusted(tmp_path: Path) -> None:
    """The same size within the clock's grain would otherwise hide the second save."""
    target = write(tmp_path, "a.txt", b"new")
    info = target.stat()
    raced = Stat(
        "a.txt", 3, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, "text", digest(b"old"),
        info.st_ctime_ns + RACY // 2,
    )  # fmt: skip
    found = walk(tmp_path, {"a.txt": raced})
    assert found.files["a.txt"].digest == digest(b"new")
    assert found.bytes_hashed == 3


def test_a_save_that_keeps_size_and_mtime_is_seen(tmp_path: Path) -> None:
    target = write(tmp_path, "a.txt", b"one")
    before = target.stat()
    first = walk(tmp_path).files["a.txt"]._replace(checked=before.st_ctime_ns + 10**12)
    target.write_bytes(b"two")
    os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))
    if target.stat().st_ctime_ns == before.st_ctime_ns:
        pytest.skip("the clock of this file system is too coarse")
    assert walk(tmp_path, {"a.txt": first}).files["a.txt"].digest == digest(b"two")


def trusting(seen: dict[str, RecordedFolder]) -> dict[str, RecordedFolder]:
    """The records of a walk made long after the files were written."""
    return {
        folder: RecordedFolder.of(
            [one._replace(checked=one.ctime + 10**12) for one in kept.stats()], kept.mark
        )
        for folder, kept in seen.items()
    }


def test_a_folder_that_lists_as_before_is_not_compared(tmp_path: Path) -> None:
    """The record is believed whole: another digest in it comes back, and a changed file is noticed."""
    write(tmp_path, "d/a.txt", b"old")
    write(tmp_path, "d/b.txt", b"old")
    seen = marked(tmp_path)
    lie = {folder: RecordedFolder.of([one._replace(digest=b"?" * 32) for one in kept.stats()], kept.mark)
           for folder, kept in seen.items()}  # fmt: skip
    found, news = looked(tmp_path, lie, Known())
    assert {one.digest for one in found.files.values()} == {b"?" * 32}
    assert not any(news)
    write(tmp_path, "d/a.txt", b"newer")
    found, news = looked(tmp_path, lie, Known())
    assert found.files["d/a.txt"].digest == digest(b"newer")
    assert found.files["d/b.txt"].digest == b"?" * 32
    assert [one.path for one in news.fresh] == ["d/a.txt"]


def marked(root: Path) -> dict[str, RecordedFolder]:
    """What is recorded of a tree whose files were still for long when they were hashed."""
    _, news = looked(root, {}, Known())
    first = trusting({folder: kept for folder, kept in news.folders.items() if kept is not None})
    _, news = looked(root, first, Known())
    seen = {**first, **{folder: kept for folder, kept in news.folders.items() if kept is not None}}
    assert all(kept.mark for kept in seen.values())
    return seen


def test_new_rules_are_applied_to_folders_that_did_not_change(tmp_path: Path) -> None:
    write(tmp_path, "d/e/a.log")
    write(tmp_path, "d/e/b.txt")
    seen = marked(tmp_path)
    write(tmp_path, ".gitignore", b"*.log\n")
    found, news = looked(tmp_path, seen, Known())
    assert sorted(found.files) == [".gitignore", "d/e/b.txt"]
    assert found.ignored == 1
    assert news.gone == ["d/e/a.log"]


@pytest.mark.parametrize("tracked", [Known(), Known({"d/a.log"})])
def test_a_folder_with_an_ignored_file_is_looked_at_each_time(tmp_path: Path, tracked: Known) -> None:
    """Whether the file is tracked may change, and no listing tells."""
    write(tmp_path, ".gitignore", b"*.log\n")
    write(tmp_path, "d/a.log")
    write(tmp_path, "d/b.txt")
    _, news = looked(tmp_path, {}, tracked)
    first = trusting({folder: kept for folder, kept in news.folders.items() if kept is not None})
    _, news = looked(tmp_path, first, tracked)
    seen = first | {folder: kept for folder, kept in news.folders.items() if kept is not None}
    assert seen["d/"].mark == b""
    assert "d/a.log" in looked(tmp_path, seen, Known({"d/a.log"}))[0].files
    assert looked(tmp_path, seen, Known())[0].ignored == 1


def test_a_folder_hashed_right_after_a_change_is_looked_at_again(tmp_path: Path) -> None:
    write(tmp_path, "d/a.txt")
    _, news = looked(tmp_path, {}, Known())
    recorded = news.folders["d/"]
    assert recorded is not None
    (stat,) = recorded.stats()
    soon = {"d/": RecordedFolder.of([stat._replace(checked=stat.ctime + RACY // 2)], b"")}
    _, news = looked(tmp_path, soon, Known())
    assert [one.path for one in news.fresh] == ["d/a.txt"]


def test_folders_and_files_that_went_are_news(tmp_path: Path) -> None:
    for path in ("d/a.txt", "d/b.txt", "e/f/c.txt"):
        write(tmp_path, path)
    seen = marked(tmp_path)
    (tmp_path / "d/a.txt").unlink()
    (tmp_path / "e/f/c.txt").unlink()
    (tmp_path / "e/f").rmdir()
    found, news = looked(tmp_path, seen, Known())
    assert sorted(found.files) == ["d/b.txt"]
    assert sorted(news.gone) == ["d/a.txt", "e/f/c.txt"]
    assert news.folders["e/f/"] is None


def test_a_file_that_became_something_else_is_not_taken_for_itself(tmp_path: Path) -> None:
    target = write(tmp_path, "d/a.txt")
    write(tmp_path, "d/b.txt")
    seen = marked(tmp_path)
    target.unlink()
    os.mkfifo(target)
    found, _ = looked(tmp_path, seen, Known())
    assert sorted(found.files) == ["d/b.txt"]
    assert [one.reason for one in found.skipped] == ["special"]


def test_a_folder_named_like_an_ignore_file_is_a_folder(tmp_path: Path) -> None:
    write(tmp_path, ".gitignore/a.txt")
    assert sorted(walk(tmp_path).files) == [".gitignore/a.txt"]
