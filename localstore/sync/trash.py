"""The trash: a folder to which replaced files and directories are moved durably. They keep their relative
paths."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from localstore.core.errors import Conflict
from localstore.core.paths import terminal_safe
from localstore.core.storage.file_kind import Classifier
from localstore.folder.files import Blocked
from localstore.folder.writer import temp_name
from localstore.record.database import Intent
from localstore.sync.aside import files_below, folders_below
from localstore.sync.working_copy import WorkingCopy


def move_to_trash(copy: WorkingCopy, paths: list[str], trash: Path | None = None) -> Path | None:
    """Move files and directories to the folder `trash`, or to a new trash folder. Returns the trash folder,
    None if none of the paths exists. Raises Conflict if a directory contains something that cannot be
    copied. Then nothing of that directory is moved."""
    present = [path for path in paths if copy.exists(path)]
    if not present:
        return None
    trash = trash or copy.home.new_trash(copy.now())
    for path in present:
        mode = _mode(copy, path)
        if stat.S_ISDIR(mode):
            _move_folder(copy, path, trash)
        elif stat.S_ISLNK(mode):
            _move_link(copy, path, trash / path)
        else:
            _move(copy, path, trash / path)
    copy.files.forget()
    return trash


def _mode(copy: WorkingCopy, path: str) -> int:
    """The `st_mode` of the entry at the path, which is its kind and its rights. 0 if there is no entry."""
    info = copy.files.stat(path)
    return info.st_mode if info is not None else 0


def _move_link(copy: WorkingCopy, path: str, target: Path) -> None:
    """Rename the symlink into the trash. If the trash is on another file system, create the same symlink
    there instead."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if copy.files.move_out(path, target):
        return
    target.symlink_to(copy.files.link_target(path))
    copy.files.remove(path)


def _move_folder(copy: WorkingCopy, path: str, trash: Path) -> None:
    """Rename the directory into the trash. If the trash is on another file system, move its files one by one
    instead."""
    (trash / path).parent.mkdir(parents=True, exist_ok=True)
    copy.files.forget()
    if copy.files.move_out(path, trash / path):
        return
    files = list(files_below(copy, path))
    links = {file for file in files if stat.S_ISLNK(_mode(copy, file))}
    for file in files:
        if file not in links and not stat.S_ISREG(_mode(copy, file)):
            name = terminal_safe(file)
            raise Conflict(
                f"{name} is neither a file nor a link, so it cannot move to the trash; "
                "move it away, then try again"
            )
    folders = list(folders_below(copy, path))
    for folder in folders:
        (trash / folder).mkdir(parents=True, exist_ok=True)
    for file in files:
        (_move_link if file in links else _move)(copy, file, trash / file)
    for folder in reversed(folders):
        copy.files.prune(f"{folder}/")


def _move(copy: WorkingCopy, path: str, target: Path) -> None:
    """Move the file to the trash. It first gets a temporary name, so that a save made meanwhile creates a new
    file, which stays. If a crash prevents the copy, `Writer.recover` renames the file back."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temp = temp_name(path)
    with copy.db.step():
        copy.db.put_intents([Intent(temp, path, None, None, "aside")])
    try:
        copy.files.move(path, temp)
    except (FileNotFoundError, Blocked):
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
    """Copy the regular file at `path` durably to the folder `trash`, or to a new trash folder. Returns (trash
    folder, digest of the file), or None if there is no such file."""
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
    """Rename the file `temp` back to `path`, after copying it to the trash has failed. If another file has
    the name now, `Writer.recover` later chooses a conflict name for this one."""
    target.unlink(missing_ok=True)
    with suppress(OSError):
        copy.files.move(temp, path)
