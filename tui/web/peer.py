"""Finds out which user is at the other end of a connection over loopback."""

from __future__ import annotations

import os
import sys
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F")  # 127.0.0.1 as these tables write it
_ESTABLISHED = "01"


def other_user(port: int, own: int) -> bool:
    """Returns whether the connection from the port `port` to our port `own` certainly belongs to another
    user. The result is False for root, and if the user is unknown. Only Linux reports the user."""
    if not sys.platform.startswith("linux"):
        return False
    user = _owner(port, own)
    return user is not None and user not in (0, os.geteuid())


def _owner(port: int, own: int) -> int | None:
    for table in TABLES:
        try:
            lines = table.read_text("ascii", "replace").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if len(words) < 8 or words[3] != _ESTABLISHED:
                continue
            local, remote = words[1].partition(":"), words[2].partition(":")
            if local[0] in _LOOPBACK and int(local[2], 16) == port and int(remote[2], 16) == own:
                return int(words[7])
    return None
