"""Detects which written files were read since (IN_ACCESS of Linux; a stat does not count)."""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict

from localstore.errors import NotWatchable
from localstore.folder.files import Files
from localstore.watch.inotify import ACCESS, Inotify

FILES = 1000  # watched at most; other files count as read


class Reads:
    """Use it from one thread. Where reads cannot be detected, every file counts as read."""

    def __init__(self) -> None:
        self._inotify: Inotify | None = None
        with contextlib.suppress(NotWatchable, OSError):
            self._inotify = Inotify()
        self._watched: OrderedDict[str, int] = OrderedDict()  # path → watch
        self._paths: dict[int, str] = {}

    def close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None

    def watch(self, files: Files, path: str) -> None:
        """Watch the file that is at the path now."""
        self.forget(path)
        if self._inotify is None:
            return
        try:
            opened = files.open(path)
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
            self._watched[path] = number
            self._paths[number] = path
        while len(self._watched) > FILES:
            self.forget(next(iter(self._watched)))

    def look(self) -> None:
        """Process the reads so far, before svc itself reads."""
        if self._inotify is None:
            return
        for event in self._inotify.events():
            gone = self._paths.pop(event.watch, None)  # read, or deleted
            if gone is not None and event.mask & ACCESS:
                self._watched.pop(gone, None)

    def was_read(self, path: str) -> bool:
        """Whether the file at the path may have been read between `watch` and the last `look`."""
        return path not in self._watched

    def forget(self, path: str) -> None:
        number = self._watched.pop(path, None)
        if number is not None and self._inotify is not None:
            self._paths.pop(number, None)
            self._inotify.remove(number)
