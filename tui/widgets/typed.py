"""The colours of widgets in which texts of several lines are typed. They come from the theme of the app."""

from __future__ import annotations

from rich.style import Style
from textual.widgets import TextArea
from textual.widgets.text_area import TextAreaTheme

from tui.theme import CURSOR, THEMES


class AreaLooks(TextAreaTheme):
    """The colours of Textual's text area in one theme of the app."""

    def apply_css(self, text_area: TextArea) -> None:
        """Does nothing, because every style is given already. Textual's own method would replace the colours
        of the terminal."""


def dress(area: TextArea, colours: str) -> None:
    """Give a text area the colours of the theme `colours`."""
    styles = THEMES[colours]
    looks = AreaLooks(
        "svc",
        base_style=styles["text"],
        gutter_style=styles["gutter"],
        cursor_style=CURSOR,
        bracket_matching_style=Style(underline=True),
        selection_style=styles["cursor"],
    )
    area.register_theme(looks)
    area.theme = "svc"
