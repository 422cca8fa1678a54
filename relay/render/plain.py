"""Source text without colours, for texts that no lexer knows or that are too long for one."""

from __future__ import annotations

from html import escape

MARKED = " class=marked"


def number_lines(lines: list[str], marked: range) -> str:
    """The rows of a table of lines (HTML), with a link for each number; lines in `marked` are highlighted.
    Made without a template, and as short as HTML allows, because this is most of the cost of a long file's
    page."""
    return "".join(
        f"<tr id=L{number}{MARKED if number in marked else ''}><td><a href=#L{number}>{number}</a>"
        f"<td>{line}\n"
        for number, line in enumerate(lines, 1)
    )


def plain_lines(text: str) -> list[str]:
    """The lines of a text as HTML. A final line break does not begin another line."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return [escape(line) for line in lines]
