"""The sentence about a full disk names the disk that is full."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from localstore.disk_errors import translated_disk_errors
from localstore.errors import DiskError


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A working copy, and the folder of its record in SVC_HOME."""
    folder, record = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    record.mkdir()
    return folder, record


@contextmanager
def full(monkeypatch: pytest.MonkeyPatch, place: Path) -> Iterator[None]:
    def usage(path: Path) -> SimpleNamespace:
        return SimpleNamespace(free=0 if place in (path, *path.parents) else 1 << 30)

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", usage)
        yield


@pytest.mark.parametrize("which", [0, 1])
def test_a_write_without_a_name(
    places: tuple[Path, Path], which: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        full(monkeypatch, places[which]),
        pytest.raises(DiskError) as raised,
        translated_disk_errors(*places),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert str(places[which]) in raised.value.detail
    assert str(places[1 - which]) not in raised.value.detail
    assert "free some space" in raised.value.detail


def test_a_name_that_the_error_has_stays(places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        full(monkeypatch, places[1]),
        pytest.raises(DiskError) as raised,
        translated_disk_errors(*places),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(places[0] / "a.txt"))
    assert str(places[0] / "a.txt") in raised.value.detail


def test_a_database_beside_which_no_file_fits(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite says that input and output failed where it cannot make the file for its shared memory."""
    folder, record = places
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    file = record / "outbox.db"
    with full(monkeypatch, record), pytest.raises(DiskError) as raised, translated_disk_errors(folder, file):
        raise error
    assert "No space left on device" in raised.value.detail
    assert "free some space" in raised.value.detail
    with pytest.raises(DiskError, match="disk I/O error"), translated_disk_errors(folder, file):
        raise error


def test_another_error_of_a_database(places: tuple[Path, Path]) -> None:
    with (
        pytest.raises(DiskError, match="no such table"),
        translated_disk_errors(*places),
        closing(sqlite3.connect(":memory:")) as db,
    ):
        db.execute("SELECT * FROM missing")
