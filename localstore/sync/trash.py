"""The trash: files are moved there durably and keep their relative paths."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from localstore.core.storage.file_kind import Classifier
from localstore.folder.writer import temp_name
from localstore.record.database import Intent
from localstore.sync.working_copy import WorkingCopy


def move_to_trash(copy: WorkingCopy, paths: list[str], trash: Path | None = None) -> Path | None:
    """Move files to `trash`, or to a new trash folder. Returns the folder, None if no file exists."""
    present = [path for path in paths if copy.exists(path)]
    if not present:
        return None
    trash = trash or copy.home.new_trash(copy.now())
    for path in present:
        _move(copy, path, trash / path)
    copy.files.forget()
    return trash


def _move(copy: WorkingCopy, path: str, target: Path) -> None:
    """Move the file to the trash. It is renamed first, so that a save made meanwhile is a new file and stays.
    If a crash prevents the copy, its name is restored (`Writer.recover`)."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temp = temp_name(path)
    with copy.db.step():
        copy.db.put_intents([Intent(temp, path, None, None, "aside")])
    try:
        copy.files.move(path, temp)
    except FileNotFoundError:
        return  # deleted meanwhile; the journal's entry has nothing left to do
    try:
        _copy_out(copy, temp, target)
    except OSError:
        _give_back(copy, temp, path, target)
        raise
    with copy.db.step():
        copy.db.put_intents([Intent(temp, path, None, None, "done")])
    copy.files.remove(temp)
    with copy.db.step():
        copy.db.drop_intents([temp])


def copy_to_trash(copy: WorkingCopy, path: str, trash: Path | None) -> tuple[Path, bytes] | None:
    """Copy the regular file at `path` durably to `trash`, or to a new trash folder. Returns the folder and
    the file's digest, None if there is no such file."""
    if copy.digest_on_disk(path) is None:
        return None
    trash = trash or copy.home.new_trash(copy.now())
    target = trash / path
    target.parent.mkdir(parents=True, exist_ok=True)
    return trash, _copy_out(copy, path, target)


def _copy_out(copy: WorkingCopy, path: str, target: Path) -> bytes:
    """Copy the file to `target` durably. Returns its digest."""
    hasher = Classifier()
    with target.open("xb") as file:
        for chunk in copy.files.chunks(path):
            hasher.feed(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return hasher.result()[2]


def _give_back(copy: WorkingCopy, temp: str, path: str, target: Path) -> None:
    """Restore the file's name after the copy failed. If another file has the name, `Writer.recover` chooses a
    conflict name."""
    target.unlink(missing_ok=True)
    with suppress(OSError):
        copy.files.move(temp, path)
