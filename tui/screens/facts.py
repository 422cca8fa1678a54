"""A column of facts on the right, if there is room."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal

from tui.screens.base import THREE_PANES, Base
from tui.text import Part, folded
from tui.theme import css_colour
from tui.widgets.lines import Item, Lines, sequence

FACTS = 40  # columns of it, with its rule


class Facts(Lines):
    """Facts in a column beside a text, with a cursor while it has the focus."""

    DEFAULT_CSS = "Facts { width: 40; padding: 0 1; }"

    def highlights(self, index: int) -> bool:
        return self.has_focus and super().highlights(index)

    def on_mount(self) -> None:
        self.styles.border_left = ("solid", css_colour(getattr(self.app, "colours", "terminal"), "line"))


class WithFacts(Base):
    """A screen of a text with a column of facts. Its content is `beside_facts(lines)`."""

    @property
    def has_facts(self) -> bool:
        """Whether there is room for the column of facts."""
        return self.app.size.width >= THREE_PANES

    @property
    def text_width(self) -> int:
        """The number of columns of the text."""
        beside = FACTS + 1 if self.has_facts else 0
        return max(20, self.size.width - 3 - beside)

    def show_facts(self, items: Sequence[Item]) -> None:
        """Show the column of facts, if there is room."""
        facts = self.query_one("#facts", Facts)
        facts.display = self.has_facts
        facts.show(sequence(items if self.has_facts else ()))


def beside_facts(lines: Lines) -> ComposeResult:
    """A list with a column of facts, which is hidden at first."""
    facts = Facts(marked=False, id="facts")
    facts.display = False
    with Horizontal(classes="row"):
        yield lines
        yield facts


def fact_rows(name: str, *lines: Sequence[Part]) -> list[Item]:
    """Rows with a name and, below it, the facts, each line folded; [] if all lines are blank."""
    rows = [row for parts in lines if _has_words(parts) for row in folded(parts, FACTS - 4)]
    if not rows:
        return []
    blank = Item(None, (("", "text"),))
    return [Item(None, ((name, "dim"),)), *(Item(None, row) for row in rows), blank]


def _has_words(parts: Sequence[Part]) -> bool:
    return any(text.strip() for text, _ in parts)
