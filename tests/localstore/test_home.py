from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from localstore.errors import CopyBusy
from localstore.folder.identity import prepare_link
from localstore.folder.lock import own_working_copy
from localstore.home import Home


def linked(folder: Path) -> Path:
    (folder / ".svc").mkdir(parents=True)
    return folder


def test_a_renamed_folder_keeps_its_record(tmp_path: Path) -> None:
    home, folder = Home(tmp_path / "home"), linked(tmp_path / "one")
    record = home.record_of(folder, "r")
    assert home.record_of(folder, "r") == record
    moved = folder.rename(tmp_path / "two")
    assert home.record_of(moved, "r") == record


def test_a_folder_whose_name_is_not_utf8_has_a_record(tmp_path: Path) -> None:
    folder = linked(Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff")))
    home = Home(tmp_path / "home")
    record = home.record_of(folder, "r")
    assert home.record_of(folder, "r") == record
    assert home.records()[0][1].folder == f"{tmp_path}/odd\\xff"
    assert home.previous_records(folder) == []


def test_another_link_or_repository_gets_a_record_of_its_own(tmp_path: Path) -> None:
    home, folder = Home(tmp_path / "home"), linked(tmp_path / "one")
    record = home.record_of(folder, "r")
    assert home.record_of(folder, "other") != record
    (folder / ".svc").rename(tmp_path / "kept")
    (folder / ".svc").mkdir()
    assert home.record_of(folder, "r") != record


def test_a_removed_folder_leaves_its_record_to_nobody(tmp_path: Path) -> None:
    home, folder = Home(tmp_path / "home"), linked(tmp_path / "one")
    record = home.record_of(folder, "r")
    held = home.records()[0][1]
    shutil.rmtree(folder)
    again = linked(tmp_path / "one")
    dead = msgspec.structs.replace(held, inode=(again / ".svc").stat().st_ino, born=0)
    (record / "copy.json").write_bytes(msgspec.json.encode(dead))
    prepare_link(again)
    assert home.find_record(again, "r") is None
    assert home.record_of(again, "r") != record
    assert home.previous_records(again) == [record]


def test_a_copy_has_an_id_and_a_record_of_its_own(tmp_path: Path) -> None:
    home, folder = Home(tmp_path / "home"), linked(tmp_path / "one")
    record = home.record_of(folder, "r")
    copied = Path(shutil.copytree(folder, tmp_path / "two"))
    other = home.record_of(copied, "r")
    assert other != record
    assert (folder / ".svc/id").read_text() != (copied / ".svc/id").read_text()
    assert (home.record_of(folder, "r"), home.record_of(copied, "r")) == (record, other)
    assert len(home.records()) == 2


def test_what_a_backup_brings_back_is_older_than_the_record(tmp_path: Path) -> None:
    """Its files would look like edits that undo everything since."""
    home, folder = Home(tmp_path / "home"), linked(tmp_path / "one")
    record = home.record_of(folder, "r")
    shutil.copytree(folder, tmp_path / "backup")
    folder.rename(tmp_path / "old")
    assert home.record_of(Path(shutil.copytree(tmp_path / "backup", folder)), "r") != record


def test_an_inode_that_is_used_again_is_told_by_its_birth(tmp_path: Path) -> None:
    home, folder = Home(tmp_path / "home"), linked(tmp_path / "one")
    record = home.record_of(folder, "r")
    known = home.records()[0][1]
    if not known.born:
        pytest.skip("this system does not tell birth times")
    older = msgspec.structs.replace(known, born=known.born - 1, changed=known.changed - 1)
    (record / "copy.json").write_bytes(msgspec.json.encode(older))
    assert home.record_of(folder, "r") != record


def test_a_record_of_an_older_svc_stays_the_folders(tmp_path: Path) -> None:
    home, folder = Home(tmp_path / "home"), linked(tmp_path / "one")
    record = home.record_of(folder, "r")
    held = home.records()[0][1]
    members = {"folder": held.folder, "repo_id": "r", "device": held.device, "inode": held.inode}
    (record / "copy.json").write_bytes(msgspec.json.encode(members))
    (folder / ".svc/id").unlink()
    assert home.record_of(folder, "r") == record
    assert home.records()[0][1].id == (folder / ".svc/id").read_text().strip() != ""
    assert home.record_of(folder.rename(tmp_path / "two"), "r") == record


def test_a_folder_that_lost_its_id_is_known_by_its_birth(tmp_path: Path) -> None:
    home, folder = Home(tmp_path / "home"), linked(tmp_path / "one")
    record = home.record_of(folder, "r")
    if not home.records()[0][1].born:
        pytest.skip("this system does not tell birth times")
    (folder / ".svc/id").unlink()
    assert home.record_of(folder, "r") == record
    assert home.records()[0][1].id == (folder / ".svc/id").read_text().strip()


def test_processes_that_meet_a_folder_at_once_make_one_record(tmp_path: Path) -> None:
    home, folder = Home(tmp_path / "home"), linked(tmp_path / "one")
    with ThreadPoolExecutor(8) as pool:
        records = set(pool.map(lambda _: home.record_of(folder, "r"), range(32)))
    assert len(records) == len(home.records()) == 1


def test_a_record_cut_short_is_passed_over(tmp_path: Path) -> None:
    home, folder = Home(tmp_path / "home"), linked(tmp_path / "one")
    record = home.record_of(folder, "r")
    (record / "copy.json").write_bytes(b"{")
    assert home.record_of(folder, "r") != record


def test_each_trash_is_new(tmp_path: Path) -> None:
    home, now = Home(tmp_path / "home"), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    first, second = home.new_trash(now), home.new_trash(now)
    assert first != second
    assert first.name.startswith("20260102-030405")


def test_the_environment_decides(tmp_path: Path) -> None:
    assert Home.default({"SVC_HOME": str(tmp_path)}).root == tmp_path
    assert Home.default({}).root.name == "svc"


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    import os

    lock = tmp_path / "lock"
    with (
        own_working_copy(lock, tmp_path, "svc push"),
        pytest.raises(CopyBusy, match=f"svc push .process {os.getpid()}, since .* is working in"),
        own_working_copy(lock, tmp_path, seconds=0),
    ):
        pass
    with own_working_copy(lock, tmp_path):
        pass
