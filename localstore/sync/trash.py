"""The trash: files and directories are moved there durably and keep their relative paths."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from localstore.core.errors import Conflict
from localstore.core.paths import terminal_safe
from localstore.core.storage.file_kind import Classifier
from localstore.folder.writer import temp_name
from localstore.record.database import Intent
from localstore.sync.aside import files_below
from localstore.sync.working_copy import WorkingCopy


def move_to_trash(copy: WorkingCopy, paths: list[str], trash: Path | None = None) -> Path | None:
    """Move files and directories to `trash`, or to a new trash folder. Returns the folder, None if nothing
    exists. Raises Conflict, with nothing moved of it, if a directory has something that cannot be copied."""
    present = [path for path in paths if copy.exists(path)]
    if not present:
        return None
    trash = trash or copy.home.new_trash(copy.now())
    for path in present:
        info = copy.files.stat(path)
        if info is not None and stat.S_ISDIR(info.st_mode):
            _move_folder(copy, path, trash)
        else:
            _move(copy, path, trash / path)
    copy.files.forget()
    return trash


def _move_folder(copy: WorkingCopy, path: str, trash: Path) -> None:
    """Rename the directory; where the trash is on another file system, move its files."""
    (trash / path).parent.mkdir(parents=True, exist_ok=True)
    copy.files.forget()
    if copy.files.move_out(path, trash / path):
        return
    files = list(files_below(copy, path))
    for file in files:
        info = copy.files.stat(file)
        if info is not None and not stat.S_ISREG(info.st_mode):
            name = terminal_safe(file)
            raise Conflict(
                f"{name} is no regular file and cannot be moved to the trash; move it away, then try again"
            )
    for file in files:
        _move(copy, file, trash / file)
        copy.files.prune(file)
    copy.files.prune(f"{path}/")


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
    """Copy the regular file at `path` durably to `trash`, or to a new trash folder. Returns (folder, digest
    of the file), None if there is no such file."""
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
