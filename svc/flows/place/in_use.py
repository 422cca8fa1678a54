"""Detects other running commands of svc. Each command holds a shared lock on the folder SVC_HOME, and an
upgrade needs an exclusive lock. The folder itself is locked, not a file in it. The lock ends with the
process, and child processes do not inherit it."""

from __future__ import annotations

import os
from pathlib import Path


def hold(folder: Path) -> int | None:
    """Lock the folder with a lock that several processes can hold at once. Returns a file descriptor; closing
    it ends the lock. None if the folder cannot be locked."""
    try:
        import fcntl

        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def is_alone(fd: int | None) -> bool:
    """Return whether no other process has the folder locked. If it returns True, no other process can lock
    the folder until this process ends. Always True if `fd` is None."""
    if fd is None:
        return True
    import fcntl

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
