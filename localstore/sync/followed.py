"""What live sync keeps of the renames that it follows, from one step to the next."""

from __future__ import annotations

import msgspec


class Left(msgspec.Struct, frozen=True):
    """A file that the branch removed here. `digest`: the text that it had, or that was last saved to its old
    name; `until`: monotonic time after which a save there is a new file; `new`: the file that it became, None
    while that was not asked."""

    digest: bytes
    until: float
    new: str | None = None


class Followed(msgspec.Struct):
    """Renames of a live working copy, to be told: old and new paths of files that were `moved` with an edit,
    and of those that are `back` because it does not fit. `edited`: files that got an edit, which has to be
    sent. `later`: paths that wait for an answer about the file that they became → until when. `left`: files
    that the branch removed a while ago."""

    moved: list[tuple[str, str]] = msgspec.field(default_factory=list)
    back: list[tuple[str, str]] = msgspec.field(default_factory=list)
    edited: set[str] = msgspec.field(default_factory=set)
    later: dict[str, float] = msgspec.field(default_factory=dict)
    left: dict[str, Left] = msgspec.field(default_factory=dict)
