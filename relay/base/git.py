"""Finds the git program of this machine."""

from __future__ import annotations

import shutil
from functools import cache


@cache
def find_program() -> str | None:
    """The path of the git program; None if there is none."""
    return shutil.which("git")
