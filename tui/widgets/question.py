"""A question in a frame over the screen that it is about."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical

from tui.text import fold, safe
from tui.theme import BACKGROUNDS
from tui.widgets.frame import Line, Prompt
from tui.widgets.framed import draw_frame

WIDTH = 64  # columns at most, with the frame
MARGIN = 2  # columns of the screen that stay visible at each side
FRAME = 6  # columns of the frame and of the blanks inside it
ROWS = 8  # rows of the question at most


class Question(Vertical):
    """A frame with a question and the prompt that takes the answer. `destroys`: whether the answer takes away
    something that cannot be brought back. The frame is red in that case. `placed`: called once the prompt is
    on the screen."""

    DEFAULT_CSS = "Question { layer: over; height: auto; padding: 0 2; }"

    def __init__(
        self,
        title: str,
        question: str,
        prompt: Prompt,
        placed: Callable[[], None],
        destroys: bool = False,
    ) -> None:
        super().__init__()
        self._title, self._question, self._prompt = title, question, prompt
        self._placed, self._destroys = placed, destroys
        self._rows = [Line() for _ in range(ROWS)]

    def compose(self) -> ComposeResult:
        yield from self._rows
        yield Line()
        yield self._prompt

    def on_mount(self) -> None:
        colours = getattr(self.app, "colours", "terminal")
        self.styles.background = BACKGROUNDS[colours]
        draw_frame(self, "bad" if self._destroys else "accent")
        self.border_title = safe(self._title)
        self.place()
        self.app.call_later(self._placed)

    def place(self) -> None:
        """Wrap the question to the width of the terminal."""
        width = max(FRAME + 8, min(WIDTH, self.app.size.width - 2 * MARGIN))
        self.styles.width = width
        rows = fold([(safe(self._question), "text")], width - FRAME)[:ROWS]
        for place, line in enumerate(self._rows):
            line.display = place < len(rows)
            line.put(rows[place] if line.display else ())
