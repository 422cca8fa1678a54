"""Leases on the local LLM server of a port. Each program that needs the server holds a locked file, its
lease. A file named `stays` in the same folder means that the server was started to run without leases."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from localstore.disk_errors import disk_error
from localstore.folder.lock import held_files, hold_lock

FOLDER = "leases"
_STAYS = "stays"


@contextmanager
def lease(folder: Path, who: str) -> Iterator[None]:
    """A context during which the program `who` needs the LLM server, so that the server is not stopped as
    unused. `folder`: the folder of the server on this port; the leases are in its subfolder FOLDER. Raises
    DiskError."""
    file = folder / FOLDER / f"{who}-{os.getpid()}"
    with ExitStack() as stack:
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Nobody else has a file of this name; others only look whether its holder lives.
            stack.enter_context(hold_lock(file, who, math.inf, may_be_nameless=True))
        except OSError as error:
            raise disk_error(error, file.parent) from error
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def list_leases(folder: Path) -> list[str]:
    """The names of the leases, `WHO-PID`, whose programs are alive. `folder`: as for `lease`. Files of dead
    programs are removed."""
    return held_files(folder / FOLDER)


def stays(folder: Path) -> bool:
    """Whether the server was started to run without leases. `folder`: as for `lease`."""
    return (folder / _STAYS).exists()


def set_stays(folder: Path, value: bool) -> None:
    if value:
        (folder / _STAYS).touch(mode=0o600)
    else:
        (folder / _STAYS).unlink(missing_ok=True)
