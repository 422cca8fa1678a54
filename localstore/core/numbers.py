"""Parses whole numbers in the digits 0 to 9.

Python's `str.isdigit`, `isdecimal` and `int` also accept digits of other scripts, and `int` accepts spaces, a
sign and underscores."""

from __future__ import annotations

from typing import Final

DIGITS: Final = 18  # at most; 64 bits hold every such number


def whole_number(text: str, digits: int = DIGITS) -> int | None:
    """The whole number in `text`. None if `text` is not made of 1 to `digits` digits from 0 to 9."""
    if not (text.isascii() and text.isdigit() and len(text) <= digits):
        return None
    return int(text)
