"""Keeps the memory of the app small, because it runs long and reads large answers.

An answer of 5 MB is decoded, stored and shown in blocks of that size. After such a block has been freed for
the first time, the C library of Linux takes later blocks of that size from its heaps, of which each thread
has one. These blocks keep the heaps from shrinking. After a file and a comparison of 100,000 lines and 10,000
proposals had been shown, 38 MB of 59 MB were free but not returned to the system."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.widget import Widget

# Bytes of a block that goes back to the system when it is freed; the C library begins with this limit.
LARGE = 128 * 1024
COLLECTED_AFTER = 10_000  # new objects; a command waits longer, because it ends soon
_MMAP_THRESHOLD = -3  # of mallopt


def settle() -> None:
    """Make the allocator return large blocks to the system as soon as they are freed, and make the garbage
    collector run earlier. Call it after the modules of the app are imported."""
    with suppress(OSError, AttributeError):  # another C library has other ways
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, LARGE)
    gc.freeze()  # modules stay
    gc.set_threshold(COLLECTED_AFTER)


def forget_painted(root: Widget) -> None:
    """Forget the painted lines that Textual keeps of a widget and of all widgets in it. Call it when the
    widget is not visible any more. The lines are painted again once it is visible. Textual keeps several
    copies of a line, each with seven caches: about 1 MB for a screen or tab of a large terminal."""
    from textual.widget import Widget

    for widget in root.walk_children(Widget, with_self=True):
        widget._styles_cache.clear()
