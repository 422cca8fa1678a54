"""Runs a function on the main thread, and ends it after a limited time.

rows = within(0.3, lambda: rendered(text)) or plain(text)
"""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
WEAK = ("weakref.py", "_weakrefset.py")  # modules whose callbacks the interpreter calls
AGAIN = 0.002  # seconds after which the signal comes again, if it came where nothing can be raised
SOON = 0.001  # seconds: the slice around is over as well


class _Late(BaseException):
    """Raised inside the running function when its time is over. It is no Exception, so that the function does
    not catch it."""


def _cleans_up(frame: FrameType | None) -> bool:
    """Returns whether the interpreter is inside a finalizer, or inside a callback of a weak reference or of
    the garbage collector. An exception that is raised there would be swallowed."""
    collecting = [getattr(callback, "__code__", None) for callback in gc.callbacks]
    while frame is not None and frame.f_code is not within.__code__:
        code = frame.f_code
        if code.co_name == "__del__" or code.co_filename.endswith(WEAK) or code in collecting:
            return True
        frame = frame.f_back
    return False


def within(seconds: float, work: Callable[[], T]) -> T | None:
    """Call `work` and return its result. Returns None if `work` needs more CPU time than `seconds`, or if
    this is not the main thread, because signals arrive only there. Only the CPU time of this process counts,
    so `work` is not ended because the machine is busy. The engine of regular expressions also checks for
    signals, so even a single long match is ended."""
    if threading.current_thread() is not threading.main_thread():
        return None
    armed = True
    outer = signal.getitimer(signal.ITIMER_VIRTUAL)[0]  # what is left of the slice that this one is in
    least = min(seconds, outer) if outer else seconds

    def late(number: int, frame: FrameType | None) -> None:
        if armed and not _cleans_up(frame):
            raise _Late

    before = signal.signal(signal.SIGVTALRM, late)
    try:
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, least, AGAIN)
            return work()
        finally:
            rest = signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)[0]
            armed = False
    except _Late:
        rest = 0.0
        return None
    finally:
        signal.signal(signal.SIGVTALRM, before)
        if outer:
            signal.setitimer(signal.ITIMER_VIRTUAL, max(SOON, outer - (least - rest)))
