"""The files of the agent in SVC_HOME: its lock, socket and log, and the lists of detached folders (watched
even when no client follows them) and paused folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

LOCK, SOCKET, LOG = "agent.lock", "agent.sock", "agent.log"
FOLDERS, PAUSED = "agent.json", "agent-paused.json"
LOG_BYTES = 1 << 20  # after which the log is rotated
_SHORT = 100  # bytes of a socket path that every system accepts


@contextmanager
def socket_path(root: Path) -> Iterator[str]:
    """A context with a path at which the agent's socket in SVC_HOME (`root`) can be bound or connected to.
    Addresses of sockets are limited in length. If the real path is too long, the context gives a short
    path through an open descriptor of the folder, which is valid only inside the context."""
    whole = str(root / SOCKET)
    if len(os.fsencode(whole)) <= _SHORT:
        yield whole
        return
    opened = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{opened}/{SOCKET}"
    finally:
        os.close(opened)


def folders(root: Path, name: str) -> list[str]:
    """The folders that the file `name` in SVC_HOME (`root`) lists; [] if the file is missing or damaged."""
    try:
        return msgspec.json.decode((root / name).read_bytes(), type=list[str])
    except (OSError, msgspec.MsgspecError):
        return []


def put_folders(root: Path, name: str, paths: list[str]) -> None:
    temporary = root / f"{name}.new"
    temporary.write_bytes(msgspec.json.encode(paths))
    temporary.replace(root / name)
