"""The files of the agent of a SVC_HOME: lock, socket, log, and the list of detached folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

LOCK, SOCKET, LOG, FOLDERS = "agent.lock", "agent.sock", "agent.log", "agent.json"
LOG_BYTES = 1 << 20  # after which the log is rotated
_SHORT = 100  # bytes of a socket path that every system accepts


@contextmanager
def socket_path(root: Path) -> Iterator[str]:
    """The path of the socket in SVC_HOME, short enough for the kernel until the end of the block."""
    whole = str(root / SOCKET)
    if len(os.fsencode(whole)) <= _SHORT:
        yield whole
        return
    opened = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{opened}/{SOCKET}"
    finally:
        os.close(opened)


def detached(root: Path) -> list[str]:
    """The folders that are watched without followers; empty if the file is missing or damaged."""
    try:
        return msgspec.json.decode((root / FOLDERS).read_bytes(), type=list[str])
    except (OSError, msgspec.MsgspecError):
        return []


def put_detached(root: Path, folders: list[str]) -> None:
    temporary = root / f"{FOLDERS}.new"
    temporary.write_bytes(msgspec.json.encode(folders))
    temporary.replace(root / FOLDERS)
