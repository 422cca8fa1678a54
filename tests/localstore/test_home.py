from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from localstore.errors import CopyBusy
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
