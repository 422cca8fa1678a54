"""Kills work on a working copy at a chosen step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from localstore.folder.files import Files
from localstore.sync.working_copy import WorkingCopy
from tests.localstore.folder.test_writer import STEPS
from tests.localstore.histories import Killed


class Life:
    """A process that is killed at its step number `end`: an operation on a file, or the begin or the end of a
    step of the record."""

    def __init__(self, end: int) -> None:
        self.end, self.steps = end, 0

    def count(self) -> None:
        self.steps += 1
        if self.steps == self.end:
            raise Killed

    @contextmanager
    def over(self, copy: WorkingCopy) -> Iterator[None]:
        """Count the steps of the block."""
        real, step = copy.files, copy.db.step
        copy.files = _MortalFiles(copy.folder, self)

        @contextmanager
        def mortal() -> Iterator[None]:
            self.count()
            with step():
                yield
            self.count()

        copy.db.step = mortal  # type: ignore[method-assign]
        try:
            yield
        finally:
            copy.files.close()
            copy.files, copy.db.step = real, step  # type: ignore[method-assign]


class _MortalFiles(Files):
    """Counts each operation as a step of the life."""

    def __init__(self, root: Path, life: Life) -> None:
        super().__init__(root)
        self._life = life

    def __getattribute__(self, name: str) -> Any:
        if name in STEPS:
            self._life.count()
        return super().__getattribute__(name)
