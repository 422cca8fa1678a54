"""Detects saves in one folder: with inotify, or with watchfiles on systems without it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from localstore.core.paths import TEMPORARY
from localstore.errors import NotWatchable
from localstore.watch.inotify import CLOSE_WRITE, CREATE, DELETE, MODIFY, MOVED_FROM, MOVED_TO
from localstore.watch.protocol import ask_stop
from localstore.watch.server import AgentLink, watch

SaveKind = Literal["closed", "written", "vanished", "below"]
Put = Callable[[SaveKind, str], None]
"""Called with what happened, and a path."""
WALK_SECONDS = 1800.0  # between two walks of a folder whose events are complete
WALK_OFTEN = 60.0  # of a folder whose events may be lost


class _InotifyTree:
    """Receives the events of inotify about the folder, and reports them as saves."""

    def __init__(self, put: Put) -> None:
        self._put = put

    def file(self, path: str, mask: int) -> None:
        if TEMPORARY.fullmatch(path.rpartition("/")[2]):
            return
        if mask & (CLOSE_WRITE | MOVED_TO):
            self._put("closed", path)
        elif mask & (MODIFY | CREATE):
            self._put("written", path)
        elif mask & (DELETE | MOVED_FROM):
            self._put("vanished", path)

    def below(self, prefix: str) -> None:
        self._put("below", prefix)


class SaveDetector:
    """Reports saves below `folder` (a path without symbolic links) until `close` is called. `put` is called
    with each save. `ended` is called with the reason if the folder no longer exists. `walks` is True if
    events may be lost, so that the caller must scan the folder often."""

    def __init__(
        self, folder: Path, record: Path, put: Put, ended: Callable[[str], None], say: Callable[[str], None]
    ) -> None:
        self._folder, self._record, self._put = folder, record, put
        self._ended, self._say = ended, say
        self._stop, self._ends = os.pipe()
        self._closing, self._ready = threading.Event(), threading.Event()
        self.walks = False
        self._thread = threading.Thread(target=self._listen, daemon=True, name=f"saves {folder.name}")
        self._thread.start()
        self._ready.wait(60)

    @property
    def walk_seconds(self) -> float:
        return WALK_OFTEN if self.walks else WALK_SECONDS

    def close(self) -> None:
        if not self._closing.is_set():
            self._closing.set()
            os.close(self._ends)
            self._thread.join(10)
            os.close(self._stop)

    def _listen(self) -> None:
        ask_stop(self._record)  # the agent replaces the watcher
        try:
            why = watch(
                self._folder,
                self._record,
                lambda _: self._ready.set(),
                self._say,
                AgentLink(_InotifyTree(self._put), self._stop),
            )
            if not self._closing.is_set():
                self._ended(why)
            return
        except NotWatchable as error:
            self._say(f"no inotify in {self._folder}: {error.detail}")
        if self._closing.is_set():
            return
        self.walks = True
        self._put("below", "")  # for changes since the tree ended
        self._report_changes()

    def _report_changes(self) -> None:
        """Report saves that the library watchfiles has seen, until the detector is closed."""
        from watchfiles import Change, watch

        self._ready.set()
        changes = watch(
            self._folder,
            stop_event=self._closing,
            step=20,
            debounce=200,
            rust_timeout=5000,
            watch_filter=None,
        )
        try:
            for batch in changes:
                for change, whole in batch:
                    path = os.path.relpath(whole, self._folder)
                    if path.startswith("..") or TEMPORARY.fullmatch(path.rpartition("/")[2]):
                        continue
                    if os.path.isdir(whole):  # noqa: PTH112 - as watchfiles gives it
                        self._put("below", "" if path == "." else f"{path}/")
                    else:
                        self._put("vanished" if change is Change.deleted else "written", path)
        except (OSError, RuntimeError) as error:
            self._say(f"watchfiles in {self._folder}: {error}")
        if not self._closing.is_set() and not self._folder.is_dir():
            self._ended("the folder was moved or deleted")
