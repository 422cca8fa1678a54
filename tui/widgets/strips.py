"""Turns parts (text, role) into a line that Textual paints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.text import HIDDEN, Part, fit
from tui.theme import FAINT

NO_LINKS: Mapping[int, str] = MappingProxyType({})
NO_PARTS = range(0)


def strip(
    parts: Iterable[Part],
    width: int,
    styles: Mapping[str, Style],
    over: Style | None = None,
    bare: range = NO_PARTS,
    links: Mapping[int, str] = NO_LINKS,
    rest: str = "text",
) -> Strip:
    """Returns the parts as a line of exactly `width` cells. `over`: the style of the line under the cursor.
    It is put over all parts except those with the indices `bare`, and makes faint parts look like normal
    text. `links`: the addresses of the parts that are links, by index. `rest`: the role of the area to the
    right of the parts."""
    segments, used = [], 0
    for place, (text, role) in enumerate(fit(parts, width)):
        style = styles[role]
        if over is not None and place not in bare:
            style = styles["text" if role in FAINT else role] + over
        if place in links:
            style += Style(link=links[place])
        segments.append(Segment(text, style))
        used += cell_len(text)
    if used < width:
        segments.append(Segment(" " * (width - used), styles[rest] + over if over else styles[rest]))
    return Strip(segments, width)


def sign_hidden(line: Strip, begin: int, hidden: int) -> Strip:
    """Returns a line whose first visible cell is a sign, if more than blanks are hidden at its left. `begin`,
    `hidden`: the first hidden cell, and how many there are."""
    if not line.crop(begin, begin + hidden).text.strip():
        return line
    at = begin + hidden
    style = next((segment.style for segment in line.crop(at, at + 1)), None)
    return Strip.join([line.crop(0, at), Strip([Segment(HIDDEN, style)], 1), line.crop(at + 1)])


def widen(line: Strip, left: int, right: int) -> Strip:
    """Returns a line with blanks at its left and right end. They have the background of the text beside
    them."""
    segments = [segment for segment in line if segment.text]
    if not segments or not (left or right):
        return line
    first, last = (_ground(segments[end].style) for end in (0, -1))
    return Strip([Segment(" " * left, first), *segments, Segment(" " * right, last)])


def _ground(style: Style | None) -> Style | None:
    return style and style.without_color + Style(
        color=style.color, bgcolor=style.bgcolor, underline=False, strike=False, bold=False
    )
