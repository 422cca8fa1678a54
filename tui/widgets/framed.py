"""A widget with a title and a position in its frame, which are painted without repainting the rows inside."""

from __future__ import annotations

from rich.cells import cell_len
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.widget import Widget

from tui.theme import css_colour


class Framed(Widget):
    """A widget whose frame has a title in its upper line and the cursor's position in its lower line."""

    _framed = ("", "")  # title and position in the frame
    _ruled = False  # whether they are in the line above the rows instead

    def name_frame(self, title: str, position: str) -> None:
        """Write title and cursor position into the frame, if they have changed. The position changes at each
        key, so only the lines of the frame are painted; setting Textual's titles would paint all rows."""
        before, self._framed = self._framed, (title, position)
        was_ruled, self._ruled = self._ruled, False
        if title != before[0] or was_ruled:
            self._border_title = Content(title)
            self._refresh_frame(-self.gutter.top)
        if position != before[1] or was_ruled:
            self._border_subtitle = Content(position)
            self._refresh_frame(self.size.height + self.gutter.bottom - 1)

    def name_rule(self, title: str, position: str, width: int) -> None:
        """Write title and position into the line above the rows, if they have changed. `width`: columns of
        the line."""
        between = "─" * (width - 2 - cell_len(title) - cell_len(position) - 4)
        if self._ruled and self._framed == (title, f"{between}{position}"):
            return
        self._ruled = True
        self._framed = title, f"{between}{position}"
        colours = getattr(self.app, "colours", "terminal")
        faint, bright = css_colour(colours, "line"), css_colour(colours, "accent")
        end = f" {position} " if position else "──"
        self._border_title = Content.assemble((f" {title} ", bright), (between + end, faint))
        self._border_subtitle = None
        self._refresh_frame(-self.gutter.top)

    def _refresh_frame(self, y: int) -> None:
        """Paint line `y` of the frame again, counted from the first row of the content: -1 is the line above
        it."""
        left, right = self.gutter.left, self.gutter.right
        self.refresh(Region(-left, y, self.size.width + left + right, 1))


class Pane(Framed, Vertical):
    """A frame around several widgets, one below the other."""
