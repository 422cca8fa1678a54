"""What the client records about one path of a working copy (docs/design/004)."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["text", "blob", "chunked"]
FOREIGN = 1 << 52  # lane ids from here on stand for unknown lanes


def foreign_lane(digest: bytes) -> int:
    """A made-up lane id for a file with this digest, whose lane on this branch is unknown."""
    return FOREIGN | int.from_bytes(digest[:6], "big")


class PathRecord(msgspec.Struct):
    """What is recorded about one path (its entry). The members are the columns of its row. Digests are
    BLAKE3, 32 bytes.

        gen      id of the lane; 0 until the relay has accepted the file
        seen     sequence number of the path's newest update that this entry includes
        genesis  digest of the text with which the lane's current epoch began (text only)
        touched  whether the confirmed lane was edited since then; its state is then in the database
        pending  number of captured updates that the relay has not confirmed
        want     digest of the content that the confirmed lane has after the pending updates
        shadow   digest of the bytes known to be on the disk; None: known to be absent
    """

    path: str
    kind: Kind
    gen: int = 0
    epoch: int = 0
    seen: int = 0
    genesis: bytes | None = None
    touched: bool = False
    pending: int = 0
    want: bytes | None = None
    size: int = 0
    shadow: bytes | None = None

    @property
    def foreign(self) -> bool:
        """Whether the file's lane on this branch is unknown, so that `gen` is a made-up id."""
        return self.gen >= FOREIGN

    @property
    def settled(self) -> bool:
        """Whether the file on the disk has the text (or bytes) of its lane."""
        return self.want == self.shadow


def known_by_bytes(path: str, kind: Kind, digest: bytes, size: int) -> PathRecord:
    """A new entry for a file whose lane is unknown. Its bytes are, or were, on the branch."""
    return PathRecord(
        path=path,
        kind=kind,
        gen=foreign_lane(digest),
        genesis=digest if kind == "text" else None,
        want=digest,
        size=size,
        shadow=digest,
    )
