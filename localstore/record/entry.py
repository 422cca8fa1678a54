"""What a device knows of one path (docs/design/004)."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["text", "blob", "chunked"]
FOREIGN = 1 << 52  # lanes from here on belong to no branch


def foreign_lane(digest: bytes) -> int:
    """Stands for the lane of a file whose bytes are known while its lane on this branch is not."""
    return FOREIGN | int.from_bytes(digest[:6], "big")


class Entry(msgspec.Struct):
    """One path; the members are the columns of its row. Digests are BLAKE3, 32 bytes.

    gen      the lane; 0 while the file has never been accepted by the relay
    seen     the newest sequence number of the path whose effect is in `base`
    genesis  text the lane's current epoch began with (text only)
    touched  whether the confirmed lane state differs from that genesis; the state is then in the database
    pending  how many captured updates are not confirmed yet
    want     bytes that the confirmed state and the pending updates make together
    shadow   bytes known to be on the disk; None: known to be absent
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
        """Whether the lane on this branch is not known."""
        return self.gen >= FOREIGN

    @property
    def settled(self) -> bool:
        """Whether the disk shows what the lane says."""
        return self.want == self.shadow


def known_by_bytes(path: str, kind: Kind, digest: bytes, size: int) -> Entry:
    """A file of which the branch has, or had, these bytes, and whose lane is not known."""
    return Entry(
        path=path,
        kind=kind,
        gen=foreign_lane(digest),
        genesis=digest if kind == "text" else None,
        want=digest,
        size=size,
        shadow=digest,
    )
