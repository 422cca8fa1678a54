"""A column of facts on the right, if there is room."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal

from tui.text import Part, folded
from tui.theme import css_colour
from tui.widgets.lines import Item, Lines

FACTS = 40  # columns of it, with its rule


class Facts(Lines):
    """Facts beside a text. It has a cursor while it has the focus."""

    DEFAULT_CSS = "Facts { width: 40; padding: 0 1; }"

    def highlights(self, index: int) -> bool:
        return self.has_focus and super().highlights(index)

    def on_mount(self) -> None:
        self.styles.border_left = ("solid", css_colour(getattr(self.app, "colours", "terminal"), "line"))


def beside_facts(lines: Lines) -> ComposeResult:
    """A list with a column of facts, which is hidden at first."""
    facts = Facts(marked=False, id="facts")
    facts.display = False
    with Horizontal(classes="row"):
        yield lines
        yield facts


def fact_rows(name: str, parts: Sequence[Part]) -> list[Item]:
    """Rows with a name and the fact below it; none without parts."""
    if not any(text.strip() for text, _ in parts):
        return []
    rows = folded(parts, FACTS - 4)
    blank = Item(None, (("", "text"),))
    return [Item(None, ((name, "dim"),)), *(Item(None, row) for row in rows), blank]
