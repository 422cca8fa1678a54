"""How the text of an epoch enters its lane: in which pieces, written by whom. Stored lanes depend on both."""

from __future__ import annotations

from localstore.core import limits, textdiff
from localstore.core.encoding import digest, length_prefixed
from localstore.core.lane_format import GENESIS_BIT

GENESIS_CONTEXT = b"svc-lane-genesis-v1"


def genesis_id(branch_id: str, gen: int, epoch: int, text: bytes) -> int:
    """Client id that writes the text of an epoch: 53 bits, the highest set (in replica ids it is clear)."""
    name = length_prefixed(
        GENESIS_CONTEXT, branch_id.encode(), str(gen).encode(), str(epoch).encode(), digest(text)
    )
    return int.from_bytes(digest(name)[:8], "big") & (GENESIS_BIT - 1) | GENESIS_BIT


def pieces(text: bytes) -> list[str]:
    """UTF-8 text cut into stretches of at most 16 KiB at character boundaries."""
    if len(text) <= limits.GENESIS_PIECE:
        return [text.decode("utf-8")] if text else []
    cut: list[str] = []
    start = 0
    while start < len(text):
        end = min(start + limits.GENESIS_PIECE, len(text))
        while end < len(text) and textdiff.inside_character(text[end]):
            end -= 1
        cut.append(text[start:end].decode("utf-8"))
        start = end
    return cut
