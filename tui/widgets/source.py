"""The rows of a text file: line number, last author of the line, and text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Hashable, Mapping, Sequence
from types import MappingProxyType

from localstore.core.model.history import BlameRange
from tui.text import Part, ago, safe
from tui.widgets.lines import Item

WHO = 10  # columns of a name beside a line


class Source:
    """The rows of one file. `lines`: the parts of each line. `blame`: who changed which lines last. `marks`:
    parts at the right end of a line, by line number. `changed`: numbers of the lines that have a sign before
    them; None: there is no column for signs."""

    def __init__(
        self,
        lines: Sequence[tuple[Part, ...]],
        blame: Sequence[BlameRange] = (),
        now: float = 0.0,
        marks: Mapping[int, tuple[Part, ...]] = MappingProxyType({}),
        changed: Collection[int] | None = None,
    ) -> None:
        self._lines, self._marks = lines, marks
        self._changed = None if changed is None else frozenset(changed)
        self._digits = len(str(len(lines)))
        self._now = now
        self._blame = sorted(blame, key=lambda blamed: blamed.start)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index: int, /) -> Item:
        number = index + 1
        gutter: list[Part] = [(f"{number:>{self._digits}} ", "gutter")]
        if self._blame:
            blamed = self.blamed(number)
            first = blamed is not None and (number == blamed.start or index == 0)
            if blamed is not None and first:
                name = safe(blamed.who.handle or blamed.who.id)[:WHO]
                gutter.append(
                    (f"{blamed.seal_id[:4]} {name:<{WHO}} {ago(blamed.sealed_at, self._now):>11} ", "dim")
                )
            else:
                gutter.append((" " * (4 + 1 + WHO + 1 + 11 + 1), "dim"))
        if self._changed is not None:
            gutter.append(("+ ", "add_mark") if number in self._changed else ("  ", "gutter"))
        return Item(number, (*gutter, *self._lines[index]), self._marks.get(number, ()))

    def text_of(self, index: int) -> str:
        """The text of the row `index` in which searches look: the line without its number."""
        line = getattr(self._lines, "line", None)
        return line(index) if line else "".join(text for text, _ in self._lines[index])

    def place_of(self, key: Hashable) -> int | None:
        return key - 1 if isinstance(key, int) and 0 < key <= len(self._lines) else None

    def blamed(self, number: int) -> BlameRange | None:
        """The range of lines around line `number` (from 1) that one seal changed last, with that seal; None
        if unknown."""
        at = bisect_right(self._blame, number, key=lambda lines: lines.start) - 1
        return self._blame[at] if at >= 0 and number <= self._blame[at].end else None
