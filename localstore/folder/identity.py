"""Identifies a linked folder by two values: a random id in a file inside `.svc`, and the inode of `.svc`.
Both must match.

The inode alone is not enough, because file systems reuse the inode of a removed folder. The id alone is not
enough, because two other folders contain it too: a copy of the folder, and a folder that was restored from a
backup, whose files are older than the client's record.

Another folder may even have the same id and a reused inode. Then two times are compared: the time at which
the id's file last changed and, if that time differs (as after `chmod -R`), the birth time of `.svc`."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from localstore.errors import NotLinked
from localstore.folder.link import FOLDER, ID_FILE, REPO_FILE

BYTES = 16  # of an id
_BORN, _SIZE, _BORN_AT = 0x800, 256, 80  # STATX_BTIME; size of a struct statx, and where stx_btime is in it


class Identity(NamedTuple):
    """What identifies a linked folder.

    - `id`: the id in the folder, "" for a folder that an older svc linked.
    - `device`, `inode`: of `.svc`.
    - `changed`: the time at which the id's file last changed, in ns; 0 without a file.
    - `born`: birth time of `.svc` in ns; 0 if the system does not report it. None if it was not read, because
      reading it slows down the start of a command."""

    id: str
    device: int
    inode: int
    changed: int
    born: int | None = None

    def is_of(self, recorded: Identity, folder: Path) -> bool:
        """Whether this identity, just read from `folder`, and the identity `recorded` earlier belong to the
        same folder."""
        if (self.device, self.inode) != (recorded.device, recorded.inode):
            return False
        if self.id and (self.id, self.changed) == (recorded.id, recorded.changed):
            return True
        born = birth_time(folder)
        if born and recorded.born and born != recorded.born:
            return False
        return self.id == recorded.id or (not self.id and born == recorded.born != 0)


def identify(folder: Path) -> Identity:
    """The identity of the linked `folder`, without its birth time. Raises NotLinked if it has no `.svc`."""
    inside = folder / FOLDER
    try:
        info = inside.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise NotLinked(str(folder)) from None
    id, changed = _read_id(inside)
    return Identity(id, info.st_dev, info.st_ino, changed)


def birth_time(folder: Path) -> int:
    """The birth time of the folder's `.svc` in ns; 0 if the system does not report it."""
    return _birth_time(folder / FOLDER)


def prepare_link(folder: Path) -> None:
    """Write an id into a folder that is about to be linked. A folder without an id would be taken for one
    that an older svc linked."""
    if not (folder / FOLDER / REPO_FILE).exists():
        write_id(folder, new_id())


def new_id() -> str:
    return os.urandom(BYTES).hex()


def write_id(folder: Path, new: str) -> None:
    """Write the id into `.svc`, which is created if missing. If this fails, the folder is identified by its
    inode alone."""
    inside = folder / FOLDER
    temporary = inside / f"{ID_FILE}.{os.urandom(4).hex()}"
    with suppress(OSError):
        inside.mkdir(exist_ok=True)
        temporary.write_text(new + "\n")
        temporary.replace(inside / ID_FILE)


def _read_id(inside: Path) -> tuple[str, int]:
    """The id in a `.svc` folder, and the time at which the id's file last changed, in ns. ("", 0) if there is
    no id."""
    try:
        with (inside / ID_FILE).open("rb") as file:
            id = bytes.fromhex(file.read(2 * BYTES).decode("ascii")).hex()
            return id, os.fstat(file.fileno()).st_ctime_ns
    except (OSError, ValueError):
        return "", 0


def _birth_time(path: Path) -> int:
    """The birth time of the file in ns; 0 if the system does not report it."""
    import ctypes  # 5 ms, which most commands never need

    call = _statx()
    if call is None:
        return int(getattr(path.stat(), "st_birthtime", 0) * 1_000_000_000)
    buffer = ctypes.create_string_buffer(_SIZE)
    if call(-100, os.fsencode(path), 0, _BORN, buffer) != 0:  # -100: AT_FDCWD
        return 0
    mask = int.from_bytes(buffer.raw[:4], sys.byteorder)
    seconds = int.from_bytes(buffer.raw[_BORN_AT : _BORN_AT + 8], sys.byteorder, signed=True)
    rest = int.from_bytes(buffer.raw[_BORN_AT + 8 : _BORN_AT + 12], sys.byteorder)
    return seconds * 1_000_000_000 + rest if mask & _BORN else 0


@functools.cache
def _statx() -> Callable[..., int] | None:
    import ctypes

    return getattr(ctypes.CDLL(None), "statx", None) if sys.platform.startswith("linux") else None
