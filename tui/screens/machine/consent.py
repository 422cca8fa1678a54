"""Asks the user before an app is launched for the first time, or after its `launch` instructions have
changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult

from tui.screens.base import Over
from tui.screens.machine.work import Offer
from tui.text import Part, folded, safe
from tui.widgets.frame import YES_OR_NO
from tui.widgets.lines import Item, Lines


class Consent(Over):
    """Shows the program that an app would run, and calls `launch` if the user presses y at the end of the
    text. Before its end is visible, y only shows more, so that nothing is allowed that was not shown."""

    def __init__(self, offer: Offer, launch: Callable[[], None]) -> None:
        super().__init__()
        self._offer, self._launch = offer, launch

    def content(self) -> ComposeResult:
        yield Lines(marked=False, id="consent")

    def title_parts(self) -> Sequence[Part]:
        return ((f" Launch {safe(self._offer.app.id)}", "title"), ("  it can do what you can", "warn"))

    def on_mount(self) -> None:
        super().on_mount()
        self.paint()
        self.open_prompt(self._ask)

    def on_resize(self) -> None:
        self.paint()

    def paint(self) -> None:
        offer, width = self._offer, max(20, self.app.size.width - 4)
        facts: list[tuple[str, str]] = [("Folder", offer.app.folder), ("It would run", offer.command)]
        facts += [(f"with {name}", value) for name, value in offer.launch.env]
        rows: list[Item] = []
        for name, value in facts:
            rows.append(Item(len(rows), ((safe(name), "dim"),)))
            for line in folded(((safe(value), "text"),), width):
                rows.append(Item(len(rows), (("  ", "text"), *line)))
            rows.append(Item(len(rows), (("", "text"),)))
        self.query_one("#consent", Lines).show(rows)

    @property
    def _left(self) -> int:
        """How many rows are hidden below the last visible row."""
        lines = self.query_one("#consent", Lines)
        return max(0, len(lines.rows) - lines.top - lines.fits)

    def _ask(self) -> None:
        lines = self.query_one("#consent", Lines)
        keys = f"{self._left} more rows: y shows them, n" if self._left else "y or n"
        self.ask(f"launch {self._offer.app.id}? {keys}", self._answer, filtered=lines, answers=YES_OR_NO)

    def _answer(self, typed: str) -> None:
        if typed.strip().lower() == "y" and self._left:
            lines = self.query_one("#consent", Lines)
            lines.scroll_rows(max(1, lines.fits))
            self._ask()
            return
        below = self.below
        self.app.pop_screen()
        if typed.strip().lower() == "y":
            self._launch()
        else:
            below.say("nothing was launched", "dim")

    def do_back(self) -> None:
        self._answer("")

    def prompt_left(self) -> None:
        self._answer("")
