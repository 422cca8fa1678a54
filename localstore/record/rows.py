"""The rows of the tables in a working copy's database, except the entries."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import msgspec

from localstore.core.model.live import LaneKind
from localstore.record.entry import Kind


class FrontierRow(NamedTuple):
    """One path of the branch's live frontier as the relay last sent it. The members are those of
    `localstore.core.model.live.Row`, with binary digests."""

    path: str
    kind: LaneKind
    gen: int
    epoch: int
    ver: int
    other: int
    digest: bytes
    size: int
    live: bool


class SealedFile(NamedTuple):
    """One file of the last seal's tree."""

    kind: Kind
    digest: bytes
    size: int


class SealedTree(msgspec.Struct, frozen=True):
    """The tree of a seal, as a difference from the previous seal's tree. `root`: its root digest; `fresh`:
    the new directory objects, bytes by digest; `gone`: digests of the directory objects that are no longer
    needed, None if these are all earlier ones."""

    root: bytes
    fresh: dict[bytes, bytes]
    gone: Collection[bytes] | None


class Intent(NamedTuple):
    """An entry of the journal: a write to the folder that has begun. `temp`: path of the temporary file;
    `inode`: its inode. `new`: digest of the bytes to write, None to remove the file. The states are listed
    in `localstore.folder.writer`."""

    temp: str
    path: str
    inode: int | None
    new: bytes | None
    state: str
