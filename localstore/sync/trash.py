"""The trash: files leave the folder for it whole and durably, and keep their relative paths."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from localstore.core.storage.file_kind import Classifier
from localstore.folder.writer import temp_name
from localstore.record.database import Intent
from localstore.sync.working_copy import WorkingCopy


def move_to_trash(copy: WorkingCopy, paths: list[str], trash: Path | None = None) -> Path | None:
    """Move files out of the folder into `trash`, or a new one; the trash folder, None if nothing was there to
    move."""
    present = [path for path in paths if copy.exists(path)]
    if not present:
        return None
    trash = trash or copy.home.new_trash(copy.now())
    for path in present:
        _move(copy, path, trash / path)
    copy.files.forget()
    return trash


def _move(copy: WorkingCopy, path: str, target: Path) -> None:
    """Take the file off its name first: a save after that is a new file and stays. Until the copy is
    whole, a crash gives the name back (`Writer.recover`)."""
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
    """A durable copy of the regular file at `path`, in `trash` or a new one, and its digest; None if
    there is no such file."""
    if copy.digest_on_disk(path) is None:
        return None
    trash = trash or copy.home.new_trash(copy.now())
    target = trash / path
    target.parent.mkdir(parents=True, exist_ok=True)
    return trash, _copy_out(copy, path, target)


def _copy_out(copy: WorkingCopy, path: str, target: Path) -> bytes:
    hasher = Classifier()
    with target.open("xb") as file:
        for chunk in copy.files.chunks(path):
            hasher.feed(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return hasher.result()[2]


def _give_back(copy: WorkingCopy, temp: str, path: str, target: Path) -> None:
    """The copy failed: the file takes its name again; where a new one has it, `Writer.recover` finds
    another."""
    target.unlink(missing_ok=True)
    with suppress(OSError):
        copy.files.move(temp, path)
