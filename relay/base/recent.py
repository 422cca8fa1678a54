"""A cache with a limit on the total weight of its values, such as their bytes.

kept = Recent(32 * MIB, len)
kept.put(key, raw)
raw = kept.get(key)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A cache of values by key, which drops the least recently used values. `weight`: returns the weight of a
    value, which must not be 0. `most`: limit for the sum of all weights; `largest`: limit for one value, by
    default `most`. The value of a key must never change."""

    def __init__(self, most: int, weight: Callable[[V], int], largest: int | None = None) -> None:
        self._most, self._weight, self._held = most, weight, 0
        self.largest = most if largest is None else largest
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        weight = self._weight(value)
        if key in self._values or weight > self.largest:
            return
        self._values[key] = value
        self._held += weight
        while self._held > self._most:
            _, dropped = self._values.popitem(last=False)
            self._held -= self._weight(dropped)
