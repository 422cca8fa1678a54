"""Finds file systems on which files can change without an event on this machine, such as network file
systems."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from localstore.core.paths import terminal_safe
from localstore.errors import NotWatchable

TABLE = Path("/proc/self/mountinfo")
# All changes go through this kernel. Others (NFS, SMB, FUSE, 9p, cluster file systems) are changed elsewhere.
LOCAL = frozenset(
    (
        *("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "nilfs2", "reiserfs", "xfs", "zfs"),
        *("overlay", "ramfs", "tmpfs"),
    )
)
_ESCAPE = re.compile(rb"\\([0-7]{3})")


class Mount(NamedTuple):
    """A mounted file system. `point`: where it is mounted; `kind`: its type."""

    point: str
    kind: str


def mounts(table: bytes) -> list[Mount]:
    """The mounted file systems. `table`: the content of /proc/self/mountinfo."""
    parsed = []
    for line in table.splitlines():
        before, _, after = line.partition(b" - ")
        fields = before.split(b" ")
        if len(fields) >= 5 and after:
            point = _ESCAPE.sub(lambda octal: bytes([int(octal[1], 8) & 0xFF]), fields[4])
            parsed.append(Mount(os.fsdecode(point), os.fsdecode(after.split(b" ")[0])))
    return parsed


def check(folder: Path, table: bytes) -> None:
    """Raises NotWatchable unless the whole `folder` (a canonical path) is on one local file system. `table`:
    the content of /proc/self/mountinfo."""
    above, inside = None, None
    for mount in mounts(table):
        if str(folder).startswith(mount.point.rstrip("/") + "/") or mount.point == str(folder):
            if above is None or len(mount.point) >= len(above.point):
                above = mount  # of two at one point the later one is seen
        elif mount.point.startswith(str(folder).rstrip("/") + "/"):
            inside = mount
    if above is None or above.kind not in LOCAL:
        kind = above.kind if above else "unknown"
        raise NotWatchable(
            f"{terminal_safe(str(folder))} is on a file system ({terminal_safe(kind)}) that others can "
            "change without an event; svc status scans it instead"
        )
    if inside is not None:
        raise NotWatchable(
            f"another file system is mounted at {terminal_safe(inside.point)}, inside the folder; "
            "svc status scans it instead"
        )
