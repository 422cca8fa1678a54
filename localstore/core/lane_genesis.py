"""How the text of an epoch enters its lane: in which pieces, written by whom. Stored lanes depend on both."""

from __future__ import annotations

from typing import NamedTuple

from localstore.core import lane_format, limits, textdiff
from localstore.core.encoding import digest, length_prefixed
from localstore.core.lane_format import GENESIS_BIT, INFO_RIGHT_ORIGIN, KIND_STRING, PARENT_IS_ROOT, ROOT
from localstore.core.lane_reader import varints

GENESIS_CONTEXT = b"svc-lane-genesis-v1"
_FIRST = bytes([KIND_STRING, PARENT_IS_ROOT, len(ROOT)]) + ROOT.encode()
_BEFORE = bytes([KIND_STRING | INFO_RIGHT_ORIGIN])


class Genesis(NamedTuple):
    """The first state of an epoch, as an update by `writer`. `pieces`: the UTF-16 units of each of its items,
    in the order in which they were written."""

    writer: int
    state: bytes
    pieces: list[int]

    @property
    def units(self) -> int:
        return sum(self.pieces)


def genesis(branch_id: str, gen: int, epoch: int, text: bytes) -> Genesis:
    """What inserting the `pieces` of UTF-8 text at index 0 makes, the last one first: the library never joins
    them into one slow block."""
    writer, cut = genesis_id(branch_id, gen, epoch, text), _cut(text)
    if not cut:
        return Genesis(writer, b"\0\0", [])
    parts = [varints([1, len(cut), writer, 0])]
    units: list[int] = []
    for piece in reversed(cut):
        parts += [_BEFORE, varints([writer, sum(units[:-1])])] if units else [_FIRST]
        parts += [varints([len(piece)]), piece]
        units.append(lane_format.units(piece))
    return Genesis(writer, b"".join([*parts, b"\0"]), units)


def genesis_id(branch_id: str, gen: int, epoch: int, text: bytes) -> int:
    """Client id that writes the text of an epoch: 53 bits, the highest set (in replica ids it is clear)."""
    name = length_prefixed(
        GENESIS_CONTEXT, branch_id.encode(), str(gen).encode(), str(epoch).encode(), digest(text)
    )
    return int.from_bytes(digest(name)[:8], "big") & (GENESIS_BIT - 1) | GENESIS_BIT


def pieces(text: bytes) -> list[str]:
    """UTF-8 text cut into stretches of at most 16 KiB at character boundaries."""
    return [piece.decode("utf-8") for piece in _cut(text)]


def _cut(text: bytes) -> list[bytes]:
    if len(text) <= limits.GENESIS_PIECE:
        return [text] if text else []
    cut: list[bytes] = []
    start = 0
    while start < len(text):
        end = min(start + limits.GENESIS_PIECE, len(text))
        while end < len(text) and textdiff.inside_character(text[end]):
            end -= 1
        cut.append(text[start:end])
        start = end
    return cut
