"""How long the tests with many rounds play: briefly in the suite, to the end with TEST_DEEP=1.

Of the seeds of a test every third is played in the suite, and of the examples of Hypothesis a quarter: those
are other ones each time.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

SEEDS, EXAMPLES, FEWEST = 3, 4, 20
DEEP = os.environ.get("TEST_DEEP") == "1"


def rounds(few: int, many: int) -> int:
    """`few`, or `many` with TEST_DEEP=1."""
    return many if DEEP else few


def played(*numbers: int, one_in: int) -> bool:
    """Whether the combination at these places of its lists is tried: one in so many; all with TEST_DEEP=1.

    Each row and each column of a table of combinations gets its share.
    """
    return DEEP or sum(numbers) % one_in == 0


def thin(items: list[pytest.Item]) -> list[pytest.Item]:
    """Lessen the examples of these tests, and return those that are not played at this depth."""
    if DEEP:
        return []
    for function in {getattr(item, "obj", None) for item in items}:
        asked = getattr(function, "_hypothesis_internal_use_settings", None)
        if asked is not None and asked.max_examples > FEWEST:
            few = max(FEWEST, asked.max_examples // EXAMPLES)
            function._hypothesis_internal_use_settings = settings(asked, max_examples=few)
    return [item for item in items if _place(item) % SEEDS]


def _place(item: pytest.Item) -> int:
    """Which one of its test's seeds it has; 0 without one. A seed is a number."""
    asked = getattr(item, "callspec", None)
    return asked.indices["seed"] if asked and isinstance(asked.params.get("seed"), int) else 0
