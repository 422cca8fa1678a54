"""git's index is read as git itself reads it, and bytes that are none are refused."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from localstore.folder import git_index
from localstore.folder.git_index import IndexUnreadable, find_index, read_index
from localstore.folder.git_tracked import CACHE, GitTracked

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *words: str) -> bytes:
    settings = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    return subprocess.run(["git", *settings, *words], cwd=folder, capture_output=True, check=True).stdout


def of_git(folder: Path) -> list[bytes]:
    """The names that git lists, without links and submodules."""
    listed = [one.split(b"\t", 1) for one in git(folder, "ls-files", "-z", "-s").split(b"\0") if one]
    return sorted({name for mode, name in listed if mode.startswith(b"100")})


def ours(folder: Path) -> list[bytes]:
    index = find_index(folder)
    assert index is not None
    return read_index(index)


def fill(folder: Path) -> None:
    for at in range(120):
        path = folder / f"d{at % 7}" / ("long" * (at % 90 // 2)) / f"f {at}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(at % 5))
    (folder / "ünï.txt").write_text("x")
    (folder / os.fsdecode(b"not-utf8-\xff")).write_text("x")
    (folder / "link").symlink_to("d1")


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("hashes", ["sha1", "sha256"])
def test_the_names_are_those_of_git(tmp_path: Path, hashes: str, version: str) -> None:
    folder = tmp_path / "main"
    folder.mkdir()
    git(folder, "init", "-q", f"--object-format={hashes}")
    assert find_index(folder) == folder / ".git" / "index"
    fill(folder)
    git(folder, "add", "-A")
    git(folder, "update-index", "--index-version", "4" if version == "4" else "2")
    if version == "3":
        (folder / "meant").write_text("x")
        git(folder, "add", "-N", "meant")  # needs a flag that version 2 has no room for
    assert len(ours(folder)) > 120
    assert ours(folder) == of_git(folder)
    git(folder, "commit", "-qm", "one")
    git(folder, "update-index", "--split-index")
    (folder / "new").write_text("x")
    (folder / "d3/f 3.txt").write_text("other")
    git(folder, "add", "new", "d3")
    git(folder, "rm", "-rq", "--cached", "d2", "d5")
    assert list((folder / ".git").glob("sharedindex.*"))
    assert ours(folder) == of_git(folder)
    git(folder, "worktree", "add", "-q", str(tmp_path / "second"))
    assert ours(tmp_path / "second") == of_git(tmp_path / "second")


def test_damaged_and_hostile_bytes_are_refused_or_read_without_more(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    fill(tmp_path)
    git(tmp_path, "add", "-A")
    place = tmp_path / ".git" / "index"
    chance = random.Random(1)
    for version in ("2", "4"):
        git(tmp_path, "update-index", "--index-version", version)
        good = place.read_bytes()
        for _ in range(300):
            data = bytearray(good[: chance.choice([len(good), chance.randrange(1, len(good))])])
            for _ in range(chance.randrange(4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            place.write_bytes(data)
            with suppress(IndexUnreadable):
                read_index(place)
        place.write_bytes(good)
    for data in (b"", b"DIRC", b"DIRC\0\0\0\2\xff\xff\xff\xff", b"DIRC\0\0\0\x09\0\0\0\0" + bytes(20)):
        place.write_bytes(data)
        with pytest.raises(IndexUnreadable):
            read_index(place)


def test_size_and_kind_are_checked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "-q")
    fill(tmp_path)
    git(tmp_path, "add", "-A")
    place = tmp_path / ".git" / "index"
    monkeypatch.setattr(git_index, "GIT_INDEX_PATHS", 100)
    with pytest.raises(IndexUnreadable, match="more than 100 files"):
        read_index(place)
    monkeypatch.setattr(git_index, "GIT_INDEX_BYTES", 1000)
    with pytest.raises(IndexUnreadable, match="too large"):
        read_index(place)
    place.unlink()
    os.mkfifo(place)  # a program that waited for a writer would never end
    with pytest.raises(IndexUnreadable):
        read_index(place)


def test_names_are_kept_until_git_writes_another_index(tmp_path: Path) -> None:
    folder, record = tmp_path / "folder", tmp_path / "record"
    folder.mkdir()
    record.mkdir()
    git(folder, "init", "-q")
    (folder / "a").write_text("x")
    git(folder, "add", "a")
    first = GitTracked(folder, record)
    first.refresh()
    assert first.keeps("a")
    assert not first.keeps("b")
    kept = (record / CACHE).read_bytes()
    (record / CACHE).write_bytes(kept[:-3])  # as a power cut may leave it
    second = GitTracked(folder, record)
    second.refresh()
    assert (second.keeps("a"), second.identity) == (True, first.identity)
    (folder / "b").write_text("x")
    git(folder, "add", "b")
    second.refresh()
    assert second.keeps("b")
    assert second.identity != first.identity
    assert sorted(path.name for path in record.iterdir()) == [CACHE]
