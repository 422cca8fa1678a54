"""Blocks of rows, which stand beside each other where there is room."""

from __future__ import annotations

from rich.cells import cell_len

from tui.blocks import Block, Line, draw_card, lay_blocks
from tui.markdown.words import Row
from tui.screens.facts import fact_rows, facts_width, wrap_facts
from tui.text import fold
from tui.widgets.lines import Item


def texts(rows: list[Line]) -> list[str]:
    return ["".join(text for text, _ in row) for row in rows]


def block(title: str, *rows: str) -> Block:
    return Block(title, lambda width: [((row, "text"),) for row in rows])


def test_blocks_are_below_each_other_in_little_room() -> None:
    assert texts(lay_blocks([block("A", "1"), block("B", "2")], 20)) == [
        "A ──────────────────",
        "1",
        "",
        "B ──────────────────",
        "2",
    ]


def test_a_block_goes_to_the_shortest_column() -> None:
    rows = texts(lay_blocks([block("A", "1", "2", "3"), block("B", "4"), block("C", "5")], 23, least=10))
    assert rows == [
        "A ────────   B ────────",
        "1            4",
        "2            ",
        "3            C ────────",
        "             5",
    ]


def test_a_block_without_rows_leaves_no_gap() -> None:
    assert texts(lay_blocks([block("A"), block("B", "1")], 10)) == ["B ────────", "1"]
    assert lay_blocks([block("A")], 10) == [] == lay_blocks([], 10)


def test_wide_characters_and_folded_rows_stay_in_their_column() -> None:
    words = "漢字 and words that are folded within the column that they are given"
    whole = Block("W", lambda width: fold([(words, "text")], width))
    rows = texts(lay_blocks([whole, block("漢字" * 20, "漢字" * 20)], 43, least=20))
    assert all(cell_len(row) <= 43 for row in rows)
    assert "…" not in "".join(row[:20] for row in rows), "what is folded is not cut as well"


def test_a_card_keeps_its_width_and_its_links() -> None:
    link = Row((("see ", "text"), ("#2", "link")), ("#2",))
    rows = draw_card([("@bob", "person")], [link, (("漢字" * 20, "text"),)], 20)
    parts = [row.parts if isinstance(row, Row) else row for row in rows]
    assert [cell_len("".join(text for text, _ in row)) for row in parts] == [20, 20, 20, 20]
    assert isinstance(rows[1], Row) and rows[1].targets == ("#2",)


def test_facts_are_wrapped_to_their_column_and_not_cut_as_well() -> None:
    why = "changes are requested until that reviewer approves or an admin dismisses it"
    rows = wrap_facts([*fact_rows("merge", [(why, "warn")]), Item("file", (("x" * 99, "text"),))], 32)
    wrapped = ["".join(text for text, _ in row.left) for row in rows]
    assert " ".join(row.rstrip() for row in wrapped[1:4]).strip() == why
    assert all(cell_len(row.rstrip()) <= 32 for row in wrapped[:-1])
    assert rows[-1].key == "file", "a row that can be chosen is one row"


def test_a_fact_that_begins_with_a_sign_is_wrapped_below_its_words() -> None:
    long = "a-very-long-label-name-that-goes-on"
    labels = [[("● ", "label 0"), (name, "text")] for name in (long, "documentation of retries")]
    rows = wrap_facts(
        [*fact_rows("labels", *labels), Item("files", (("", "text"),)), Item("x", ((long, "text"),))], 20
    )
    assert ["".join(text for text, _ in row.left) for row in rows] == [
        "labels",
        "● a-very-long-label-",
        "  name-that-goes-on",
        "● documentation of ",
        "  retries",
        "",  # one blank row, although two were given
        long,
    ]


def test_facts_get_what_a_text_leaves() -> None:
    assert [facts_width(width) for width in (140, 160, 200)] == [40, 52, 72]
