"""A widget that shows a picture. It either draws half-blocks, or stays empty and the terminal draws pixels
over it."""

from __future__ import annotations

import base64

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.display.screen import Overlay
from tui.images.decode import DecodedImage
from tui.images.protocol import DELETE_KITTY, Way, cells, sequence
from tui.text import Part
from tui.theme import THEMES
from tui.widgets.strips import strip

UPPER = "▀"


class Picture(Widget, can_focus=True):
    """Shows a picture. `show(image, way)`: shows this picture. `tell(words)`: shows a sentence in place of a
    picture. `Resized` is posted when the size of the widget changes."""

    DEFAULT_CSS = "Picture { height: 1fr; width: 1fr; }"

    class Resized(Message):
        """Posted when the widget has got another size, because a picture of that size is needed. It is also
        posted at the beginning."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.image: DecodedImage | None = None
        self.sequence = ""  # what draws it over the cells
        self._way: Way = "blocks"
        self._words = ""
        self._rows: list[list[Segment]] = []

    def show(self, image: DecodedImage, way: Way) -> None:
        self.image, self._way, self._words = image, way, ""
        self.sequence = sequence(way, image)
        self._rows = _blocks(image) if way == "blocks" else []
        self.refresh()

    def tell(self, words: str) -> None:
        self.image, self.sequence, self._words, self._rows = None, "", words, []
        self.refresh()

    def on_resize(self) -> None:
        self.post_message(self.Resized())

    def measure(self) -> tuple[int, int]:
        """How many (columns, rows) the picture covers. (0, 0) if there is none."""
        return cells(self._way, self.image) if self.image is not None else (0, 0)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        styles = THEMES[getattr(self.app, "colours", "terminal")]
        if y < len(self._rows):
            row = self._rows[y]
            used = sum(len(segment.text) for segment in row)
            return Strip([*row, Segment(" " * max(0, width - used), styles["text"])]).crop(0, width)
        parts: list[Part] = [(self._words, "dim")] if y == 0 else []
        return strip(parts, width, styles)


def over(screen: Widget, way: Way) -> Overlay | None:
    """Returns the picture that the terminal has to draw in pixels over the cells of a screen. Returns None if
    there is none."""
    for picture in screen.query(Picture) if way != "blocks" else ():
        (columns, rows), area = picture.measure(), picture.region
        if picture.sequence and picture.display and 0 < columns <= area.width and rows <= area.height:
            return Overlay(
                area.x, area.y, columns, rows, picture.sequence, DELETE_KITTY if way == "kitty" else ""
            )
    return None


def _blocks(image: DecodedImage) -> list[list[Segment]]:
    """Returns an image as lines of segments. Each cell shows two pixels, the upper one in the text colour and
    the lower one in the background colour."""
    data, width = base64.b64decode(image.data), image.width
    rows = []
    for top in range(0, image.height, 2):
        row: list[Segment] = []
        last, text = None, ""
        for x in range(width):
            pair = (_pixel(data, width, x, top), _pixel(data, width, x, top + 1))
            if pair != last and last is not None:
                row.append(Segment(text, _style(*last)))
                text = ""
            last, text = pair, text + (UPPER if pair[0] != pair[1] else " ")
        if last is not None:
            row.append(Segment(text, _style(*last)))
        rows.append(row)
    return rows


Pixel = tuple[int, int, int]


def _pixel(data: bytes, width: int, x: int, y: int) -> Pixel | None:
    at = (y * width + x) * 3
    return (data[at], data[at + 1], data[at + 2]) if at + 3 <= len(data) else None


def _style(upper: Pixel | None, lower: Pixel | None) -> Style:
    """Returns the style of a cell with two pixels. If both have the same colour, the style has only a
    background, so that such cells have equal styles and are sent to the terminal together."""
    colour = Color.from_rgb(*upper) if upper is not None and upper != lower else None
    return Style(color=colour, bgcolor=Color.from_rgb(*lower) if lower is not None else None)
