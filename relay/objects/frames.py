"""A bounded cache of raw frames: reading a tree asks for many small objects of the same frames."""

from __future__ import annotations

from collections import OrderedDict


class FrameCache:
    """Least recently used frames out first. `limit`: bytes. A frame above an eighth of it is not kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._frames: OrderedDict[tuple[str, int], bytes] = OrderedDict()

    def get(self, key: tuple[str, int]) -> bytes | None:
        raw = self._frames.get(key)
        if raw is not None:
            self._frames.move_to_end(key)
        return raw

    def put(self, key: tuple[str, int], raw: bytes) -> None:
        if key in self._frames or len(raw) > self._limit // 8:
            return
        self._frames[key] = raw
        self._size += len(raw)
        while self._size > self._limit:
            _, oldest = self._frames.popitem(last=False)
            self._size -= len(oldest)
