"""Reports about the progress of long work. The receiver decides how to display them."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A function that long work calls often, with the name of the present phase, how many steps of it are
    `done` of `total` (None: unknown), and the `bytes` moved in it so far."""

    def __call__(self, phase: str, done: int, total: int | None, bytes: int = 0) -> None: ...


def silent(phase: str, done: int, total: int | None, bytes: int = 0) -> None:
    """A `Progress` that ignores the report."""
