"""The git of this machine."""

from __future__ import annotations

import shutil
from functools import cache


@cache
def program() -> str | None:
    """Where it is; None if there is none."""
    return shutil.which("git")
