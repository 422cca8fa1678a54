"""Colours Markdown for a terminal while it arrives in pieces: headings, emphasis and code. Lines are not
wrapped or moved. The marks of emphasis and inline code are replaced by colours."""

from __future__ import annotations

from localstore.core.paths import PROSE, terminal_safe

_BOLD, _CODE, _PLAIN = "\x1b[1m", "\x1b[36m", "\x1b[0m"
_FENCE = "```"


class MarkdownStream:
    """Turns pieces of Markdown into text with escape sequences for colours. A mark such as `**` is not output
    until the next character shows what it means."""

    def __init__(self) -> None:
        self._waiting = ""
        self._line = ""  # of the current line, as it came
        self._fenced = self._bold = self._code = self._heading = False

    def feed(self, text: str) -> str:
        """Add a piece of Markdown. Returns it as coloured text, without marks at its end whose meaning is not
        clear yet."""
        pieces = []
        for char in terminal_safe(text, keep=PROSE):
            if char in "*`#" and not (self._waiting and self._waiting[0] != char):
                self._waiting += char
                continue
            pieces.append(self._marks(char))
            self._line += char
            if char == "\n":
                pieces.append(self._line_end())
            else:
                pieces.append(char)
        return "".join(pieces)

    def end(self) -> str:
        """Return the rest of the coloured text, and the escape sequence that ends colours."""
        rest = self._marks("\n")
        styled = self._bold or self._code or self._heading or self._fenced
        self._fenced = self._bold = self._code = self._heading = False
        self._line = ""
        return rest + (_PLAIN if styled else "")

    def _marks(self, following: str) -> str:
        """Return the output for the Markdown marks, such as `**`, at the end of the last piece of text.
        `following` is the character after the marks and decides their meaning. The output is an escape
        sequence for a colour, or the marks themselves if they have no meaning there."""
        marks, self._waiting = self._waiting, ""
        if not marks:
            return ""
        start = not self._line.strip()
        if marks.startswith(_FENCE) and start:
            self._fenced = not self._fenced
            self._line += marks
            return (_CODE if self._fenced else "") + marks
        self._line += marks
        if self._fenced:
            return marks
        if marks[0] == "#":
            self._heading = start and len(marks) <= 6 and following == " "
            return (_BOLD if self._heading else "") + marks
        if marks == "`":
            self._code = not self._code
            return _CODE if self._code else self._style()
        if marks == "**" and not self._code and (self._bold or not following.isspace()):
            self._bold = not self._bold
            return _BOLD if self._bold else self._style()
        return marks

    def _style(self) -> str:
        return _PLAIN + (_BOLD if self._bold or self._heading else "")

    def _line_end(self) -> str:
        """Return the output for the end of a line. If a coloured text ends with the line (a heading, inline
        code or a code block), the output switches the colour off before the newline."""
        closed = self._heading or self._code or (not self._fenced and self._line.lstrip().startswith(_FENCE))
        self._heading = self._code = False
        self._line = ""
        return (self._style() if closed else "") + "\n"
