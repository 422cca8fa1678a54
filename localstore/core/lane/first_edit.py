"""The first edit of a lane that nobody has touched, written without the library.

All of such a lane is the text of its genesis, by one writer: what stands at an offset follows from the
offset. An ordinary edit of it, a few places in a text of ordinary size, is what most files of a push need; to
make a document of each costs several times as much. The bytes are those that the library would write.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from localstore.core import limits
from localstore.core.diff import text_edits
from localstore.core.lane import update_format
from localstore.core.lane.genesis import Genesis, genesis
from localstore.core.lane.reader import varints
from localstore.core.lane.update_format import INFO_ORIGIN, INFO_RIGHT_ORIGIN, KIND_STRING

MOST_EDITS, MOST_BYTES = 64, 256 * limits.KIB
_NO_DELETIONS = b"\0"


class FirstEdit(NamedTuple):
    """An edit of an untouched lane: the `update` that makes it, None if nothing changes."""

    genesis: Genesis
    update: bytes | None

    def state(self) -> bytes:
        """The whole lane after it, as `Lane.state` gives one."""
        if self.update is None:
            return self.genesis.state()
        writers = 1 + self.update[0]  # the update has one writer, or none if it only deletes
        return b"".join([bytes([writers]), *self.genesis.parts(), self.update[1:]])


def first_edit(
    branch_id: str, gen: int, epoch: int, text: bytes, replica: int, new: bytes, name: bytes | None = None
) -> FirstEdit | None:
    """What `Lane.genesis(branch_id, gen, epoch, text).edit(replica, new)` gives; None where the lane itself
    has to be edited. `name`: the BLAKE3 of `text`, if it is known. Raises NotText unless both are UTF-8."""
    if not (text and _plain(text) and _plain(new)):
        return None
    changes = text_edits.edits(text, new)
    if not _few_and_apart(changes):
        return None
    made = genesis(branch_id, gen, epoch, text, name)
    return FirstEdit(made, _update(_Places(made, text), replica, changes) if changes else None)


def _plain(text: bytes) -> bool:
    """Whether each character is one UTF-16 unit, and there are not many."""
    return len(text) <= MOST_BYTES and not update_format.has_pairs(text)


def _few_and_apart(changes: list[text_edits.Edit]) -> bool:
    ends = [offset + deleted for offset, deleted, _ in changes[:-1]]
    apart = all(end < after.offset for end, after in zip(ends, changes[1:], strict=True))
    small = all(len(one.inserted) <= limits.GENESIS_PIECE for one in changes)
    return apart and small and len(changes) <= MOST_EDITS


class _Places:
    """Where the characters of a genesis are: its pieces were written from the last one to the first."""

    def __init__(self, made: Genesis, text: bytes) -> None:
        self.writer, self._text, self._ascii = made.writer, text, text.isascii()
        self._starts: list[tuple[int, int]] = []  # of each piece: its first character, and that one's clock
        first, self.count = 0, sum(made.units)
        clock = self.count
        for units in reversed(made.units):
            clock -= units
            self._starts.append((first, clock))
            first += units

    def character(self, offset: int) -> int:
        """The number of the character at a byte offset."""
        return offset if self._ascii else len(self._text[:offset].decode("utf-8"))

    def clock(self, character: int) -> int:
        first, clock = next(one for one in reversed(self._starts) if one[0] <= character)
        return clock + character - first

    def stretches(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The characters from `start` to `end` as (clock, length), one stretch for each piece."""
        ends = [*(first for first, _ in self._starts[1:]), self.count]
        for (first, clock), last in zip(self._starts, ends, strict=True):
            low, high = max(first, start), min(last, end)
            if low < high:
                yield clock + low - first, high - low


def _update(places: _Places, replica: int, changes: list[text_edits.Edit]) -> bytes:
    """From right to left, each insertion behind what is deleted there."""
    structs: list[bytes] = []
    deletions: list[tuple[int, int]] = []
    for offset, deleted, inserted in reversed(changes):
        start, end = places.character(offset), places.character(offset + deleted)
        deletions += places.stretches(start, end)
        if inserted:
            structs.append(_insertion(places, end, inserted))
    written = [varints([1, len(structs), replica, 0]), *structs] if structs else [b"\0"]
    return b"".join([*written, _deleted(places.writer, sorted(deletions))])


def _insertion(places: _Places, at: int, inserted: bytes) -> bytes:
    """Text before the character `at`."""
    info, points = KIND_STRING, b""
    if at > 0:
        info |= INFO_ORIGIN
        points += varints([places.writer, places.clock(at - 1)])
    if at < places.count:
        info |= INFO_RIGHT_ORIGIN
        points += varints([places.writer, places.clock(at)])
    return bytes([info]) + points + varints([len(inserted)]) + inserted


def _deleted(writer: int, stretches: list[tuple[int, int]]) -> bytes:
    if not stretches:
        return _NO_DELETIONS
    joined: list[tuple[int, int]] = []
    for clock, length in stretches:
        if joined and sum(joined[-1]) == clock:
            clock, length = joined[-1][0], joined.pop()[1] + length
        joined.append((clock, length))
    return varints([1, writer, len(joined), *(number for one in joined for number in one)])
