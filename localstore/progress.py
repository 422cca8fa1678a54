"""Reports about the progress of long work. The receiver decides how to display them."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A function that long work calls often to report its progress. `phase`: name of the present phase;
    `done`: how many of its `total` steps are done (None if unknown); `bytes`: how many bytes were moved in
    the phase so far."""

    def __call__(self, phase: str, done: int, total: int | None, bytes: int = 0) -> None: ...


def silent(phase: str, done: int, total: int | None, bytes: int = 0) -> None:
    """A `Progress` that ignores the report."""
