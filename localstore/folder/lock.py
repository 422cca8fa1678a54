"""One process per working copy: a file lock that ends with its process."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from localstore.errors import CopyBusy


class AlreadyLocked(Exception):
    """Another process holds the lock; `owner` names it."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self.owner = owner


@contextmanager
def hold_lock(lock: Path) -> Iterator[None]:
    """Hold the lock; the file contains this process's id. Raises AlreadyLocked."""
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
            raise AlreadyLocked(f"process {owner}" if owner else "process unknown") from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode("ascii"), 0)
        yield
    finally:
        os.close(fd)


@contextmanager
def own_working_copy(lock: Path, folder: Path) -> Iterator[None]:
    """Hold the lock of a working copy. Raises CopyBusy, which names the other process."""
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_lock(lock))
        except AlreadyLocked as other:
            raise CopyBusy(folder, other.owner) from None
        yield
