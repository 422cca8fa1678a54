"""Finds out which LLM server runs on a port, from the files in the port's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from localstore.folder.lock import living_holder
from localstore.models import store

LOCK, STARTING, LOG = "server.lock", "start.lock", "log"
_RECORD = "server.json"


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """A running LLM server. `kind`: svc's own server (`embedded`), or an installed ollama that svc runs.
    `pid`: the process that supervises the server and holds the lock. `svc_home`: the SVC_HOME of the user
    who started it."""

    kind: Literal["embedded", "ollama"]
    pid: int
    port: int
    svc_home: str = ""


def write(folder: Path, running: Running) -> None:
    store.write(folder / _RECORD, msgspec.json.encode(running))


def forget(folder: Path) -> None:
    (folder / _RECORD).unlink(missing_ok=True)


def running(folder: Path) -> Running | None:
    """The running server of this folder, None if none runs. Whether it runs is decided by the lock of its
    supervising process, because the process id may belong to another program now."""
    if living_holder(folder / LOCK) is None:
        return None
    try:
        return msgspec.json.decode((folder / _RECORD).read_bytes(), type=Running)
    except (OSError, msgspec.MsgspecError):
        return None
