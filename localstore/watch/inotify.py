"""Linux's inotify for directories. When a system call that changed something returns, the event is already in
the queue."""

from __future__ import annotations

import array
import ctypes
import errno
import fcntl
import os
import struct
import termios
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from localstore.errors import NotWatchable

ACCESS = 0x1
MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF = 0x400, 0x800
UNMOUNT, OVERFLOW, IGNORED = 0x2000, 0x4000, 0x8000
ONLY_DIRECTORY, IS_DIRECTORY = 0x01000000, 0x40000000
ONCE = 0x80000000
CONTENT = MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE
ITSELF = DELETE_SELF | MOVE_SELF
ALL = CONTENT | ITSELF
READ_BYTES = 1 << 16
_HEAD = struct.Struct("=iIII")
_LIMITS = Path("/proc/sys/fs/inotify")


class InotifyEvent(NamedTuple):
    """One event of inotify. `watch`: number of the watch, −1 if the queue overflowed. `mask`: what happened.
    `name`: the entry in the watched directory, "" if the event is about the directory itself."""

    watch: int
    mask: int
    name: bytes


class Inotify:
    """A queue of inotify events. Creating it raises NotWatchable if the system has no inotify, or if its
    limit is reached."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._libc, "inotify_init1"):
            raise NotWatchable("folders can be watched on Linux only; svc status scans them instead")
        self.fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise _refusal_error(ctypes.get_errno(), "max_user_instances")
        # A user has few queues: one that nobody refers to any more ends by itself.
        self._closing = weakref.finalize(self, os.close, self.fd)
        self._closing.atexit = False

    def close(self) -> None:
        self._closing()

    def add(self, directory: int, mask: int = ALL) -> int | None:
        """Watch an open directory. Returns the watch's number, None if the directory is gone or not
        readable."""
        return self._add(directory, mask | ONLY_DIRECTORY)

    def add_read(self, file: int) -> int | None:
        """Watch an open file for the first read by any program. Returns the watch's number; None if the file
        is gone or not readable."""
        return self._add(file, ACCESS | ONCE)

    def _add(self, opened: int, mask: int) -> int | None:
        path = f"/proc/self/fd/{opened}".encode("ascii")
        watch = self._libc.inotify_add_watch(self.fd, path, ctypes.c_uint32(mask))
        if watch >= 0:
            return int(watch)
        code = ctypes.get_errno()
        if code in (errno.ENOENT, errno.EACCES, errno.ENOTDIR):
            return None
        raise _refusal_error(code, "max_user_watches")

    def remove(self, watch: int) -> None:
        """End a watch. Does nothing if the kernel has already ended it."""
        self._libc.inotify_rm_watch(self.fd, watch)

    def events(self) -> Iterator[InotifyEvent]:
        """Yields the events that are in the queue at the time of the call. Later events are left for the next
        call."""
        waiting = _waiting(self.fd)
        while waiting > 0:
            data = os.read(self.fd, READ_BYTES)
            waiting -= len(data)
            at = 0
            while at < len(data):
                watch, mask, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                yield InotifyEvent(watch, mask, data[at : at + length].rstrip(b"\0"))
                at += length


def _waiting(fd: int) -> int:
    """The number of bytes of events that wait in the queue."""
    size = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, size)
    return size[0]


def _refusal_error(code: int, limit: str) -> NotWatchable:
    """The error for a refusal of the kernel. If a limit of the system is the reason, the message contains the
    command that raises the limit."""
    if code not in (errno.ENOSPC, errno.EMFILE):
        return NotWatchable(f"the system refuses to watch folders: {os.strerror(code)}")
    try:
        now = int((_LIMITS / limit).read_text("ascii"))
        more = f"; allow more: sudo sysctl fs.inotify.{limit}={now * 4}"
    except (OSError, ValueError):
        now, more = 0, ""
    what = "folders" if limit == "max_user_watches" else "queues of events"
    return NotWatchable(
        f"the system lets a user watch {now:,} {what} in all (fs.inotify.{limit}), which are used up{more}"
    )
