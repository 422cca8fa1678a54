"""Texts wider than their pane: what is scrolled sideways, what stays, and what a search brings into view."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from localstore.core.model.history import ChangedFile
from tests.svc.conftest import Svc
from tests.tui.code.test_code import opened
from tests.tui.test_app import press, project, sees
from tui.app import SvcApp
from tui.screens.code.find_text import excerpt
from tui.text import skip, slide
from tui.theme import THEMES
from tui.tints import DARK_256
from tui.widgets.coloured_file import FileColours
from tui.widgets.lines import Lines, mark_found
from tui.widgets.patch import LineColours, Patches
from tui.widgets.strips import sign_hidden, strip

__all__ = ["project"]
Open = Callable[..., SvcApp]
LONG = "x = 1  # " + "a" * 150 + " needle " + "b" * 40 + "\n"


@pytest.fixture
def wide(project: str, alice: Svc) -> str:
    Path("wide.py").write_text("one = 1\n" + LONG + "two = 2\n" * 60 + LONG.replace("needle", "thread"))
    assert alice("push", "-m", "A wide file").code == 0
    return project


def changed(status: str, patch: str) -> ChangedFile:
    return ChangedFile(path="a.py", status=status, patch=patch, binary=False, additions=1, deletions=1)  # type: ignore[arg-type]


def test_columns_are_skipped_also_inside_wide_characters() -> None:
    parts = [("ab", "text"), ("界c", "name")]
    assert skip(parts, 0) == parts
    assert skip(parts, 1) == [("b", "text"), ("界c", "name")]
    assert skip(parts, 3) == [(" c", "name")]
    assert skip(parts, 9) == []


def test_a_row_of_results_begins_shortly_before_what_was_found() -> None:
    assert excerpt("a needle", "needle", 40) == "a needle"
    shown = excerpt("x" * 200 + " Needle and more", "needle", 40)
    assert shown.startswith("…x") and 0 < shown.index("Needle") <= 34


def test_numbers_are_not_searched_whatever_their_role() -> None:
    parts = (("12 ", "on 22 add"), ("+", "on 22 add_mark"), ("at 12", "text"))
    assert mark_found(parts, "12", 2) == (*parts[:2], ("at ", "text"), ("12", "found text"))


def test_a_whole_file_has_its_ground_in_the_margin_alone() -> None:
    look = LineColours(lambda: DARK_256, {"a.py": FileColours()})
    whole = Patches([changed("added", "@@ -0,0 +1,2 @@\n+a = 1\n+b = 2\n")], look=look)[2]
    assert whole.rest == "text" and whole.left[0][1] == "gutter" and whole.left[1][1].startswith("on ")
    assert not any(role.startswith("on ") for _, role in whole.left[2:])
    part = Patches([changed("modified", "@@ -1 +1,2 @@\n a = 1\n+b = 2\n")], look=look)[3]
    assert part.rest.startswith("on ")
    beside = Patches([changed("added", "@@ -0,0 +1 @@\n+a = 1\n")], 30, look=look)[2]
    assert beside.rest == "text"


def test_texts_side_by_side_are_scrolled_where_they_are() -> None:
    look = LineColours(lambda: DARK_256, {"a.py": FileColours()})
    rows = Patches([changed("modified", "@@ -1 +1 @@\n-0123456789abc\n+0123456789def\n")], 12, look=look)
    assert "".join(text for text, _ in rows[2].left) == " 1 -0123456… │  1 +0123456…"
    rows.shift = 5
    assert "".join(text for text, _ in rows[2].left) == " 1 -‹6789abc │  1 +‹6789def"


def test_a_sign_says_that_words_are_hidden_at_the_left() -> None:
    row = strip([("12 ", "gutter"), ("one two", "text")], 12, THEMES["dark"])
    assert sign_hidden(row, 3, 4).text == "12 one ‹wo  "
    long = strip([("12 ", "gutter"), ("one", "text")], 22, THEMES["dark"])
    assert sign_hidden(long, 3, 10).text.rstrip() == "12 one       ‹"
    assert sign_hidden(long, 3, 10).cell_length == 22
    blank = strip([("12 ", "gutter"), ("    two", "text")], 12, THEMES["dark"])
    assert sign_hidden(blank, 3, 4).text == "12     two  "  # only blanks are hidden
    assert slide([("ab", "text"), ("cde", "name")], 0) == [("ab", "text"), ("cde", "name")]
    assert slide([("ab", "text"), ("cde", "name")], 2) == [("‹", "name"), ("de", "name")]
    assert slide([("ab", "text")], 5) == [("‹", "text")]
    assert slide([("  ", "text"), ("cde", "name")], 2) == [("cde", "name")]


@pytest.mark.parametrize("width", [80, 140])
async def test_numbers_stay_and_texts_begin(wide: str, open_app: Open, width: int) -> None:
    async with open_app().run_test(size=(width, 30)) as pilot:
        await opened(pilot, "t", *"wide", "enter")
        await sees(pilot, " 2 x = 1")
        text = await press(pilot, "l")
        assert " 2 ‹aaaa" in text and "x = 1" not in text
        await press(pilot, "h")
        text = await sees(pilot, "history of wide.py", "A wide file")
        row = next(row for row in text.splitlines() if "A wide file" in row)
        assert row.lstrip("│")[0] == "▌" and "(main)" in row
        await press(pilot, "escape")
        await sees(pilot, " 2 x = 1")
        await press(pilot, "l", "t", *"main", "enter")
        await sees(pilot, "1 def main():")


async def test_it_ends_where_the_longest_visible_line_ends(wide: str, open_app: Open) -> None:
    app = open_app()
    async with app.run_test(size=(140, 30)) as pilot:
        await opened(pilot, "t", *"main", "enter")
        await sees(pilot, "return 2")
        assert "1 def main():" in await press(pilot, "l", "l", "l")


@pytest.mark.parametrize("width", [80, 140])
async def test_a_search_scrolls_sideways(wide: str, open_app: Open, width: int) -> None:
    app = open_app()
    async with app.run_test(size=(width, 30)) as pilot:
        await opened(pilot, "t", *"wide", "enter")
        await sees(pilot, " 2 x = 1")
        await press(pilot, "slash", *"thread", "enter")
        await sees(pilot, "63 ‹aaa", " thread bbb")
        await press(pilot, "slash", *"one", "enter")
        await sees(pilot, " 1 one = 1", "esc ends the search")
        await press(pilot, "F", *"needle")
        text = await sees(pilot, "1 line in 1 file")
        row = next(row for row in text.splitlines() if "wide.py:2" in row)
        assert "…aa" in row and "needle" in row
        if width > 100:
            await sees(pilot, " 2 …aaaa")  # the preview begins there as well
        await press(pilot, "enter")
        await sees(pilot, " 2 ‹aaa", " needle bbb")
        lines = app.screen.query_one("#file", Lines)
        assert lines.searched
        await press(pilot, "escape")
        assert not lines.searched
        await sees(pilot, " needle bbb")  # it is ended, and the text stays


async def test_a_search_shows_the_source_of_one_page_only(wide: str, alice: Svc, open_app: Open) -> None:
    Path("guide.md").write_text("# Guide\n\n* needle\n")
    assert alice("push", "-m", "A guide").code == 0
    async with open_app().run_test(size=(140, 30)) as pilot:
        await opened(pilot, "F", *"guide")
        await sees(pilot, "1 line in 1 file")
        await press(pilot, "enter")
        await sees(pilot, "1 # Guide", "v page")
        await press(pilot, "t", *"readme", "enter")
        await sees(pilot, "Project", "v source")


async def test_what_was_searched_in_a_text_is_not_marked_elsewhere(wide: str, open_app: Open) -> None:
    app = open_app()
    async with app.run_test(size=(140, 30)) as pilot:
        await opened(pilot, "F", *"needle")
        await sees(pilot, "1 line in 1 file")
        await press(pilot, "enter")
        await sees(pilot, " needle bbb")
        lines = app.screen.query_one("#file", Lines)
        await press(pilot, "h")
        await sees(pilot, "history of wide.py", "A wide file")
        assert not lines.searched
        await press(pilot, "slash", *"wide", "enter")
        assert lines.searched
        await press(pilot, "escape", "escape")
        await sees(pilot, " 2 x = 1")
        assert not lines.searched
        await press(pilot, "slash", *"one", "enter", "t", *"main", "enter")
        await sees(pilot, "return 2")
        assert not lines.searched
