"""Parts as a line that Textual paints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.text import Part, fit


def strip(
    parts: Iterable[Part], width: int, styles: Mapping[str, Style], over: Style | None = None, bare: int = -1
) -> Strip:
    """The parts as a line of exactly `width` cells. `over` is laid over every style but that of part `bare`:
    the cursor's line."""
    segments, used = [], 0
    for place, (text, role) in enumerate(fit(parts, width)):
        segments.append(Segment(text, styles[role] + over if over and place != bare else styles[role]))
        used += cell_len(text)
    if used < width:
        segments.append(Segment(" " * (width - used), styles["text"] + over if over else styles["text"]))
    return Strip(segments, width)
