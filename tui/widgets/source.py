"""The rows of a text file. A row has the number of the line, the last author of the line, and its text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Hashable, Mapping, Sequence
from types import MappingProxyType

from localstore.core.model.history import BlameRange
from tui.text import Part, brief, safe
from tui.tints import Tints
from tui.widgets.lines import Item

WHO = 10  # columns of a name beside a line, at most
SHORT = 4  # digits of a seal where there is little room
MONTH = len("2026-01")  # what is shown of a date
UNITS = {
    "w": "accent",
    "m": "accent",
    "h": "accent",
    "d": "text",
}  # the last letter of a fresh age → its role


class Source:
    """The rows of one file. `lines`: the parts of each line. `blame`: who changed which lines last. `marks`:
    parts at the right end of a line, by the number of the line. `changed`: the numbers of the lines that have
    a sign before them. If it is None, there is no column for signs. `digits`: how many digits of a seal id
    the blame shows."""

    def __init__(
        self,
        lines: Sequence[tuple[Part, ...]],
        blame: Sequence[BlameRange] = (),
        now: float = 0.0,
        marks: Mapping[int, tuple[Part, ...]] = MappingProxyType({}),
        changed: Collection[int] | None = None,
        digits: int = SHORT,
        tints: Tints | None = None,
    ) -> None:
        self._lines, self._marks = lines, marks
        self._changed = None if changed is None else frozenset(changed)
        self._digits = len(str(len(lines)))
        self._blame = sorted(blame, key=lambda blamed: blamed.start)
        times = {blamed.sealed_at for blamed in blame}
        self._ages = {time: brief(time, now)[:MONTH] for time in times}
        self._age_width = max(map(len, self._ages.values()), default=0)
        self._who_width = min(WHO, max((len(_name(blamed)) for blamed in blame), default=0))
        self._seal_digits, self._tints = digits, tints

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index: int, /) -> Item:
        return self._item(index)

    def item_at_top(self, index: int) -> Item:
        """Returns a row as it looks where it is the first visible one. It says who changed it last, even if
        the row above it says the same."""
        return self._item(index, named=True)

    def _item(self, index: int, named: bool = False) -> Item:
        number = index + 1
        gutter: list[Part] = [(f"{number:>{self._digits}} ", "gutter")]
        if self._blame:
            gutter += self._blame_parts(number, named)
        parts, marks = self._lines[index], self._marks.get(number, ())
        if self._changed is None:
            return Item(number, (*gutter, *parts), marks, fixed=len(gutter))
        tints = self._tints
        if number not in self._changed:
            return Item(number, (*gutter, ("  ", "gutter"), *parts), marks, fixed=len(gutter) + 1)
        if tints is None:
            return Item(number, (*gutter, ("+ ", "add_mark"), *parts), marks, fixed=len(gutter) + 1)
        numbered = [(text, tints.mark("add", "add")) for text, _ in gutter]
        tinted = [(text, tints.line("add", role)) for text, role in parts]
        sign = ("+ ", tints.mark("add", "add_mark"))
        rest = tints.line("add", "text")
        return Item(number, (*numbered, sign, *tinted), marks, rest=rest, fixed=len(gutter) + 1)

    def _blame_parts(self, number: int, named: bool) -> list[Part]:
        """Returns the parts that say in which seal a line was changed last, by whom, and when. They are blank
        if they would be the same as in the line above, unless `named`. Recent changes are bright, and changes
        older than thirty days are dim."""
        blamed = self.find_blame(number)
        if blamed is None or not (named or number in (blamed.start, 1)):
            return [(" " * (self._seal_digits + self._who_width + self._age_width + 3), "dim")]
        age = self._ages[blamed.sealed_at]
        role = UNITS.get(age[-1:], "dim")
        return [
            (f"{blamed.seal_id[: self._seal_digits]} ", role),
            (f"{_name(blamed)[: self._who_width]:<{self._who_width}} ", "dim"),
            (f"{age:>{self._age_width}} ", role),
        ]

    def text_of(self, index: int) -> str:
        """Returns the text of the row `index` without its line number. Searches look for the typed words in
        it."""
        line = getattr(self._lines, "line", None)
        return line(index) if line else "".join(text for text, _ in self._lines[index])

    def place_of(self, key: Hashable) -> int | None:
        return key - 1 if isinstance(key, int) and 0 < key <= len(self._lines) else None

    def find_blame(self, number: int) -> BlameRange | None:
        """Returns the lines around the line `number` (from 1) that were all changed last by one seal,
        together with that seal. Returns None if they are unknown."""
        at = bisect_right(self._blame, number, key=lambda lines: lines.start) - 1
        return self._blame[at] if at >= 0 and number <= self._blame[at].end else None


def _name(blamed: BlameRange) -> str:
    return safe(blamed.who.handle or blamed.who.id)
