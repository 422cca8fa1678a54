"""Cards: screens in a frame, on top of another screen that stays visible around the frame."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from tui.screens.base import Base, Over
from tui.text import Part
from tui.theme import BACKGROUNDS
from tui.widgets.frame import Hints, Line, Prompt
from tui.widgets.framed import draw_frame
from tui.widgets.lines import Lines

MARGIN = 2  # columns of the screen below that stay visible at each side
FRAME = 3  # lines of a card beside its rows: frame and prompt


class Card(Over):
    """A screen in a frame on top of another one. The line of keys shows the keys of the card in place of
    those of the screen below. Subclasses define `content()`, which yields one list, and `title_parts()`, the
    parts of the title. They call `fit` when they know how many rows they have."""

    DEFAULT_CSS = """
    Card { align: center middle; }
    Card #card { width: 80; height: 60%; padding: 0 1; }
    Card #keys { dock: bottom; }
    """
    WIDTH = 80  # columns at most
    SHARE = 60  # hundredths of the height at most
    LEAST = 8  # lines at least, if the terminal has them
    framed = True  # whether the card has a frame of its own

    _count = 0  # rows that it has room for if the terminal does

    def compose(self) -> ComposeResult:
        with Vertical(id="card"):
            yield from self.content()
        yield Hints(id="keys")

    def on_mount(self) -> None:
        super().on_mount()
        self.place()

    def on_resize(self) -> None:
        self.place()

    def wear(self) -> None:
        """Paint the card with the theme's background, and leave the screen below visible around it."""
        self.styles.background = "transparent"
        if self.has_widgets:
            self.query_one("#card").styles.background = BACKGROUNDS[self.svc.colours]
            self.place()

    def fit(self, count: int) -> None:
        """Make the card high enough for `count` rows, as far as the terminal has room for them."""
        self._count = count
        self.place()

    def place(self) -> None:
        """Set the size of the card. It depends on its number of rows and the size of the terminal."""
        if not self.has_widgets:
            return
        card, size = self.query_one("#card"), self.app.size
        card.styles.width = min(self.WIDTH, size.width - 2 * MARGIN)
        most = max(self.LEAST, size.height * self.SHARE // 100)
        card.styles.height = max(3, min(most, max(self._count + FRAME, self.LEAST), size.height - 1))
        if self.framed:
            draw_frame(card)
        else:
            card.styles.border = None
        card.styles.padding = (0, 1) if self.framed else 0
        self._say_position()

    def show_title(self, light: Sequence[Part]) -> None:
        """Show the title in the frame. `light`: parts about the state of the connection. They are shown in
        the title line of the screen below."""
        if self.framed:
            words = "".join(text for text, _ in self.title_parts()).strip()
            self.query_one("#card").border_title = Content(words)
        base: Base = self.below
        while isinstance(base, Card):
            base = base.below
        for title in base.query("#title").results(Line):
            title.put(base.title_parts(), light)

    def place_prompt(self, prompt: Prompt) -> None:
        self.query_one("#card").mount(prompt)

    def on_lines_moved(self, event: Lines.Moved) -> None:
        self._say_position()

    def _say_position(self) -> None:
        """Write the cursor's position into the frame, unless all rows are visible."""
        lines = self.lines
        if not self.framed or lines is None:
            return
        hidden = len(lines.rows) > max(1, lines.size.height)
        self.query_one("#card").border_subtitle = Content(lines.position if hidden else "")
