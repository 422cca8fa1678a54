"""Splits work whose amount a client decides into batches of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def split_batches(items: Iterable[T], most: int, size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Yields the items in order, in lists whose sizes add up to at most `most`. An item larger than `most` is
    alone in its list."""
    part: list[T] = []
    total = 0
    for item in items:
        size = size_of(item)
        if part and total + size > most:
            yield part
            part, total = [], 0
        part.append(item)
        total += size
    if part:
        yield part
