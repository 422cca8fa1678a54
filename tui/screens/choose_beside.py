"""The base of cards with a list that also show, if there is room, a preview of the row under the cursor."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal

from tui.screens.base import Base
from tui.screens.choose import Choose
from tui.screens.split import Panes, Preview
from tui.text import Part
from tui.texts import Texts
from tui.theme import css_colour


class ChooseBeside(Panes, Choose):
    """A card in which the user chooses from a list, with a preview beside it. List and preview are in one
    frame, with a line between them. Subclasses define `preview_of`."""

    WIDTH, LEAST = 140, 14
    LIST = "choices"
    EMPTY = "nothing to choose"
    LIST_SHARE = 50  # hundredths of the card that the list takes

    @property
    def front(self) -> Base:
        return self

    def content(self) -> ComposeResult:
        self.texts = Texts(self, self._again)
        with Horizontal(classes="row"):
            yield self.LINES(empty=self.EMPTY, unmatched="nothing here matches", id=self.LIST)
            yield Preview(marked=False, linked=True, id="preview")

    def make_title(self) -> tuple[Part, ...]:
        return ((self._what, "title"),)

    def place_panes(self) -> None:
        """Place the list and, if there is room, the preview beside it. Both are in the frame of the card."""
        rows, preview = self.listed, self.preview
        preview.display = self.previews
        preview.styles.border_left = ("solid", css_colour(self._svc.colours, "line"))
        rows.styles.width = f"{self.LIST_SHARE}%" if self.previews else "1fr"
        rows.styles.padding = (0, 1, 0, 0) if self.previews else 0

    def _say_where(self) -> None:
        self._say_position()
