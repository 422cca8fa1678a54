"""The base of cards with a list that also show, if there is room, a preview of the row under the cursor."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal

from tui.screens.base import Base
from tui.screens.card_panes import CardPanes
from tui.screens.choose import Choose
from tui.screens.split import Preview
from tui.text import Part
from tui.texts import Texts


class ChooseBeside(CardPanes, Choose):
    """A card in which the user chooses from a list, with a preview beside it. List and preview are in one
    frame, with a line between them. Subclasses define `preview_of`."""

    WIDTH, LEAST = 140, 14
    LIST = "choices"
    EMPTY = "nothing to choose"

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

    def _say_where(self) -> None:
        self._say_position()
