"""Markdown as rows: blocks, words, links, what strangers write, and texts that are made to take long."""

from __future__ import annotations

import signal
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tui.markdown.page import CHARS, LINES, MarkdownRows, Taste, render_markdown
from tui.slices import within
from tui.text import Part
from tui.texts import linked_path


def page(text: str, width: int = 60, taste: Taste | None = None) -> MarkdownRows:
    found = render_markdown(text, width, taste or Taste())
    assert found is not None
    return found


def shown(text: str, width: int = 60, taste: Taste | None = None) -> list[str]:
    return ["".join(words for words, _ in row.parts).rstrip() for row in page(text, width, taste).rows]


def targets(text: str) -> list[str]:
    return [target for row in page(text).rows for target in row.targets]


def roles(text: str) -> dict[str, str]:
    return {words.strip(): role for row in page(text).rows for words, role in row.parts if words.strip()}


def test_blocks_become_rows() -> None:
    text = "# Title\n\nOne\ntwo.\n\n- a\n  - b\n    1. c\n- [ ] d\n- [x] e\n\n"
    text += "> quoted\n> - f\n\n---\n\n## Next\n"
    assert shown(text, 20) == [
        "Title",
        "─────",
        "",
        "One two.",
        "",
        "• a",
        "  • b",
        "    1. c",
        "☐ d",
        "☑ e",
        "",
        "▎ quoted",
        "▎",
        "▎ • f",
        "",
        "─" * 20,
        "",
        "Next",
    ]


def test_ends_of_lines_count_in_comments() -> None:
    assert shown("One\ntwo.", taste=Taste(breaks=True)) == ["One", "two."]


def test_code_keeps_its_lines_and_its_indentation() -> None:
    text = "```python\ndef f():\n    return 'a long line that is not wrapped'\n\n```\n\n    indented\n"
    assert shown(text, 20) == [
        "│ def f():",
        "│     return 'a long line that is not wrapped'",
        "│",
        "",
        "│ indented",
    ]


def test_code_is_coloured_by_its_language() -> None:
    asked: list[tuple[str, str]] = []

    def colour(text: str, language: str) -> list[tuple[Part, ...]]:
        asked.append((text, language))
        return [((line, "keyword"),) for line in text.splitlines()]

    found = render_markdown("```py title=x\na\nb\n```\n\n```\nc\n```\n", 60, Taste(), colour)
    assert found is not None
    assert asked == [("a\nb\n", "py")]
    assert [row.parts[-1] for row in found.rows if len(row.parts) > 1] == [
        ("a", "keyword"),
        ("b", "keyword"),
        ("c", "code_text"),
    ]


def test_tables_are_aligned_and_cut() -> None:
    text = "| version | n | result |\n|:--|:-:|--:|\n| 0.27 | 1 | ok |\n| main | 22 | " + "very " * 20 + "|\n"
    rows = shown(text, 30)
    assert rows[0].startswith("version  n") and rows[0].endswith("result")
    assert rows[1] == "─" * 30
    assert rows[2].startswith("0.27     1") and rows[2].endswith("ok")
    assert rows[3].endswith("…")


def test_words_have_roles() -> None:
    found = roles("*it* **bold** ~~gone~~ `code` [link](https://a.example) plain")
    assert found == {
        "it": "emphasis",
        "bold": "strong",
        "gone": "struck",
        "code": "code",
        "link": "link",
        "plain": "text",
    }


def test_links_without_markup() -> None:
    text = (
        "See #12, alice/notes#3, @bob, 0b3e47e8 and https://a.example/x?y=1. Not a@b.c, deadbeef, x#1, `#13`."
    )
    assert targets(text) == [
        "number:#12",
        "number:alice/notes#3",
        "@bob",
        "seal:0b3e47e8",
        "https://a.example/x?y=1",
    ]


def test_a_link_that_is_wrapped_is_one_in_each_row() -> None:
    rows = page("[two words](https://a.example)", 16).rows
    assert [row.targets for row in rows] == [("https://a.example",)]
    rows = page("[" + "word " * 8 + "](https://a.example)", 16).rows
    assert len(rows) == 3
    assert all(row.targets == ("https://a.example",) for row in rows)


def test_addresses_stand_behind_links_that_cannot_be_followed() -> None:
    found = shown("[docs](https://a.example) and [x](b.md)", taste=Taste(targets=True))
    assert found == ["docs (https://a.example) and x"]


def test_pictures_are_named() -> None:
    assert shown('![A logo](a.png) <img alt="B" src="b.png"> <img src="c.png">') == ["▣ A logo ▣ B ▣ c.png"]
    assert targets('<p align="center"><img src="x.png" alt="X"></p>') == ["x.png"]


def test_details_fold() -> None:
    text = "a\n\n<details>\n<summary>More <b>of</b> it</summary>\n\nhidden\n\n- x\n\n</details>\n\nb\n"
    assert shown(text) == ["a", "", "▾ More of it", "", "hidden", "", "• x", "", "b"]
    assert shown(text, taste=Taste(opened=frozenset())) == ["a", "", "▸ More of it", "", "b"]
    assert shown(text, taste=Taste(opened={0}))[2] == "▾ More of it"
    assert "details:0" in targets(text)


def test_of_other_html_the_text_is_left() -> None:
    text = "<div onclick='x'>In <b>a</b> box</div>\n\na <b>bold</b><br>c <script>alert(1)</script>\n"
    text += "\n<!-- hidden -->\n\n<script>\nalert(1)\n</script>\n\n<style>p {}</style>\n"
    assert shown(text) == ["In a box", "", "a bold", "c alert(1)"]


@pytest.mark.parametrize(
    "text",
    [
        "a\x1b[31mb",
        "`\x1b]8;;x\x07`",
        "```\n\x1b[2J\n```",
        "| \x1b[1m |\n|--|\n| \u202ex |",
        "<details><summary>\x1b[2J\u2066</summary></details>",
        "[\x1b](\x1b)",
        "![\x1b](\u202e)",
        "# \x9b31m",
        "<img alt='\x1b'>",
        "&#27;[31m &#x202e;",
        "- [ ] \x07",
        "> \x00",
    ],
)
def test_what_strangers_write_cannot_steer_the_terminal(text: str) -> None:
    for row in page(text).rows:
        for words, _ in row.parts:
            assert all(unicodedata.category(one) not in ("Cc", "Cf") for one in words), words


MARKS = st.text("ab #*_`>-[]()!|<>\\\n 1.~&;:@\x1b\u202e界", max_size=300)


@given(MARKS, st.integers(16, 100))
def test_any_text_fits_its_width(text: str, width: int) -> None:
    found = render_markdown(text, width)
    if found is None:
        return
    for row in found.rows:
        words = "".join(part for part, _ in row.parts)
        assert all(unicodedata.category(one) not in ("Cc", "Cf") for one in words)
        linked = [role for _, role in row.parts if role in ("link", "person")]
        assert len(linked) == len(row.targets)
        code = any(role in ("gutter", "code_text") for _, role in row.parts)
        assert code or cell_len(words.rstrip()) <= max(width, 60)


def test_a_long_text_is_cut_and_a_deep_one_is_not_taken_apart() -> None:
    rows = shown("a b c\n\n" * (CHARS // 4))
    assert "more characters" in rows[-1]
    assert len(rows) < LINES + 10
    assert render_markdown("> " * 100 + "deep", 60) is None


HOSTILE = [
    "[" * 60_000,
    "![[" * 20_000,
    "*a " * 20_000,
    "_a*b" * 15_000,
    "<a " * 20_000,
    "<!--" * 15_000,
    "|a" * 9_000 + "\n" + "|-" * 9_000 + "\n" + "|b" * 9_000,
    "[a](" * 15_000,
    "<" * 60_000,
    "\n " * 30_000,
    "".join(f"[a{n}]: b\n" for n in range(5000)),
    "#1" * 30_000,
    "a1" * 30_000,
    "@a" * 30_000,
    "http://" * 9_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:4].strip() or "blank")
def test_no_text_holds_the_app(text: str) -> None:
    within(0.3, lambda: render_markdown(text, 80))  # rows or none, but it comes back


def test_work_that_takes_too_long_is_ended() -> None:
    def endless() -> None:
        while True:
            pass

    assert within(0.01, endless) is None
    assert within(1.0, lambda: 1) == 1
    assert within(1.0, lambda: within(0.01, endless)) is None
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_work_is_ended_though_its_first_end_is_swallowed() -> None:
    class Slow:
        def __del__(self) -> None:
            for _ in range(10**6):
                pass

    def endless() -> None:
        while True:
            Slow()

    assert within(0.01, endless) is None


def test_paths_that_links_lead_to() -> None:
    assert linked_path("README.md", "docs/a.md#part") == "docs/a.md"
    assert linked_path("docs/a.md", "../b%20c.md") == "b c.md"
    assert linked_path("docs/a.md", "/x.md") == "x.md"
    for target in ("../../b", "https://a.example", "#part", "number:#3", "seal:0b3e47e8", "@bob", "▣", "."):
        assert linked_path("a.md", target) is None, target
