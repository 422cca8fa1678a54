"""Markdown for a terminal while it arrives, piece by piece: headings, emphasis, code. Nothing is rearranged;
marks of emphasis and of code in a line become colours."""

from __future__ import annotations

from localstore.core.paths import PROSE, terminal_safe

_BOLD, _CODE, _PLAIN = "\x1b[1m", "\x1b[36m", "\x1b[0m"
_FENCE = "```"


class MarkdownStream:
    """Turns pieces of Markdown into text with escape sequences. A mark is held back until its meaning is
    known."""

    def __init__(self) -> None:
        self._waiting = ""
        self._line = ""  # of the current line, as it came
        self._fenced = self._bold = self._code = self._heading = False

    def feed(self, text: str) -> str:
        """The text, with escapes, that is complete now."""
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
        """The rest of the text, followed by the escape for plain text."""
        rest = self._marks("\n")
        styled = self._bold or self._code or self._heading or self._fenced
        self._fenced = self._bold = self._code = self._heading = False
        self._line = ""
        return rest + (_PLAIN if styled else "")

    def _marks(self, following: str) -> str:
        """The escapes for the marks that were held back, now that the character `following` them is known."""
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
        """The escape sequences at the end of a line: headings and inline code end with their line, and so
        does the line that closes a fence."""
        closed = self._heading or self._code or (not self._fenced and self._line.lstrip().startswith(_FENCE))
        self._heading = self._code = False
        self._line = ""
        return (self._style() if closed else "") + "\n"
