"""Detects which files were read after svc wrote them. It uses the event IN_ACCESS of Linux's inotify; a mere
stat does not count as a read."""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict

from localstore.errors import NotWatchable
from localstore.folder.files import Files
from localstore.watch.inotify import ACCESS, Inotify

FILES = 1000  # watched at most; other files count as read


class Reads:
    """Tells which files no program has read since svc wrote them. Use it from one thread. If reads cannot be
    detected, every file counts as read."""

    def __init__(self) -> None:
        self._inotify: Inotify | None = None
        with contextlib.suppress(NotWatchable, OSError):
            self._inotify = Inotify()
        self._watched: OrderedDict[str, int] = OrderedDict()  # path → watch
        self._coming: dict[str, int] = {}  # path → watch of the file that is to come there
        self._paths: dict[int, str] = {}

    def close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None

    def watch(self, files: Files, temp: str, path: str) -> None:
        """Watch the file that is now at `temp` and will be moved to `path`. The watch begins before the move,
        because a program can read the file right after the move."""
        self._drop(self._coming.pop(path, None))
        if self._inotify is None:
            return
        try:
            opened = files.open(temp)
        except OSError:
            return
        try:
            number = self._inotify.add_read(opened)
        except NotWatchable:
            self.close()
            return
        finally:
            os.close(opened)
        if number is not None:
            self._coming[path] = number
            self._paths[number] = path

    def came(self, path: str) -> None:
        """Record that svc has replaced the file at this path by a new one. From now on, programs that read
        the new file are noticed, by the inotify watch that `watch` has begun. The watch of the replaced file
        ends."""
        self._drop(self._watched.pop(path, None))
        number = self._coming.pop(path, None)
        if number is not None:
            self._watched[path] = number
        while len(self._watched) > FILES:
            self._drop(self._watched.popitem(last=False)[1])

    def none_comes(self) -> None:
        """End the watches of new files that were not moved to their paths."""
        while self._coming:
            self._drop(self._coming.popitem()[1])

    def look(self) -> None:
        """Note which files were read until now. Call this before svc itself reads a file."""
        if self._inotify is None:
            return
        for event in self._inotify.events():
            path = self._paths.pop(event.watch, None)  # read, or deleted
            if path is None or not event.mask & ACCESS:
                continue
            for watched in (self._watched, self._coming):
                if watched.get(path) == event.watch:
                    del watched[path]

    def was_read(self, path: str) -> bool:
        """Whether a program may have read the file at the path, between the time when svc wrote it and the
        last call of `look`."""
        return path not in self._watched

    def _drop(self, number: int | None) -> None:
        if number is not None and self._inotify is not None:
            self._paths.pop(number, None)
            self._inotify.remove(number)
