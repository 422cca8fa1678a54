"""The base of cards with a list and, if there is room, a preview beside it in the same frame."""

from __future__ import annotations

from tui.screens.split import Panes
from tui.theme import css_colour


class CardPanes(Panes):
    """A base class for cards with two panes, which have a line between them."""

    LIST_SHARE = 50  # hundredths of the card that the list takes

    def place_panes(self) -> None:
        """Show the list and, if there is room, the preview beside it, both in the frame of the card."""
        rows, preview = self.listed, self.preview
        preview.display = self.previews
        colour = "accent" if preview.has_focus else "line"
        preview.styles.border_left = ("solid", css_colour(self._svc.colours, colour))
        rows.styles.width = f"{self.LIST_SHARE}%" if self.previews else "1fr"
        rows.styles.padding = (0, 1, 0, 0) if self.previews else 0
