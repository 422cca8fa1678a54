"""Source text without colours, for texts that no lexer knows or may read."""

from __future__ import annotations

from html import escape


def plain_lines(text: str) -> list[str]:
    """The lines of a text as HTML. A final line break does not begin another line."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return [escape(line) for line in lines]
