"""The text that is typed into: what is shown is what the sheet has, whatever is typed, undone or comes."""

from __future__ import annotations

import random

from textual import events
from textual.app import App, ComposeResult

from localstore.core.lane.crdt import Delta
from localstore.core.lane.sheet import AGENT, APP, Sheet, of_agent
from tui.widgets.written import TextEditor, Use

TEXT = "def one():\n    return 1\n\n\ndef two():\n    return 'ä😀'\n"


class _App(App[None]):
    """An app with one text and the agent's side of its sheet."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.given, self.clock = text, 0
        self.sheet, self.lane = Sheet(text.encode(), lambda: self.clock), of_agent(text.encode())
        self.said: list[str] = []
        self.copied: list[str] = []

    def compose(self) -> ComposeResult:
        def splice(offset: int, deleted: int, inserted: bytes) -> None:
            self.lane.follow(self.sheet.splice(offset, deleted, inserted), APP)

        def again(done: tuple[list[bytes], list[Delta]]) -> list[Delta]:
            for update in done[0]:
                self.lane.follow(update, APP)
            return done[1]

        yield TextEditor(
            "a.py",
            Use(
                splice,
                lambda: again(self.sheet.undo()),
                lambda: again(self.sheet.redo()),
                lambda: self.said.append("left"),
                lambda: self.said.append("find"),
                lambda: self.said.append("line"),
                self.copied.append,
                self.said.append,
                lambda key: False,
                lambda key: False,
            ),
        )

    def area(self) -> TextEditor:
        area = self.query_one(TextEditor)
        area.begin(self.given)
        return area


async def test_a_random_walk_shows_what_the_sheet_has() -> None:
    dice = random.Random(7)
    keys = [*"ab)", "enter", "tab", "backspace", "delete", "up", "down", "left", "home", "shift+right"]
    app = _App(TEXT)
    async with app.run_test(size=(60, 12)) as pilot:
        area = app.area()
        for _ in range(150):
            await pilot.press(dice.choice([*keys, "ctrl+k", "ctrl+w", "shift+down"]))
            app.clock += 300
            if dice.random() < 0.2:
                area.undo()
            assert area.text.encode() == app.sheet.text() == app.lane.text()


async def test_keys_that_come_at_once_are_carried_out_in_their_order() -> None:
    app = _App("one\ntwo\nthree\n")
    async with app.run_test(size=(60, 12)) as pilot:
        area = app.area()
        for key in ("down", "end", "enter", "a", "up", "home", "b", "left", "delete", "c"):
            app.post_message(events.Key(key, key if len(key) == 1 else "\r" if key == "enter" else None))
        await pilot.pause()
        await pilot.pause()
        assert area.text == "one\nctwo\na\nthree\n"


async def test_what_others_write_leaves_the_cursor_at_its_word() -> None:
    app = _App(TEXT)
    async with app.run_test(size=(60, 12)) as pilot:
        area = app.area()
        area.move_cursor((4, 4))
        update = app.lane.edit(AGENT, b"# first\n" + TEXT.encode())
        assert update is not None
        area.take(app.sheet.hear(update))
        assert area.cursor_location == (5, 4)
        await pilot.press("X")
        area.undo()
        assert area.text == "# first\n" + TEXT
        assert area.text.encode() == app.sheet.text()


async def test_find_goes_around_and_copy_takes_what_is_selected() -> None:
    app = _App(TEXT)
    async with app.run_test(size=(60, 12)) as pilot:
        area = app.area()
        found = []
        for step in (1, 1, 1, -1):
            assert area.seek("RETURN".lower(), step)
            found.append(area.selection.start)
        assert found == [(1, 4), (5, 4), (1, 4), (5, 4)]
        assert not area.seek("Return", 1)
        await pilot.press("ctrl+c", "left", "ctrl+c", "ctrl+f", "escape")
        assert app.copied == ["return"]
        assert app.said == ["select with shift and arrows first; esc leaves", "find", "left"]


async def test_a_search_selects_what_it_has_found_after_letters_that_lower_case_lengthens() -> None:
    app = _App("İİ Found here\nΣ İ SIGMA\n")
    async with app.run_test():
        area = app.area()
        assert area.seek("found", 1)
        assert area.selected_text == "Found"
        assert area.seek("sigma", 1)
        assert area.selected_text == "SIGMA"


async def test_a_sign_says_that_words_are_hidden_at_the_left() -> None:
    app = _App(f"first line\n{'x' * 90}\n{' ' * 90}y\nlast\n")
    async with app.run_test(size=(60, 12)) as pilot:
        area = app.area()
        area.cursor_location = (1, 0)
        await pilot.pause()
        assert "‹" not in "".join(area.render_line(y).text for y in range(4))
        area.cursor_location = (1, 90)
        await pilot.pause()
        rows = [area.render_line(y).text for y in range(4)]
        assert [row[area.gutter_width] for row in rows] == ["‹", "x", " ", "‹"]
