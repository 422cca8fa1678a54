"""A widget with a title and a position in its frame. Both can be painted without painting the rows inside."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.widget import Widget

from tui.text import Part
from tui.theme import COLOURLESS, css_colour


def draw_frame(widget: Widget, role: str = "accent") -> None:
    """Draw a frame around a widget in the colour of a role. The role `line` is for widgets without the focus.
    The titles in their frames have the colour of faint text. In the theme without colours, the titles in all
    other frames are reversed."""
    colours = getattr(widget.app, "colours", "terminal")
    rests, styles = role == "line", widget.styles
    styles.border = ("round", css_colour(colours, role))
    words = css_colour(colours, "dim" if rests else role)
    styles.border_title_color = styles.border_subtitle_color = words
    styles.border_title_style = "bold reverse" if colours == COLOURLESS and not rests else "none"


class Framed(Widget):
    """A widget with a frame. The upper line of the frame has a title, and its lower line has the position of
    the cursor."""

    _framed = ("", "")  # title and position in the frame
    _ruled = False  # whether they are in the line above the rows instead

    def name_frame(self, title: str, position: str, hint: Sequence[Part] = ()) -> None:
        """Write a title and the position of the cursor into the frame, if they have changed. Only the lines
        of the frame are painted, because the position changes at each key. Setting Textual's own titles would
        paint all rows. `hint`: parts after the title, with a key and what it does."""
        whole = f"{title}{''.join(text for text, _ in hint)}"
        before, self._framed = self._framed, (whole, position)
        was_ruled, self._ruled = self._ruled, False
        if whole != before[0] or was_ruled:
            self._border_title = Content.assemble(title, *self._paint_parts(hint)) if hint else Content(title)
            self._refresh_frame(-self.gutter.top)
        if position != before[1] or was_ruled:
            self._border_subtitle = Content(position)
            self._refresh_frame(self.size.height + self.gutter.bottom - 1)

    def name_rule(self, title: str, position: str, width: int, hint: Sequence[Part] = ()) -> None:
        """Write a title and the position of the cursor into the line above the rows, if they have changed.
        `width`: the columns of the line. `hint`: see `name_frame`."""
        whole = f"{title}{''.join(text for text, _ in hint)}"
        between = "─" * (width - 2 - cell_len(whole) - cell_len(position) - 4)
        if self._ruled and self._framed == (whole, f"{between}{position}"):
            return
        self._ruled = True
        self._framed = whole, f"{between}{position}"
        colours = getattr(self.app, "colours", "terminal")
        line, dim, bright = (css_colour(colours, role) for role in ("line", "dim", "accent"))
        end = f" {position} " if position else "──"
        begin = [(f" {title}", bright), *self._paint_parts(hint), (" ", line)]
        begin = begin if hint else [(f" {title} ", bright)]
        self._border_title = Content.assemble(*begin, (between, line), (end, dim))
        self._border_subtitle = None
        self._refresh_frame(-self.gutter.top)

    def _paint_parts(self, parts: Sequence[Part]) -> list[tuple[str, str]]:
        colours = getattr(self.app, "colours", "terminal")
        return [(text, css_colour(colours, role)) for text, role in parts]

    def _refresh_frame(self, y: int) -> None:
        """Paint one line of the frame again. `y`: its place, counted from the first row inside the frame,
        which is 0. The upper line of the frame is -1."""
        left, right = self.gutter.left, self.gutter.right
        self.refresh(Region(-left, y, self.size.width + left + right, 1))


class Pane(Framed, Vertical):
    """A frame around several widgets, which are placed one below the other."""
