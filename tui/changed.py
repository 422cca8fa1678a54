"""How a changed file is shown in a row: the letter of its change, and how many of its lines changed."""

from __future__ import annotations

from localstore.core.model.history import ChangedFile
from tui.contents import ChangedPath
from tui.text import Part

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
