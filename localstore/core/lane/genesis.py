"""The genesis of an epoch: the insertions that put the first text into a lane. Stored lanes depend on the way
the text is split and on the writer id, so neither may ever change."""

from __future__ import annotations

from typing import NamedTuple

from localstore.core.diff import text_edits
from localstore.core.encoding import digest, length_prefixed
from localstore.core.lane import update_format
from localstore.core.lane.reader import varints
from localstore.core.lane.update_format import (
    GENESIS_BIT,
    INFO_RIGHT_ORIGIN,
    KIND_STRING,
    PARENT_IS_ROOT,
    ROOT,
)
from localstore.core.model import limits

GENESIS_CONTEXT = b"svc-lane-genesis-v1"
_FIRST = bytes([KIND_STRING, PARENT_IS_ROOT, len(ROOT)]) + ROOT.encode()
_BEFORE = bytes([KIND_STRING | INFO_RIGHT_ORIGIN])


class Genesis(NamedTuple):
    """The first state of an epoch: its text, cut into pieces. Each piece is inserted at index 0, the last
    piece first. Otherwise the CRDT library would join the pieces into one large block, in which edits are
    slow. `writer`: id of the client that inserts them; `pieces`: in the order of their insertion; `units`:
    number of UTF-16 units of each piece."""

    writer: int
    pieces: list[bytes]
    units: list[int]

    def parts(self) -> list[bytes]:
        """The insertions of the state as encoded bytes: how many there are, the client id of the writer, and
        each piece. [] for an empty text."""
        if not self.pieces:
            return []
        parts = [varints([len(self.pieces), self.writer, 0])]
        clock = following = 0
        for piece, units in zip(self.pieces, self.units, strict=True):
            parts += [_BEFORE, varints([self.writer, following])] if clock else [_FIRST]
            parts += [varints([len(piece)]), piece]
            following, clock = clock, clock + units
        return parts

    def state(self) -> bytes:
        """The first state of the epoch, encoded as `Lane.state` encodes a state."""
        return b"".join([b"\1" if self.pieces else b"\0", *self.parts(), b"\0"])


def genesis(branch_id: str, gen: int, epoch: int, text: bytes, name: bytes | None = None) -> Genesis:
    """The first state of a lane at the beginning of an epoch. `gen`: the id of the lane; `epoch`: the number
    of the epoch; `text`: the text with which it begins (UTF-8); `name`: the BLAKE3 of the text, if known."""
    cut = _cut(text)[::-1]
    writer = genesis_id(branch_id, gen, epoch, name or digest(text))
    return Genesis(writer, cut, [update_format.units(piece) for piece in cut])


def genesis_id(branch_id: str, gen: int, epoch: int, name: bytes) -> int:
    """The client id that inserts the first text of an epoch. It is computed from the parameters. `name`:
    BLAKE3 of the text. The id has 53 bits, and its highest bit is 1; in the id of a replica this bit is 0."""
    preimage = length_prefixed(
        GENESIS_CONTEXT, branch_id.encode(), str(gen).encode(), str(epoch).encode(), name
    )
    return int.from_bytes(digest(preimage)[:8], "big") & (GENESIS_BIT - 1) | GENESIS_BIT


def pieces(text: bytes) -> list[str]:
    """The text cut into pieces of at most 16 KiB at character boundaries."""
    return [piece.decode("utf-8") for piece in _cut(text)]


def _cut(text: bytes) -> list[bytes]:
    if len(text) <= limits.GENESIS_PIECE:
        return [text] if text else []
    cut: list[bytes] = []
    start = 0
    while start < len(text):
        end = min(start + limits.GENESIS_PIECE, len(text))
        while end < len(text) and text_edits.inside_character(text[end]):
            end -= 1
        cut.append(text[start:end])
        start = end
    return cut
