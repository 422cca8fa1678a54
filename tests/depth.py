"""How long the tests with many rounds play: briefly in the suite, to the end with TEST_DEEP=1."""

from __future__ import annotations

import os

DEEP = os.environ.get("TEST_DEEP") == "1"


def rounds(few: int, many: int) -> int:
    """`few`, or `many` with TEST_DEEP=1."""
    return many if DEEP else few
