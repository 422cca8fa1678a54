"""Splices: the form in which editor plugins send changes of a text."""

from __future__ import annotations

from typing import Literal

Unit = Literal["bytes", "utf16", "characters"]
"""What offsets count: bytes of UTF-8, units of UTF-16, or characters (code points)."""
Splice = tuple[int, int, str]
"""Offset, how much is deleted there, what is inserted. Each splice is of the text after the one before."""
