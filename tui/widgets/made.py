"""The rows of a long list. A row is made from its value only when it is painted."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from tui.widgets.lines import Item, text_of

T = TypeVar("T")


class LazyRows(Generic[T]):
    """Rows in three groups: the rows `first`, a row for each value, and the rows `last`. `make`: returns the
    row of a value. `key`: returns the key of a value. `text`: returns the text of a value in which filters
    look for the typed words. Without it, they look in the text of the row."""

    def __init__(
        self,
        values: Sequence[T],
        make: Callable[[T], Item],
        key: Callable[[T], Hashable],
        text: Callable[[T], str] | None = None,
        first: Sequence[Item] = (),
        last: Sequence[Item] = (),
    ) -> None:
        self._values, self._make, self._key, self._text = values, make, key, text
        self._first, self._last = first, last

    def __len__(self) -> int:
        return len(self._first) + len(self._values) + len(self._last)

    def __getitem__(self, index: int, /) -> Item:
        at = index - len(self._first)
        if at < 0:
            return self._first[index]
        return self._make(self._values[at]) if at < len(self._values) else self._last[at - len(self._values)]

    def key_of(self, index: int) -> Hashable | None:
        """Returns the key of the row `index`."""
        at = index - len(self._first)
        return self._key(self._values[at]) if 0 <= at < len(self._values) else self[index].key

    def text_of(self, index: int) -> str:
        """Returns the text of the row `index`. Filters look for the typed words in it. Returns "" for a row
        that cannot be chosen."""
        at = index - len(self._first)
        if self._text is not None and 0 <= at < len(self._values):
            return self._text(self._values[at])
        return text_of(self[index]) if self[index].key is not None else ""

    def place_of(self, key: Hashable) -> int | None:
        """Returns the index of the row for the value with this key. Returns None if no value has it."""
        own = self._key
        at = next((at for at, value in enumerate(self._values) if own(value) == key), None)
        return None if at is None else at + len(self._first)
