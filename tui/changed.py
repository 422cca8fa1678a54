"""How a changed file is shown in a row: the letter of its change, and how many of its lines changed. And the
beginning of changes that are too long to be kept for a pane that nobody reads yet."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from localstore.core.model.history import ChangedFile
from tui.contents import ChangedPath
from tui.text import Part

GLIMPSE = 128 * 1024  # characters of patches that are shown while the cursor is in a list beside them
SIGNS: dict[str, Part] = {
    "added": ("A", "good"),
    "modified": ("M", "warn"),
    "removed": ("D", "bad"),
    "renamed": ("R", "accent"),
}


def sign_of(file: ChangedFile | ChangedPath) -> Part:
    """Returns a letter that says how a file was changed, as a part."""
    return SIGNS.get(file.status, SIGNS["modified"])


def counts_of(file: ChangedFile | ChangedPath) -> tuple[Part, ...]:
    """Returns how many lines of a file were added and deleted, as parts."""
    if file.binary:
        return (("binary", "dim"),)
    added: list[Part] = [(f"+{file.additions}", "good")] if file.additions else []
    gone: list[Part] = [(f"−{file.deletions}", "bad")] if file.deletions else []
    return (*added, *([(" ", "text")] if added and gone else []), *gone)


def glimpse_of(files: Iterable[ChangedFile]) -> tuple[ChangedFile, ...]:
    """Returns the files with only the beginning of their changes: GLIMPSE characters of all patches
    together."""
    room, glimpsed = GLIMPSE, []
    for file in files:
        patch = file.patch or ""
        if len(patch) > room:
            file = replace(file, patch=patch[: max(0, patch.rfind("\n", 0, room))])
        room -= len(file.patch or "")
        glimpsed.append(file)
    return tuple(glimpsed)
