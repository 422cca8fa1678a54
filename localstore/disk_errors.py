"""Turns errors of the operating system and of SQLite into one sentence: which operation failed, where, and
what to do."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localstore.core.paths import terminal_safe
from localstore.errors import DiskError

_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some of your quota",
    errno.EROFS: "make it writable",
    errno.EACCES: "give yourself permission to read and write it",
    errno.EPERM: "give yourself permission to read and write it",
    errno.EIO: "check the disk and its cable",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENAMETOOLONG: "use a folder with a shorter path",
}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_KEPT = "nothing that you saved is lost"
_COPY_DAMAGED = f"move this record away, then run: svc pull --merge ({_KEPT})"


@contextmanager
def translated_disk_errors(folder: Path, record: Path, damaged: str = _COPY_DAMAGED) -> Iterator[None]:
    """A context that turns OSError and sqlite3.Error into DiskError. `folder`: the folder that the code in
    the context works on; `record`: the folder of its database; `damaged`: what to advise if the database
    is damaged."""
    try:
        yield
    except ConnectionError:
        raise  # not of the disk: the reader of our output has gone, or the server
    except OSError as error:
        raise disk_error(error, _full_place(error, folder, record)) from error
    except sqlite3.Error as error:
        raise _of_database(error, record, damaged) from error


def _full_place(error: OSError, folder: Path, record: Path) -> Path:
    """The folder of the two in which an operation failed. An error of a full disk that names no file came
    from the one whose file system has less room."""
    if error.filename or error.errno not in FULL:
        return folder
    return min(folder, record, key=_free_bytes)


def _free_bytes(place: Path) -> int:
    try:
        return shutil.disk_usage(place).free
    except OSError:  # as if it had room: the other one is named
        return sys.maxsize


def disk_error(error: OSError, folder: Path) -> DiskError:
    """A DiskError, with one sentence, for an error of the operating system during an operation in
    `folder`."""
    what = error.strerror or type(error).__name__
    name = error.filename if isinstance(error.filename, str) else str(error.filename or "")
    at = f"{terminal_safe(name)} in {folder}" if name and not name.startswith("/") else name or str(folder)
    remedy = _REMEDIES.get(error.errno or 0, "check it")
    return DiskError(f"{terminal_safe(what)}: {terminal_safe(at)}; {remedy}, then try again ({_KEPT})")


def _of_database(error: sqlite3.Error, record: Path, damaged: str) -> DiskError:
    code = getattr(error, "sqlite_errorcode", None) or 0
    primary = code & 0xFF
    if primary == sqlite3.SQLITE_IOERR and _free_bytes(record if record.is_dir() else record.parent) == 0:
        return disk_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), record)
    if primary == sqlite3.SQLITE_FULL:
        remedy = "free some space, then try again"
    elif primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        remedy = "end the program that holds it, then try again"
    elif primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return DiskError(f"{terminal_safe(str(error))}: {record}; {damaged}")
    else:
        remedy = "make it readable and writable, then try again"
    return DiskError(f"{terminal_safe(str(error))}: {record}; {remedy} ({_KEPT})")
