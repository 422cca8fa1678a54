"""The renames that live sync has followed in a working copy. They are kept from one step to the next."""

from __future__ import annotations

import msgspec


class RemovedText(msgspec.Struct, frozen=True):
    """A text file that the branch removed or renamed. `digest`: BLAKE3 of its text, or of the text that was
    last saved at its old path. `until`: the time (of the monotonic clock) after which a save at the old path
    counts as a new file. `new`: the path that it was renamed to, None if that was not searched for yet."""

    digest: bytes
    until: float
    new: str | None = None


class Followed(msgspec.Struct):
    """The renames that were followed in a working copy.

    - `moved`: (old path, new path) of files whose edit was moved to the new path.
    - `back`: (old path, new path) of files that are restored at the old path, because the edit does not fit.
    - `edited`: paths of files that got a moved edit which is not sent yet.
    - `later`: old path → time (monotonic) until which to wait for the new path.
    - `removed`: old path → text that the branch removed recently."""

    moved: list[tuple[str, str]] = msgspec.field(default_factory=list)
    back: list[tuple[str, str]] = msgspec.field(default_factory=list)
    edited: set[str] = msgspec.field(default_factory=set)
    later: dict[str, float] = msgspec.field(default_factory=dict)
    removed: dict[str, RemovedText] = msgspec.field(default_factory=dict)
