"""Parts of long texts: the same lines as of the whole text, whichever line a part begins with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.render import plain

TEXTS = st.text("ab<\n\r", max_size=60)


@given(TEXTS, st.integers(1, 40), st.integers(1, 8), st.integers(1, 40))
def test_a_part_has_the_lines_of_the_text(text: str, first: int, lines: int, chars: int) -> None:
    text = plain.with_plain_breaks(text)
    whole = plain.plain_lines(text)
    assert plain.count_lines(text) == len(whole)
    part = plain.part_of(text, first, lines, chars)
    if first > len(whole):
        assert part is None
        return
    assert part is not None
    assert part.first == first
    if not part.whole:
        assert len(part.lines) == 1
        assert whole[first - 1].startswith(part.lines[0])
        return
    assert 0 < len(part.lines) <= lines
    assert part.lines == whole[first - 1 : first - 1 + len(part.lines)]


@pytest.mark.parametrize("first", [1, 2, 9_000, 19_999, 20_000])
def test_a_line_is_found_in_a_long_text(first: int) -> None:
    text = "".join(f"{number}\n" for number in range(1, 20_001))
    part = plain.part_of(text, first, 3, 1000)
    assert part is not None
    assert part.lines == [str(number) for number in range(first, min(first + 3, 20_001))]
    assert plain.part_of(text, 20_001, 3, 1000) is None


def test_rows_are_numbered_from_the_first_line() -> None:
    rows = plain.number_lines(["a", "b"], range(8, 9), 7)
    assert "<tr id=L7><td><a href=#L7>7</a><td>a\n<tr id=L8 class=marked>" in rows
