"""Leases on the LLM server of a port: each program that needs the server holds a locked file. A file `stays`
beside them says that the server was started to run without leases."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from localstore.disk_errors import disk_error
from localstore.folder.lock import AlreadyLocked, held_files, hold_lock

FOLDER = "leases"
_STAYS = "stays"
_PAUSE = 0.002


@contextmanager
def lease(folder: Path, who: str) -> Iterator[None]:
    """A context that holds a lease on the server; `folder`: that of its port. Raises DiskError."""
    file = folder / FOLDER / f"{who}-{os.getpid()}"
    with ExitStack() as stack:
        try:
            _lock(stack, file, who)
        except OSError as error:
            raise disk_error(error, file.parent) from error
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def _lock(stack: ExitStack, file: Path, who: str) -> None:
    """Lock the file of a lease until the stack is closed."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    while True:
        with suppress(AlreadyLocked):  # by somebody who looks whether its holder lives
            stack.enter_context(hold_lock(file, who, may_be_nameless=True))
            if file.exists():  # who looked may have removed it before it was locked
                return
            stack.close()
        time.sleep(_PAUSE)


def held(folder: Path) -> list[str]:
    """The names of leases whose holders are alive. Files of dead ones are removed."""
    return held_files(folder / FOLDER)


def stays(folder: Path) -> bool:
    """Whether the server was started to run without leases."""
    return (folder / _STAYS).exists()


def set_stays(folder: Path, value: bool) -> None:
    if value:
        (folder / _STAYS).touch(mode=0o600)
    else:
        (folder / _STAYS).unlink(missing_ok=True)
