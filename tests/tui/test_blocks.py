"""Blocks of rows, which stand beside each other where there is room."""

from __future__ import annotations

from rich.cells import cell_len

from tui.blocks import Block, Line, laid
from tui.text import folded


def texts(rows: list[Line]) -> list[str]:
    return ["".join(text for text, _ in row) for row in rows]


def block(title: str, *rows: str) -> Block:
    return Block(title, lambda width: [((row, "text"),) for row in rows])


def test_blocks_are_below_each_other_in_little_room() -> None:
    assert texts(laid([block("A", "1"), block("B", "2")], 20)) == [
        "A ──────────────────",
        "1",
        "",
        "B ──────────────────",
        "2",
    ]


def test_a_block_goes_to_the_shortest_column() -> None:
    rows = texts(laid([block("A", "1", "2", "3"), block("B", "4"), block("C", "5")], 23, least=10))
    assert rows == [
        "A ────────   B ────────",
        "1            4",
        "2            ",
        "3            C ────────",
        "             5",
    ]


def test_a_block_without_rows_leaves_no_gap() -> None:
    assert texts(laid([block("A"), block("B", "1")], 10)) == ["B ────────", "1"]
    assert laid([block("A")], 10) == [] == laid([], 10)


def test_wide_characters_and_folded_rows_stay_in_their_column() -> None:
    words = "漢字 and words that are folded within the column that they are given"
    whole = Block("W", lambda width: folded([(words, "text")], width))
    rows = texts(laid([whole, block("漢字" * 20, "漢字" * 20)], 43, least=20))
    assert all(cell_len(row) <= 43 for row in rows)
    assert "…" not in "".join(row[:20] for row in rows), "what is folded is not cut as well"
