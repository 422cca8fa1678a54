"""The roles (keyword, string, …) of the words in a text that changes while it is shown."""

from __future__ import annotations

from tui.highlight import LINE_MAX, ColouredText, with_roles
from tui.lexing import lexer_of, roles_soon

Span = tuple[int, int, str]


class Colours:
    """The roles (keyword, string, …) of a text that changes while it is shown, line by line. A changed line
    is coloured alone at first, because finding the roles of the whole text takes longer than a key press may
    take. They are found on a thread, and passed to `learn`."""

    def __init__(self, path: str) -> None:
        self._lexer = lexer_of(path)
        self._whole: ColouredText | None = None
        self._of: list[int] = []  # line → its line in `_whole`, or -1
        self._alone: dict[str, list[Span]] = {}
        self.version = 0

    def learn(self, whole: ColouredText, version: int) -> bool:
        """Use the roles of the whole text (`whole`), which were found for its version `version`. If the text
        has changed since, does nothing and returns False."""
        if version != self.version:
            return False
        self._whole, self._of = whole, list(range(len(whole)))
        return True

    def replace_lines(self, first: int, last: int, now: int) -> None:
        """Record that the lines from `first` to `last` were replaced. `now`: how many lines have replaced
        them."""
        self.version += 1
        if self._of:
            self._of[first : last + 1] = [-1] * now

    def spans(self, row: int, line: str) -> list[Span]:
        """Returns (start, end, role) of each coloured piece of a line. `line`: the text of the line."""
        at = self._of[row] if row < len(self._of) else -1
        if self._whole is not None and at >= 0 and self._whole.line(at) == line:
            return self._whole.spans(at)
        if self._lexer is None or len(line) > LINE_MAX:
            return []
        spans = self._alone.get(line)
        if spans is None:
            roles = roles_soon(line, self._lexer)  # what takes long stays plain until the whole text comes
            spans = with_roles(roles).spans(0) if roles is not None else []
            if len(self._alone) > 1000:
                self._alone.clear()
            self._alone[line] = spans
        return spans
