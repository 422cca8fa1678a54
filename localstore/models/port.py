"""Binds a port of this machine. Also finds the program that listens on a port, if the system reports that."""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from pathlib import Path

from localstore.core.paths import terminal_safe

_LISTENING = "0A"
_INODE = re.compile(r"socket:\[(\d+)\]")


def bind(port: int) -> socket.socket:
    """A socket that listens on this port of 127.0.0.1. Raises OSError if the port is taken."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", port))
        bound.listen(1024)
    except OSError:
        bound.close()
        raise
    return bound


def holder(port: int) -> str:
    """The program that holds the port: `python (process 123)`, or `another user's program`."""
    inodes = {inode for name in ("tcp", "tcp6") for inode in _inodes(Path("/proc/net") / name, port)}
    if not Path("/proc/net/tcp").exists():
        return "another program"
    for process in Path("/proc").glob("[0-9]*") if inodes else ():
        with suppress(OSError):
            for fd in (process / "fd").iterdir():
                with suppress(OSError):
                    match = _INODE.fullmatch(str(fd.readlink()))
                    if match is not None and match[1] in inodes:
                        name = (process / "comm").read_text("utf-8", "replace").strip()
                        return f"{terminal_safe(name) or 'a program'} (process {process.name})"
    return "another user's program"


def _inodes(table: Path, port: int) -> list[str]:
    inodes = []
    with suppress(OSError):
        for line in table.read_text("ascii", "replace").splitlines()[1:]:
            words = line.split()
            if len(words) > 9 and words[3] == _LISTENING and int(words[1].rpartition(":")[2], 16) == port:
                inodes.append(words[9])
    return inodes
