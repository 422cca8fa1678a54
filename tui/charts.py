"""Small charts as parts (text, role) of rows: bars, and columns over time.

row = (("high     ", "bad"), *bar(3, 10, 20, "bad"), (" 3", "text"))"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from tui.text import Part

LEVELS = "▁▂▃▄▅▆▇█"
WEEK = timedelta(days=7)


def bar(value: float, most: float, width: int, role: str = "accent") -> tuple[Part, Part]:
    """Returns a bar of `width` columns, as (full part, empty part). The bar is full if `value` equals `most`.
    A value above 0 fills at least one column."""
    share = max(0.0, min(1.0, value / most)) if most > 0 else 0.0
    full = min(width, math.ceil(share * width))
    return ("━" * full, role), ("·" * (width - full), "dim")


def sparkline(values: Sequence[float], role: str = "accent") -> list[Part]:
    """Returns a chart of one row with a column for each value. A value of 0 is a dim dot."""
    most = max(values, default=0)
    parts: list[Part] = []
    for value in values:
        sign: Part = (LEVELS[_level(value, most, len(LEVELS)) - 1], role) if value > 0 else ("·", "dim")
        if parts and parts[-1][1] == sign[1]:
            parts[-1] = (parts[-1][0] + sign[0], sign[1])
        else:
            parts.append(sign)
    return parts


def columns_of(
    values: Sequence[float], height: int, wide: int = 1, role: str = "accent"
) -> list[tuple[Part, ...]]:
    """Returns the rows of a chart. Each value is a column of `wide` cells, with a blank between columns. The
    first row begins with the highest value as a number, the last row with 0."""
    most = max(values, default=0)
    label = len(f"{most:g}")
    rows: list[tuple[Part, ...]] = []
    for row in range(height, 0, -1):
        cells = [_cell(value, most, row, height) for value in values]
        number = f"{most:g}" if row == height else "0" if row == 1 else ""
        rows.append(((f"{number:>{label}} ", "dim"), (" ".join(cell * wide for cell in cells), role)))
    return rows


def by_week(times: Iterable[str], now: float, weeks: int) -> list[int]:
    """Counts how many of the times (ISO 8601) are in each of the last `weeks` weeks. Returns the counts, the
    present week last. `now`: seconds since 1970."""
    end = datetime.fromtimestamp(now, UTC)
    counts = [0] * weeks
    for time in times:
        try:
            ago = (end - datetime.fromisoformat(time)) // WEEK
        except (ValueError, TypeError):
            continue
        if ago < weeks:
            counts[weeks - 1 - max(0, ago)] += 1
    return counts


def _level(value: float, most: float, levels: int) -> int:
    """Returns the height of a value in a chart, from 1 to `levels`. Returns 0 for a value of 0."""
    return max(1, round(value / most * levels)) if most > 0 and value > 0 else 0


def _cell(value: float, most: float, row: int, height: int) -> str:
    """Returns the character that a chart shows for a value in row `row`. Rows count from 1 at the bottom."""
    level = _level(value, most, height * len(LEVELS)) - (row - 1) * len(LEVELS)
    return " " if level <= 0 else LEVELS[min(level, len(LEVELS)) - 1]
