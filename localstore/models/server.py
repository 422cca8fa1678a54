"""The server of a port, as its folder tells: who keeps it, and what kind it is."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from localstore.folder.lock import AlreadyLocked, hold_lock
from localstore.models import store

LOCK, STARTING, LOG = "server.lock", "start.lock", "log"
_RECORD = "server.json"


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """`kind`: our front, or an installed ollama that we run. `pid`: the keeper's, which holds the lock.
    `svc_home`: of who started it."""

    kind: Literal["embedded", "ollama"]
    pid: int
    port: int
    svc_home: str = ""


def write(folder: Path, running: Running) -> None:
    store.write(folder / _RECORD, msgspec.json.encode(running))


def forget(folder: Path) -> None:
    (folder / _RECORD).unlink(missing_ok=True)


def running(folder: Path) -> Running | None:
    """The server that is kept here. None for a record whose keeper is gone: only the lock tells, since a
    process id may be another program's by now."""
    if not (folder / LOCK).exists():
        return None
    try:
        with hold_lock(folder / LOCK):
            return None
    except AlreadyLocked:
        pass
    try:
        return msgspec.json.decode((folder / _RECORD).read_bytes(), type=Running)
    except (OSError, msgspec.MsgspecError):
        return None
