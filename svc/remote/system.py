"""Makes system calls for which Python has no function."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any


@cache
def libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def call(number: int, *arguments: Any) -> int:
    """Make the system call with this number, and return its result. Raises OSError if it fails."""
    whole = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    result = int(libc().syscall(ctypes.c_long(number), *whole))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
