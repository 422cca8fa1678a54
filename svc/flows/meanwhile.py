"""A question to the server that a command asks beside its own work."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Generic, TypeVar

from localstore.core.errors import ServerUnreachable

T = TypeVar("T")


class Meanwhile(Generic[T]):
    """`ask` runs in a thread of its own from now on. Nobody waits for its end who does not want the answer,
    so it must not touch what the command works on."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._answers: list[T] = []
        self._errors: list[BaseException] = []
        self._thread = Thread(target=self._run, args=(ask,), daemon=True)
        self._thread.start()

    def _run(self, ask: Callable[[], T]) -> None:
        try:
            self._answers.append(ask())
        except BaseException as error:
            self._errors.append(error)

    def answer(self, seconds: float) -> T:
        """What was answered, or raised. ServerUnreachable if that takes longer than these `seconds`."""
        self._thread.join(seconds)
        for error in self._errors:
            raise error
        for answer in self._answers:
            return answer
        raise ServerUnreachable(f"the server did not answer within {seconds:g} seconds")
