"""Bars and columns, which tell values apart and stay within their room."""

from __future__ import annotations

import pytest

from tui.charts import bar, by_week, columns_of, sparkline

DAY = 24 * 3600.0


@pytest.mark.parametrize(
    ("value", "most", "drawn"),
    [(0, 10, "····"), (0.1, 10, "━···"), (5, 10, "━━··"), (10, 10, "━━━━"), (12, 10, "━━━━"), (3, 0, "····")],
)
def test_a_bar_fills_its_room_by_its_share(value: float, most: float, drawn: str) -> None:
    assert "".join(text for text, _ in bar(value, most, 4)) == drawn


def test_nothing_and_little_are_told_apart_in_a_row_of_columns() -> None:
    assert sparkline([0, 0, 1, 100]) == [("··", "dim"), ("▁█", "accent")]
    assert sparkline([]) == []


def test_columns_stand_on_one_another() -> None:
    rows = ["".join(text for text, _ in row) for row in columns_of([0, 4, 16], 2)]
    assert rows == ["16     █", " 0   ▄ █"]


def test_weeks_count_back_from_now() -> None:
    now = 100 * DAY
    times = [
        "1970-04-10T00:00:00Z",
        "1970-04-02T00:00:00Z",
        "1970-01-01T00:00:00Z",
        "soon",
        "1970-04-20T00:00:00Z",
    ]
    assert by_week(times, now, 3) == [0, 1, 2]
