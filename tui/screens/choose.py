"""Choose one of a list; typing filters it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from textual.app import ComposeResult

from tui.screens.base import Base
from tui.text import Part
from tui.widgets.lines import Item, Lines, sequence


class Choose(Base):
    """Calls `chosen` with the key of the item, after it has closed."""

    def __init__(self, what: str, items: Sequence[Item], chosen: Callable[[Any], None]) -> None:
        super().__init__()
        self._what, self._items, self._chosen = what, items, chosen

    def content(self) -> ComposeResult:
        yield Lines(empty="nothing to choose", id="choices")

    def title_parts(self) -> Sequence[Part]:
        return ((f" {self._what}", "title"),)

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#choices", Lines).show(sequence(self._items))
        self.call_after_refresh(self.do_filter)

    def do_filter(self) -> None:
        lines = self.query_one("#choices", Lines)
        self.ask("type to filter, enter to choose", lambda text: lines.choose(), lines.filter)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        key: Hashable = event.key
        self.app.pop_screen()
        self._chosen(key)

    def do_back(self) -> None:
        self.app.pop_screen()

    def prompt_left(self) -> None:
        self.do_back()
