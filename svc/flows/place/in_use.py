"""Whether other commands of svc are running: each holds the state folder shared, an upgrade alone.

A lock of the folder itself writes nothing, ends with its process, and is not inherited.
"""

from __future__ import annotations

import os
from pathlib import Path


def hold(folder: Path) -> int | None:
    """Hold the folder until the returned descriptor is closed; None where that is not possible."""
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
    """Whether nobody else holds the folder; from then on nobody can, until the process ends. True where it is
    not held."""
    if fd is None:
        return True
    import fcntl

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
