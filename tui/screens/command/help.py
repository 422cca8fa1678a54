"""Keys of the screen below, and every action as a palette."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult

from tui.actions import Action, spoken
from tui.screens.base import Base
from tui.text import Part
from tui.widgets.lines import Item, Lines, sequence


def _item(action: Action) -> Item:
    keys = " ".join(spoken(key) for key in action.keys)
    return Item(
        action.id,
        ((f"{keys:<18}", "accent"), (action.label, "text")),
        ((action.command, "dim"),) if action.command else (),
        f"{keys} {action.label} {action.command}",
    )


class Help(Base):
    """The keys of a screen; enter runs one. As a palette it starts with typing."""

    def __init__(self, actions: Sequence[Action], where: str, *, typing: bool = False) -> None:
        super().__init__()
        self._table = {action.id: action for action in actions}
        self._where, self._typing = where, typing

    def content(self) -> ComposeResult:
        yield Lines(id="actions")

    def title_parts(self) -> Sequence[Part]:
        return ((f" {'All actions' if self._typing else 'Keys'}", "title"), (f"  {self._where}", "dim"))

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#actions", Lines).show(sequence([_item(action) for action in self._table.values()]))
        if self._typing:
            self.call_after_refresh(self.do_filter)

    def do_filter(self) -> None:
        lines = self.query_one("#actions", Lines)
        self.ask("type to filter, enter to run", lambda text: lines.choose(), lines.filter)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        action = self._table[str(event.key)]
        self.app.pop_screen()
        self.app.call_later(self.svc.carry_out, action)

    def do_back(self) -> None:
        self.app.pop_screen()

    def prompt_left(self) -> None:
        if self._typing:
            self.do_back()
