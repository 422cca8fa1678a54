"""Numbers in the digits 0 to 9, and where people and strangers type others."""

from __future__ import annotations

import pytest

from localstore.core.numbers import whole_number
from relay.domain.repository.code import parse_marked_lines
from relay.http.bytes_reply import parse_range

ARABIC, FULLWIDTH = "٣", "３"


@pytest.mark.parametrize("text", [ARABIC, FULLWIDTH, "1٣", "²", "", " 3", "+3", "-3", "1_0", "3.0", "1" * 19])
def test_what_is_no_number(text: str) -> None:
    assert whole_number(text) is None


def test_numbers() -> None:
    assert [whole_number(text) for text in ("0", "007", "9" * 18)] == [0, 7, 10**18 - 1]
    assert (whole_number("99", 2), whole_number("100", 2)) == (99, None)


@pytest.mark.parametrize("digit", [ARABIC, FULLWIDTH])
def test_digits_of_other_scripts_name_no_range_and_no_line(digit: str) -> None:
    assert parse_range(f"bytes=0-{digit}", None, None, 10) is None
    assert not parse_marked_lines(digit, 10)
