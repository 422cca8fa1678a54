"""A question to the server that a command asks beside its own work."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import Generic, TypeVar

from localstore.core.errors import ServerUnreachable

T = TypeVar("T")


class BackgroundCall(Generic[T]):
    """`ask` runs in a thread of its own from now on. Nobody waits for its end who does not want the answer
    (an executor would, when Python ends), so it must not touch what the command works on."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._answer: Future[T] = Future()
        run = copy_context().run  # what bounds the calls of this thread bounds the question too
        Thread(target=run, args=(self._run, ask), daemon=True).start()

    def _run(self, ask: Callable[[], T]) -> None:
        try:
            self._answer.set_result(ask())
        except BaseException as error:
            self._answer.set_exception(error)

    def answer(self, seconds: float) -> T:
        """What was answered, or raised. ServerUnreachable if that takes longer than these `seconds`."""
        try:
            return self._answer.result(seconds)
        except TimeoutError:
            raise ServerUnreachable(f"the server did not answer within {seconds:g} seconds") from None
