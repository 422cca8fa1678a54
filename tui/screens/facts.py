"""A column of facts to the right of a text. It is only shown if there is room."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Horizontal

from tui.screens.base import THREE_PANES, TWO_PANES, Base
from tui.text import Part, fold, fold_after
from tui.widgets.framed import draw_frame
from tui.widgets.lines import Item, Lines, sequence

FACTS, WIDEST = 40, 72  # columns of it, with its frame, at least and at most
TEXT = 108  # columns that a text is given before the facts get more than the least
FRAME = 4  # columns of a frame and of the blanks inside it


class Facts(Lines):
    """A list of facts, in a column beside a text. It has a visible cursor while it has the focus."""

    DEFAULT_CSS = "Facts { width: 40; padding: 0 1; }"

    def scroll_rows(self, by: int) -> None:
        super().scroll_rows(by)
        self.post_message(self.Moved(self))  # the frame says how many rows are hidden

    def highlights(self, index: int) -> bool:
        return self.has_focus and super().highlights(index)


def facts_width(width: int) -> int:
    """Returns the width of a column of facts with its frame. `width`: the width of the screen in columns."""
    return max(FACTS, min(WIDEST, width - TEXT))


def frame(lines: Lines, title: str, bright: bool, framed: bool = True) -> None:
    """Draw a frame around a list, with a title and the position of the cursor. `bright`: draw it in the
    colour of the focus. With `framed` False, draw no frame."""
    if not framed:
        lines.styles.border = None
    else:
        draw_frame(lines, "accent" if bright else "line")
        lines.name_frame(title, lines.position if lines.marked else "")


class WithFacts(Base):
    """A screen with a text and a column of facts. Its widgets are made by `beside_facts`."""

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
        """The number of columns for the text."""
        beside = facts_width(self.app.size.width) if self.has_facts else 0
        return max(20, self.size.width - 3 - beside - (2 if self.has_frames else 0))

    @property
    def facts_room(self) -> int:
        """The number of columns for a fact, inside the frame."""
        return facts_width(self.app.size.width) - FRAME

    def page_title(self) -> str:
        """The title in the frame of the text."""
        return ""

    def show_facts(self, items: Sequence[Item]) -> None:
        """Show these rows in the column of facts. Does nothing if there is no room for it."""
        facts = self.query_one("#facts", Facts)
        facts.display = self.has_facts
        facts.styles.width = facts_width(self.app.size.width)
        facts.show(sequence(wrap_facts(items, self.facts_room) if self.has_facts else ()))
        self.place_frames()

    def place_frames(self) -> None:
        """Draw the frames of the text and of the facts. The one with the focus is bright."""
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
    """Returns the widgets of a list with a column of facts to its right. The column is hidden at first."""
    facts = Facts(marked=False, id="facts")
    facts.display = False
    with Horizontal(classes="row"):
        yield lines
        yield facts


def fact_rows(name: str, *lines: Sequence[Part]) -> list[Item]:
    """Returns rows for a column of facts: a name, and its facts below it. Returns [] if all `lines` of facts
    are blank."""
    rows = [tuple(parts) for parts in lines if _has_words(parts)]
    if not rows:
        return []
    blank = Item(None, (("", "text"),))
    return [Item(None, ((name, "dim"),)), *(Item(None, row) for row in rows), blank]


def wrap_facts(items: Sequence[Item], width: int) -> list[Item]:
    """Returns the rows of facts, wrapped between words to `width` columns. Rows that can be chosen are not
    wrapped. Of several blank rows in a row, one stays."""
    rows: list[Item] = []
    for fact in items:
        is_blank = not _has_words((*fact.left, *fact.right))
        if is_blank and rows and not _has_words((*rows[-1].left, *rows[-1].right)):
            continue
        keeps = fact.key is not None or fact.right
        rows += [fact] if keeps else [Item(None, row) for row in _fold_fact(fact.left, width)]
    return rows


def _fold_fact(parts: Sequence[Part], width: int) -> list[tuple[Part, ...]]:
    """Wraps one fact. If it begins with a sign, its other rows are below the words, and not below the
    sign."""
    text = "".join(words for words, _ in parts)
    if cell_len(text) <= width or text[1:2] != " " or text[:1].isalnum():
        return fold(parts, width)
    indent = len(text) - len(text[1:].lstrip(" "))
    (first, role), *rest = parts
    if len(first) < indent:
        return fold(parts, width)
    return fold_after([(first[:indent], role)], [(first[indent:], role), *rest], width)


def _has_words(parts: Sequence[Part]) -> bool:
    return any(text.strip() for text, _ in parts)
