"""Source text without colours, for texts that no lexer knows or that are too long for one."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

MARKED = " class=marked"
_NEAR = 4096  # characters in which a line is looked for by its line breaks


@dataclass(slots=True, frozen=True)
class Part:
    """Some lines of a text, as HTML. `first`: the number of the first of them, counted from 1. `whole`: False
    if there is only one line, and it was cut because it is too long."""

    lines: list[str]
    first: int
    whole: bool = True


def number_lines(lines: list[str], marked: range, first: int = 1) -> str:
    """The rows of an HTML table of lines, with a link for each line number. Lines in `marked` are
    highlighted. `first`: number of the first line. Made without a template, and as short as HTML allows,
    because this takes most of the time for the page of a long file."""
    return "".join(
        f"<tr id=L{number}{MARKED if number in marked else ''}><td><a href=#L{number}>{number}</a>"
        f"<td>{line}\n"
        for number, line in enumerate(lines, first)
    )


def plain_lines(text: str) -> list[str]:
    """The lines of a text as HTML. A final line break does not begin another line."""
    lines = with_plain_breaks(text).split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return [escape(line) for line in lines]


def with_plain_breaks(text: str) -> str:
    """Replace all kinds of line breaks other than newlines by newlines."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def count_lines(text: str) -> int:
    """The number of lines of a text. A final newline does not begin another line."""
    return max(text.count("\n") + (not text.endswith("\n")), 1)


def part_of(text: str, first: int, lines: int, chars: int) -> Part | None:
    """Cut out some lines of a text, as HTML: at most `lines` lines, beginning with line `first`, and at most
    `chars` characters. Returns None if the text has too few lines. The rest of the text is not split into
    lines, because a file may have millions."""
    start = _start_of(text, first)
    if start is None or (start and start == len(text)):
        return None
    piece = text[start : start + chars]
    parted = piece.split("\n", lines)
    ends = len(parted) <= lines and len(piece) == len(text) - start and not piece.endswith("\n")
    if not ends:
        rest = parted.pop()  # begins a line that is not shown, or is empty
        if not parted:
            return Part([escape(rest)], first, whole=False)
    return Part([escape(line) for line in parted], first)


def _start_of(text: str, number: int) -> int | None:
    """Find the index at which the line with this number begins; None if there are fewer lines. Repeatedly
    halves the text and counts its newlines, which is faster than splitting it."""
    breaks, low, high = number - 1, 0, len(text)
    if breaks == 0:
        return 0
    if breaks > text.count("\n"):
        return None
    while high - low > _NEAR:
        middle = (low + high) // 2
        above = text.count("\n", low, middle)
        if above >= breaks:
            high = middle
        else:
            low, breaks = middle, breaks - above
    for _ in range(breaks):
        low = text.index("\n", low) + 1
    return low
