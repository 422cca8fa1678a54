"""A list whose rows are read and not chosen: a text that scrolls, without a cursor."""

from __future__ import annotations

from tui.widgets.lines import Lines


class Sheet(Lines):
    """A text that scrolls. The keys that move a cursor in other lists scroll the text. A row is marked only
    if a search has found it."""

    _marks_row = False  # whether the row `cursor` was found by a search
    _seeks = False  # whether a search goes to a row

    def highlights(self, index: int) -> bool:
        return self._marks_row and super().highlights(index)

    @property
    def position(self) -> str:
        """The numbers of the visible rows and of all rows as text, such as `3–12 of 40`. "" if all rows are
        visible."""
        count = len(self.rows)
        if count <= self.fits or not self.fits:
            return ""
        return f"{self.top + 1}–{min(count, self.top + self.fits)} of {count}"

    @property
    def at_end(self) -> bool:
        """Whether the last row is visible."""
        return self.top + self.fits >= len(self.rows)

    @property
    def hidden_below(self) -> int:
        """The number of rows below the visible ones."""
        return max(0, len(self.rows) - self.top - self.fits)

    def move(self, by: int) -> None:
        self.scroll_rows(by)

    def page(self, by: float) -> None:
        self.scroll_rows(int(by * max(2, self.fits - 1)) or (1 if by > 0 else -1))

    def go(self, index: int, step: int = 1) -> None:
        """Scroll so that row `index` is visible."""
        index = max(0, min(index, len(self.rows) - 1))
        above, below = index - self.top, index - (self.top + self.fits - 1)
        self.scroll_rows(min(0, above) or max(0, below))
        if self._seeks:
            self.cursor, self._marks_row = index, True
            self.refresh()

    def search(self, step: int) -> bool:
        self._seeks = True
        try:
            return super().search(step)
        finally:
            self._seeks = False

    def scroll_rows(self, by: int) -> None:
        """Scroll by this many rows, up to the first or the last row."""
        top = max(0, min(self.top + by, len(self.rows) - max(1, self.fits)))
        self._marks_row = False
        if top != self.top or self.cursor != top:
            self.top = self.cursor = top
            self.refresh()
            self.post_message(self.Moved(self))

    def _settle(self) -> None:
        """Keep the visible part inside the rows."""
        self.top = max(0, min(self.top, len(self.rows) - max(1, self.fits)))
        self.cursor = max(0, min(self.cursor, len(self.rows) - 1))
