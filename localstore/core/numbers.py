"""Whole numbers as people and protocols write them: in the digits 0 to 9 alone.

Python's `str.isdigit`, `isdecimal` and `int` also take the digits of other scripts, and `int` takes spaces, a
sign and underscores.
"""

from __future__ import annotations

from typing import Final

DIGITS: Final = 18  # at most; 64 bits hold every such number


def whole_number(text: str, digits: int = DIGITS) -> int | None:
    """The number that `text` writes, in at most so many of the digits 0 to 9; None if it is anything else."""
    if not (text.isascii() and text.isdigit() and len(text) <= digits):
        return None
    return int(text)
