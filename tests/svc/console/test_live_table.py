"""A table that is drawn in place shows what it should, and little is written for that."""

from __future__ import annotations

import pyte
from hypothesis import given
from hypothesis import strategies as st

from svc.console.live_table import Region

LINE = st.text("abc ", max_size=12)


class Screen:
    """A terminal with one line above the region."""

    def __init__(self) -> None:
        self.screen = pyte.Screen(40, 30)
        self.stream = pyte.Stream(self.screen)
        self.bytes = 0
        self.write("above\n")

    def write(self, text: str) -> None:
        self.bytes += len(text.encode())
        self.stream.feed(text.replace("\n", "\r\n"))

    def shown(self) -> list[str]:
        """The lines between that one and the cursor."""
        cursor, display = self.screen.cursor, [line.rstrip() for line in self.screen.display]
        assert cursor.x == 0
        assert display[0] == "above"
        assert not any(display[cursor.y :])
        return display[1 : cursor.y]


@given(st.lists(st.lists(LINE, max_size=6), min_size=1, max_size=6))
def test_what_was_painted_last_is_what_is_there(paintings: list[list[str]]) -> None:
    screen = Screen()
    region = Region(screen.write)
    for lines in paintings:
        region.paint(lines)
        assert screen.shown() == [line.rstrip() for line in lines]


def test_one_changed_line_is_all_that_is_written() -> None:
    screen = Screen()
    region = Region(screen.write)
    lines = [f"check {n}  pending" for n in range(20)]
    region.paint(lines)
    before = screen.bytes
    region.paint(lines)
    assert screen.bytes == before
    lines[4] = "check 4  pass"
    region.paint(lines)
    assert screen.bytes - before <= len(lines[4]) + 15
    assert screen.shown() == lines
