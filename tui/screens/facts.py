"""A column of facts on the right, if there is room."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal

from tui.screens.base import THREE_PANES, TWO_PANES, Base
from tui.text import Part, folded
from tui.theme import css_colour
from tui.widgets.lines import Item, Lines, sequence

FACTS, WIDEST = 40, 72  # columns of it, with its frame, at least and at most
TEXT = 108  # columns that a text is given before the facts get more than the least
FRAME = 4  # columns of a frame and of the blanks inside it


class Facts(Lines):
    """Facts in a column beside a text, with a cursor while it has the focus."""

    DEFAULT_CSS = "Facts { width: 40; padding: 0 1; }"

    def highlights(self, index: int) -> bool:
        return self.has_focus and super().highlights(index)


def facts_width(width: int) -> int:
    """The columns of the facts beside a text, with their frame, on a screen of this width."""
    return max(FACTS, min(WIDEST, width - TEXT))


def frame(lines: Lines, title: str, bright: bool, framed: bool = True) -> None:
    """Draw a frame with a title and the cursor's place around a list, or none."""
    colour = css_colour(getattr(lines.app, "colours", "terminal"), "accent" if bright else "line")
    lines.styles.border = ("round", colour) if framed else None
    if framed:
        lines.name_frame(title, lines.position if lines.marked else "")


class WithFacts(Base):
    """A screen of a text with a column of facts. Its content is `beside_facts(lines)`."""

    @property
    def has_frames(self) -> bool:
        """Whether there is room for frames."""
        return self.app.size.width >= TWO_PANES

    @property
    def has_facts(self) -> bool:
        """Whether there is room for the column of facts."""
        return self.app.size.width >= THREE_PANES

    @property
    def text_width(self) -> int:
        """The number of columns of the text."""
        beside = facts_width(self.app.size.width) if self.has_facts else 0
        return max(20, self.size.width - 3 - beside - (2 if self.has_frames else 0))

    @property
    def facts_room(self) -> int:
        """The number of columns of a fact."""
        return facts_width(self.app.size.width) - FRAME

    def page_title(self) -> str:
        """The title in the frame of the text."""
        return ""

    def show_facts(self, items: Sequence[Item]) -> None:
        """Show the column of facts, if there is room."""
        facts = self.query_one("#facts", Facts)
        facts.display = self.has_facts
        facts.styles.width = facts_width(self.app.size.width)
        facts.show(sequence(fitted(items, self.facts_room) if self.has_facts else ()))
        self.place_frames()

    def place_frames(self) -> None:
        """Draw the frames; that of the list with the focus is bright."""
        for lines in self.query(Lines):
            facts = isinstance(lines, Facts)
            bright = lines.has_focus or (not facts and not isinstance(self.focused, Facts))
            frame(lines, "facts" if facts else self.page_title(), bright, self.has_frames)

    def on_descendant_focus(self) -> None:
        self.place_frames()

    def on_descendant_blur(self) -> None:
        self.place_frames()

    def on_lines_moved(self, event: Lines.Moved) -> None:
        self.place_frames()


def beside_facts(lines: Lines) -> ComposeResult:
    """A list with a column of facts, which is hidden at first."""
    facts = Facts(marked=False, id="facts")
    facts.display = False
    with Horizontal(classes="row"):
        yield lines
        yield facts


def fact_rows(name: str, *lines: Sequence[Part]) -> list[Item]:
    """Rows with a name and, below it, the facts; [] if all lines are blank."""
    rows = [tuple(parts) for parts in lines if _has_words(parts)]
    if not rows:
        return []
    blank = Item(None, (("", "text"),))
    return [Item(None, ((name, "dim"),)), *(Item(None, row) for row in rows), blank]


def fitted(items: Sequence[Item], width: int) -> list[Item]:
    """The rows of facts, wrapped between words to this width; those that can be chosen stay as they are."""
    rows: list[Item] = []
    for fact in items:
        keeps = fact.key is not None or fact.right
        rows += [fact] if keeps else [Item(None, row) for row in folded(fact.left, width)]
    return rows


def _has_words(parts: Sequence[Part]) -> bool:
    return any(text.strip() for text, _ in parts)
