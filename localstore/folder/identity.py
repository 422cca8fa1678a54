"""What a linked folder is known by: a random id inside `.svc`, and the `.svc` that holds it.

The id dies with its folder. Device and inode do not: a file system hands the inode of a removed folder out
again, and a new folder would pass for the dead one. The id alone does not do either: a copy of the folder has
it too, as has what a backup brings back to the same place, whose files are older than the record. So it must
be the same `.svc` as well, and where an inode is used again, its times tell the two apart: when the file of
the id was last changed, and where that differs, as after `chmod -R`, when `.svc` was made.
"""

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
    """`id`: empty for a folder that an older svc linked. `changed`: when the file of the id was last changed,
    in ns; 0 without one. `born`: birth time of `.svc` in ns; 0 where the system does not tell it, None where
    nobody has asked, since asking makes a command start slower."""

    id: str
    device: int
    inode: int
    changed: int
    born: int | None = None

    def is_of(self, recorded: Identity, folder: Path) -> bool:
        """Whether `recorded`, which was recorded earlier, is this identity of `folder`."""
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
    """When the `.svc` of the folder was made, in ns; 0 if the system does not tell."""
    return _birth_time(folder / FOLDER)


def prepare_link(folder: Path) -> None:
    """Give a folder that is about to be linked an id. Without one it would pass for a folder that an older
    svc linked."""
    if not (folder / FOLDER / REPO_FILE).exists():
        write_id(folder, new_id())


def new_id() -> str:
    return os.urandom(BYTES).hex()


def write_id(folder: Path, new: str) -> None:
    """Write the id into `.svc`, which is made if missing. Where nothing can be written it stays as it is: the
    folder is then known by the rest."""
    inside = folder / FOLDER
    temporary = inside / f"{ID_FILE}.{os.urandom(4).hex()}"
    with suppress(OSError):
        inside.mkdir(exist_ok=True)
        temporary.write_text(new + "\n")
        temporary.replace(inside / ID_FILE)


def _read_id(inside: Path) -> tuple[str, int]:
    """The id in this `.svc` and when its file was last changed, in ns; ("", 0) if there is none."""
    try:
        with (inside / ID_FILE).open("rb") as file:
            id = bytes.fromhex(file.read(2 * BYTES).decode("ascii")).hex()
            return id, os.fstat(file.fileno()).st_ctime_ns
    except (OSError, ValueError):
        return "", 0


def _birth_time(path: Path) -> int:
    """When the file was made, in ns; 0 if the system does not tell."""
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
