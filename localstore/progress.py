"""Progress reports of long work. The front end decides what it shows."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called often: `done` of `total` steps (None: unknown) of a phase, and the `bytes` moved in it so
    far."""

    def __call__(self, phase: str, done: int, total: int | None, bytes: int = 0) -> None: ...


def silent(phase: str, done: int, total: int | None, bytes: int = 0) -> None:
    """Ignores the report."""
