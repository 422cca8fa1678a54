"""A watcher in a thread, for tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localstore.watch import protocol
from localstore.watch.server import watch
from tests.patience import PATIENCE


class Running:
    """`ended` holds the reason, or the error, once the watcher has ended; `said` what it said meanwhile."""

    def __init__(self, folder: Path, record: Path) -> None:
        self.record = record
        self.ended: list[str | Exception] = []
        self.said: list[str] = []
        self._ready = threading.Event()
        self.thread = threading.Thread(target=self._watch, args=(folder, record))
        self.thread.start()
        assert self._ready.wait(PATIENCE)

    def _watch(self, folder: Path, record: Path) -> None:
        try:
            self.ended.append(watch(folder, record, lambda _: self._ready.set(), self.said.append))
        except Exception as error:
            self.ended.append(error)
        self._ready.set()

    def over(self) -> str | Exception:
        """Why it ended; it is about to."""
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        return self.ended[0]


@contextmanager
def watched(folder: Path, record: Path) -> Iterator[Running]:
    """The folder is watched until the end of the block."""
    running = Running(folder, record)
    try:
        yield running
    finally:
        protocol.ask_stop(record)
        running.over()
