"""How long work tells where it is. The front end decides what to show."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called often: `done` of `total` steps (None: not known yet) of a phase, `bytes` moved so far in it."""

    def __call__(self, phase: str, done: int, total: int | None, bytes: int = 0) -> None: ...


def silent(phase: str, done: int, total: int | None, bytes: int = 0) -> None:
    """Shows nothing."""
