"""Runs a request to the server in the background of a command."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import Generic, TypeVar

from localstore.core.errors import ServerUnreachable

T = TypeVar("T")


class BackgroundCall(Generic[T]):
    """Runs the function `ask` in a thread, so that the command can go on working. `ask` must not use objects
    that the command uses. When the command ends, Python does not wait for the thread."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._answer: Future[T] = Future()
        run = copy_context().run  # the bounds of this thread's calls apply to the background call too
        Thread(target=run, args=(self._run, ask), daemon=True).start()

    def _run(self, ask: Callable[[], T]) -> None:
        try:
            self._answer.set_result(ask())
        except BaseException as error:
            self._answer.set_exception(error)

    def answer(self, seconds: float) -> T:
        """Return the result of `ask`, or raise what it raised. Waits at most `seconds`, and raises
        ServerUnreachable if there is no result by then."""
        try:
            return self._answer.result(seconds)
        except TimeoutError:
            raise ServerUnreachable(f"the server did not answer within {seconds:g} seconds") from None
