"""The trash: files leave the folder for it whole and durably, and keep their relative paths."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from localstore.core.storage.file_kind import Classifier
from localstore.folder.writer import temp_name
from localstore.record.database import Intent
from localstore.sync.working_copy import Device


def move_to_trash(device: Device, paths: list[str], trash: Path | None = None) -> Path | None:
    """Move files out of the folder into `trash`, or a new one; the trash folder, None if nothing was there to
    move."""
    present = [path for path in paths if device.occupied(path)]
    if not present:
        return None
    trash = trash or device.home.new_trash(device.now())
    for path in present:
        _move(device, path, trash / path)
    device.files.forget()
    return trash


def _move(device: Device, path: str, target: Path) -> None:
    """Take the file off its name first: a save after that is a new file and stays. Until the copy is
    whole, a crash gives the name back (`Writer.recover`)."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temp = temp_name(path)
    with device.db.step():
        device.db.put_intents([Intent(temp, path, None, None, "aside")])
    try:
        device.files.move(path, temp)
    except FileNotFoundError:
        return  # deleted meanwhile; the journal's entry has nothing left to do
    try:
        _copy_out(device, temp, target)
    except OSError:
        _give_back(device, temp, path, target)
        raise
    with device.db.step():
        device.db.put_intents([Intent(temp, path, None, None, "done")])
    device.files.remove(temp)
    with device.db.step():
        device.db.drop_intents([temp])


def copy_to_trash(device: Device, path: str, trash: Path | None) -> tuple[Path, bytes] | None:
    """A durable copy of the regular file at `path`, in `trash` or a new one, and its digest; None if
    there is no such file."""
    if device.seen(path) is None:
        return None
    trash = trash or device.home.new_trash(device.now())
    target = trash / path
    target.parent.mkdir(parents=True, exist_ok=True)
    return trash, _copy_out(device, path, target)


def _copy_out(device: Device, path: str, target: Path) -> bytes:
    hasher = Classifier()
    with target.open("xb") as file:
        for chunk in device.files.chunks(path):
            hasher.feed(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return hasher.result()[2]


def _give_back(device: Device, temp: str, path: str, target: Path) -> None:
    """The copy failed: the file takes its name again; where a new one has it, `Writer.recover` finds
    another."""
    target.unlink(missing_ok=True)
    with suppress(OSError):
        device.files.move(temp, path)
