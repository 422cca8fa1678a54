"""Encodes new values as Yjs items without the Yjs library (pycrdt).

The library inserts items of a list one at a time and walks through the list for each, which takes 30 s for a
list of 20,000. An encoded run takes one step. The bytes are an update of format v1, as the library writes it:

    update = 1 client: number-of-items client clock { item } no-deletions
    item   = info [origin] [parent] [member's name] content"""

from __future__ import annotations

import struct
from typing import Any

from localstore.core.document.content import is_text
from localstore.core.lane.reader import varints

Id = tuple[int, int]  # (client, clock)

_STRING, _TYPE, _ANY = 4, 7, 8  # kinds of content
_ORIGIN, _MEMBER = 0x80, 0x20  # flags of an item
_BY_ID = b"\0"  # the parent is an item, not a root
_ARRAY, _MAP, _TEXT = 0, 1, 2
_SMALL = (1 << 31) - 1  # the largest integer that is written as one
_NO_DELETIONS = b"\0"


def members(writer: int, clock: int, parent: Id, values: dict[str, Any]) -> bytes:
    """The encoded update by which the client `writer` sets the members `values` of the map `parent`, which is
    new and empty. `clock`: the number of units that this client has written before."""
    items = _Items(writer, clock)
    items.add_members(parent, values)
    return items.update()


def elements(writer: int, clock: int, parent: Id, values: list[Any]) -> bytes:
    """The encoded update by which the client `writer` inserts `values` into the list `parent`, which is new
    and empty. `clock`: the number of units that this client has written before."""
    items = _Items(writer, clock)
    items.add_elements(_parent(parent), values)
    return items.update()


def elements_after(writer: int, clock: int, before: Id, values: list[Any]) -> bytes:
    """The encoded update by which the client `writer` inserts `values` into a list. `before`: the id of the
    item that comes directly before the new ones, and was made in the same transaction. `clock`: the number of
    units that this client has written before."""
    items = _Items(writer, clock)
    items.add_elements(None, values, before)
    return items.update()


class _Items:
    """Collects the encoded items (new values) of one update of a document."""

    def __init__(self, writer: int, clock: int) -> None:
        self._writer, self._start, self._clock = writer, clock, clock
        self._count = 0
        self._parts: list[bytes] = []

    def update(self) -> bytes:
        head = varints([1, self._count, self._writer, self._start])
        return b"".join([head, *self._parts, _NO_DELETIONS])

    def add_members(self, parent: Id, values: dict[str, Any]) -> None:
        for name, value in values.items():
            place = _parent(parent) + _string(name)
            if _is_plain(value):
                self._add(_ANY | _MEMBER, place, b"\x01" + _any(value), 1)
            else:
                self._add_shared(_MEMBER, place, value)

    def add_elements(self, parent: bytes | None, values: list[Any], before: Id | None = None) -> None:
        """Add `values` as items of a list. `before`: the id of the item after which they are inserted.
        Without it they are inserted at the start of the list `parent`, whose encoded form is then needed."""
        at = 0
        while at < len(values):
            end = at
            while end < len(values) and _is_plain(values[end]):
                end += 1
            flags, place = (0, parent or b"") if before is None else (_ORIGIN, varints(before))
            if end > at:  # a run of plain values is one item
                run = varints([end - at]) + b"".join(map(_any, values[at:end]))
                before = (self._writer, self._clock + end - at - 1)
                self._add(_ANY | flags, place, run, end - at)
                at = end
            else:
                before = (self._writer, self._clock)
                self._add_shared(flags, place, values[at])
                at += 1

    def _add_shared(self, flags: int, place: bytes, value: Any) -> None:
        """Add a map, list or text, and then its content. `flags`, `place`: the encoded position of the new
        item."""
        mine = (self._writer, self._clock)
        kind = _MAP if isinstance(value, dict) else _ARRAY if isinstance(value, list) else _TEXT
        self._add(_TYPE | flags, place, bytes([kind]), 1)
        if kind == _MAP:
            self.add_members(mine, value)
        elif kind == _ARRAY:
            self.add_elements(_parent(mine), value)
        else:
            units = len(value.encode("utf-16-le")) // 2
            self._add(_STRING, _parent(mine), _string(value), units)

    def _add(self, info: int, place: bytes, content: bytes, length: int) -> None:
        self._parts += (bytes([info]), place, content)
        self._clock += length
        self._count += 1


def _is_plain(value: Any) -> bool:
    """Whether a value is always replaced as a whole: neither a map, nor a list, nor a text that is edited by
    characters."""
    return not isinstance(value, (dict, list)) and not (isinstance(value, str) and is_text(value))


def _parent(parent: Id) -> bytes:
    return _BY_ID + varints(parent)


def _string(text: str) -> bytes:
    raw = text.encode()
    return varints([len(raw)]) + raw


def _any(value: Any) -> bytes:
    """A plain value in the encoding of lib0, the encoding library of Yjs."""
    if value is None:
        return b"\x7e"
    if isinstance(value, bool):
        return b"\x78" if value else b"\x79"
    if isinstance(value, str):
        return b"\x77" + _string(value)
    if isinstance(value, int) and abs(value) <= _SMALL:
        return b"\x7d" + _encode_signed(value)
    return b"\x7b" + struct.pack(">d", value)


def _encode_signed(value: int) -> bytes:
    """A signed number in lib0's variable length (varint): the first byte has the sign and six bits."""
    sign, rest = (0x40, -value) if value < 0 else (0, value)
    first, rest = sign | (rest & 0x3F), rest >> 6
    return bytes([first | 0x80]) + varints([rest]) if rest else bytes([first])
