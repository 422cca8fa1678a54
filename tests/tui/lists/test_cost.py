"""What a key, an answer and a preview make and paint: as much as is seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.strip import Strip

from tests.svc.conftest import Svc
from tests.tui.lists.test_preview import issues, listed
from tests.tui.test_app import press, project, sees, settle
from tui.app import SvcApp
from tui.display.looks import CELLS_MAX, Looks
from tui.display.screen import Screen
from tui.screens.split import Preview
from tui.widgets.lines import HEADINGS, Item, Lines
from tui.widgets.made import LazyRows

__all__ = ["listed", "project"]
Open = Callable[..., SvcApp]
MANY = 100_000


class Counted(Lines):
    """A list that counts the lines that are painted."""

    painted = 0

    def render_line(self, y: int) -> Strip:
        self.painted += 1
        return super().render_line(y)


class One(App[None]):
    def compose(self) -> ComposeResult:
        yield Counted(id="rows")


def paint(app: App[None]) -> list[str]:
    """The lines of the screen; those that are not dirty are kept from the last time."""
    return [strip.text for strip in app.screen._compositor.render_strips()]


@pytest.mark.parametrize("filtered", [False, True])
async def test_a_key_makes_and_paints_two_rows_of_100_000(*, filtered: bool) -> None:
    made: list[int] = []

    def make(number: int) -> Item:
        made.append(number)
        return Item(number, ((f"row {number}", "text"),))

    rows = LazyRows(
        range(MANY), make, lambda number: number, lambda number: f"row {number}", [Item(None, ())]
    )
    async with One().run_test(size=(80, 24)) as pilot:
        lines = pilot.app.query_one(Counted)
        lines.styles.border = ("round", "red")
        lines.show(rows, 500)
        if filtered:
            lines.filter("row")
            lines.go_to(500)
        lines.name_frame("Rows", lines.position)
        await pilot.pause()
        paint(pilot.app)
        lines.painted = 0
        made.clear()
        lines.move(1)
        lines.name_frame("Rows", lines.position)
        assert lines.position == "502 of 100000"
        assert "502 of 100000" in paint(pilot.app)[-1]
        assert lines.painted == 2
        assert len(made) <= 4, made


class Text(str):
    """A text that counts how often something is looked for in it."""

    looks = 0

    def __contains__(self, words: object) -> bool:
        type(self).looks += 1
        return super().__contains__(str(words))

    def casefold(self) -> str:
        return self


async def test_a_letter_that_is_typed_on_looks_in_what_matched() -> None:
    items = [Item(number, (), text=Text(f"row {number}")) for number in range(1000)]
    async with One().run_test(size=(80, 24)) as pilot:
        lines = pilot.app.query_one(Counted)
        lines.show(items)

        def matching(typed: str) -> list[object]:
            Text.looks = 0
            lines.filter(typed)
            return [lines.rows[at].key for at in range(len(lines.rows))]

        assert len(matching("99")) == 19 and Text.looks == 1000
        assert matching("999") == [999] and Text.looks == 19
        assert matching("999 row") == [999] and Text.looks == 2
        assert len(matching("99")) == 19, "what was taken back"
        assert len(matching("98")) == 20, "another text"
        lines.show([*items, Item("new", (), text=Text("row 989"))])
        assert matching("989") == [989, "new"], "other rows"
        assert len(matching("")) == 1001


async def test_other_rows_have_other_headings() -> None:
    """The headings of the rows before must not count for those after."""
    async with One().run_test(size=(80, 24)) as pilot:
        lines = pilot.app.query_one(Counted)
        lines.show([Item(None, ()), Item("a", ()), Item(None, ()), Item("b", ())], "b")
        assert lines.position == "2 of 2"
        lines.show([Item("a", ()), Item("b", ()), Item("c", ())], "b")
        assert lines.position == "2 of 3"
        lines.show([Item(None, ())] * HEADINGS + [Item("b", ())])
        assert lines.position == "1 of 1"


async def test_an_answer_that_says_what_is_known_paints_nothing(
    listed: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    show = Lines.show

    def note(self: Lines, *rows: object) -> None:
        shown.append(str(self.id))
        show(self, *rows)  # type: ignore[arg-type]

    async with open_app().run_test(size=(120, 30)) as pilot:
        await issues(pilot)
        await press(pilot, "j")
        await sees(pilot, "─ #1 ─", "so it does")
        await press(pilot, "k")
        await sees(pilot, "─ #2 ─", "because")
        await settle(pilot)
        monkeypatch.setattr(Lines, "show", note)
        await press(pilot, "j")
        await sees(pilot, "─ #1 ─", "so it does")
        await settle(pilot)
        assert shown.count("preview") == 1  # from what is known, and not again from the answer


async def test_comments_below_the_preview_are_made_when_it_is_walked(
    listed: str, alice: Svc, open_app: Open
) -> None:
    Path("body.md").write_text("\n\n".join(f"Line {number}." for number in range(40)))
    assert alice("issue", "create", "-t", "Long", "-F", "body.md").code == 0
    assert alice("issue", "comment", "4", "-b", "After all of it").code == 0
    async with open_app().run_test(size=(120, 30)) as pilot:
        await issues(pilot)
        await sees(pilot, "─ #4 ─", "Line 0.")
        await settle(pilot)
        preview = pilot.app.screen.query_one(Preview)
        assert "After all of it" not in words(preview)
        preview.scroll_rows(3)
        await settle(pilot)
        assert "After all of it" in words(preview)
        await press(pilot, "j")
        await sees(pilot, "─ #2 ─")
        await press(pilot, "k")
        await sees(pilot, "─ #4 ─")
        await settle(pilot)
        assert "After all of it" not in words(preview)
        await press(pilot, "tab")
        await settle(pilot)
        await press(pilot, "G")
        await sees(pilot, "After all of it")


def words(lines: Lines) -> str:
    rows = [lines.rows[at] for at in range(len(lines.rows))]
    return "\n".join("".join(text for text, _ in row.left) for row in rows)


def test_a_cell_is_made_once_and_not_without_end() -> None:
    looks, style = Looks(ColorSystem.TRUECOLOR), Style(bold=True)
    first, second = (looks.cells([Segment("a漢", style)]) for _ in range(2))
    assert all(a is b for a, b in zip(first, second, strict=True))
    for number in range(0x4E00, 0x4E00 + 2 * CELLS_MAX):
        looks.cells([Segment(chr(number), style)])
    assert sum(map(len, looks._cells.values())) <= CELLS_MAX
    assert looks.cells([Segment("a漢", style)]) == first


def test_a_row_without_wide_characters_is_taken_as_it_is() -> None:
    """A row with half of a wide character is mended, also where the half that is left is all there is."""
    looks, screen = Looks(ColorSystem.TRUECOLOR), Screen(6, 1)
    screen.update({0: [(0, looks.cells([Segment("ab漢cd", None)]))]})
    screen.update({0: [(3, looks.cells([Segment("│", None)]))]})
    assert "".join(cell.text for cell in screen.rows()[0]) == "ab │cd"
