"""How long tests wait for something that comes by itself: until it is there, and not by the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 120.0  # seconds after which it has not come; a busy machine takes many times what a quiet one does

T = TypeVar("T")


def until(found: Callable[[], T], what: object = "it", pause: float = 0.02) -> T:
    """What `found` returns as soon as that is true. Raises AssertionError when it does not come."""
    end = time.monotonic() + PATIENCE
    while not (value := found()):
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(pause)
    return value
