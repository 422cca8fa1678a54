"""Encodes the first edit of an unchanged lane (the CRDT text of one path on one branch) without the CRDT
library.

An unchanged lane still has the text with which it began (its genesis), inserted by a single writer. So the
CRDT position of each character follows from its offset. Most files of a push have such an edit, and creating
a CRDT document for each would take several times as long. The result has the same bytes as the CRDT
library's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from localstore.core.diff import text_edits
from localstore.core.lane import update_format
from localstore.core.lane.genesis import Genesis, genesis
from localstore.core.lane.reader import varints
from localstore.core.lane.update_format import INFO_ORIGIN, INFO_RIGHT_ORIGIN, KIND_STRING
from localstore.core.model import limits

MOST_EDITS, MOST_BYTES = 64, 256 * limits.KIB
_NO_DELETIONS = b"\0"


class FirstEdit(NamedTuple):
    """The first edit of an unchanged lane. `update`: its encoded update, None if the text does not change."""

    genesis: Genesis
    update: bytes | None

    def state(self) -> bytes:
        """The state of the lane after the edit, as `Lane.state` returns it."""
        if self.update is None:
            return self.genesis.state()
        writers = 1 + self.update[0]  # the update has one writer, or none if it only deletes
        return b"".join([bytes([writers]), *self.genesis.parts(), self.update[1:]])


def first_edit(
    branch_id: str, gen: int, epoch: int, text: bytes, replica: int, new: bytes, name: bytes | None = None
) -> FirstEdit | None:
    """The edit that changes a new lane from `text` to `new`, encoded as `Lane.genesis(branch_id, gen, epoch,
    text).edit(replica, new)` would; None if only the CRDT library can encode it.

    `name`: the BLAKE3 of `text`, if known. Raises NotText unless both texts are UTF-8."""
    if not (text and _is_plain(text) and _is_plain(new)):
        return None
    changes = text_edits.edits(text, new)
    if not _few_and_apart(changes):
        return None
    base = genesis(branch_id, gen, epoch, text, name)
    return FirstEdit(base, _update(_Places(base, text), replica, changes) if changes else None)


def _is_plain(text: bytes) -> bool:
    """Whether the text is short enough for `first_edit`, and every character of it is one UTF-16 unit."""
    return len(text) <= MOST_BYTES and not update_format.has_pairs(text)


def _few_and_apart(changes: list[text_edits.Edit]) -> bool:
    ends = [offset + deleted for offset, deleted, _ in changes[:-1]]
    apart = all(end < after.offset for end, after in zip(ends, changes[1:], strict=True))
    small = all(len(edit.inserted) <= limits.GENESIS_PIECE for edit in changes)
    return apart and small and len(changes) <= MOST_EDITS


class _Places:
    """The CRDT positions (clocks) of the characters of a new lane. The clock of a character is the number of
    characters that its writer inserted before it. The genesis inserts the last piece of the text first, so
    that piece has the lowest clocks."""

    def __init__(self, base: Genesis, text: bytes) -> None:
        self.writer, self._text, self._ascii = base.writer, text, text.isascii()
        self._starts: list[tuple[int, int]] = []  # of each piece: its first character, and that one's clock
        first, self.count = 0, sum(base.units)
        clock = self.count
        for units in reversed(base.units):
            clock -= units
            self._starts.append((first, clock))
            first += units

    def character(self, offset: int) -> int:
        """The index of the character at a byte offset of the text."""
        return offset if self._ascii else len(self._text[:offset].decode("utf-8"))

    def clock(self, character: int) -> int:
        first, clock = next(start for start in reversed(self._starts) if start[0] <= character)
        return clock + character - first

    def stretches(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The clocks of the characters from index `start` to `end`, as pairs (first clock, number of
        characters). A clock is the CRDT position of a character. Clocks are consecutive only inside one piece
        of the text, so there is one pair for each piece."""
        ends = [*(first for first, _ in self._starts[1:]), self.count]
        for (first, clock), last in zip(self._starts, ends, strict=True):
            low, high = max(first, start), min(last, end)
            if low < high:
                yield clock + low - first, high - low


def _update(places: _Places, replica: int, changes: list[text_edits.Edit]) -> bytes:
    """The encoded update that makes the `changes`, the last one first. Where text is replaced, the new text
    is placed after the deleted text."""
    structs: list[bytes] = []
    deletions: list[tuple[int, int]] = []
    for offset, deleted, inserted in reversed(changes):
        start, end = places.character(offset), places.character(offset + deleted)
        deletions += places.stretches(start, end)
        if inserted:
            structs.append(_insertion(places, end, inserted))
    written = [varints([1, len(structs), replica, 0]), *structs] if structs else [b"\0"]
    return b"".join([*written, _encode_deletions(places.writer, sorted(deletions))])


def _insertion(places: _Places, at: int, inserted: bytes) -> bytes:
    """The encoded CRDT item that inserts the text `inserted` before the character with the index `at`.
    `places`: the CRDT positions of the lane's characters."""
    info, points = KIND_STRING, b""
    if at > 0:
        info |= INFO_ORIGIN
        points += varints([places.writer, places.clock(at - 1)])
    if at < places.count:
        info |= INFO_RIGHT_ORIGIN
        points += varints([places.writer, places.clock(at)])
    return bytes([info]) + points + varints([len(inserted)]) + inserted


def _encode_deletions(writer: int, stretches: list[tuple[int, int]]) -> bytes:
    if not stretches:
        return _NO_DELETIONS
    joined: list[tuple[int, int]] = []
    for clock, length in stretches:
        if joined and sum(joined[-1]) == clock:
            clock, length = joined[-1][0], joined.pop()[1] + length
        joined.append((clock, length))
    return varints([1, writer, len(joined), *(number for stretch in joined for number in stretch)])
