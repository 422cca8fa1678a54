"""Texts that cannot be merged: theirs stays in its place, mine becomes a conflict copy, and both, with what
they come from, are recorded until somebody resolves it."""

from __future__ import annotations

from typing import NamedTuple

from localstore.core.diff.text_merge import Conflict
from localstore.core.encoding import digest
from localstore.record.conflicts import RecordedConflict, line_ranges
from localstore.sync.remote import unsealed_authors
from localstore.sync.working_copy import WorkingCopy


class ConflictingTexts(NamedTuple):
    """`base` None: nothing is known that both come from. `conflicts`: lines that stand against each other;
    none where the texts are not to be merged for another reason."""

    base: bytes | None
    theirs: bytes
    mine: bytes
    conflicts: list[Conflict]


class TextsConflict(Exception):
    """Raised before anything is changed."""

    def __init__(self, clash: ConflictingTexts) -> None:
        super().__init__("the texts stand against each other")
        self.texts = clash


def record_conflict(copy: WorkingCopy, path: str, clash: ConflictingTexts) -> None:
    """Remember the clash, and the name that my text, which the disk shows at `path`, is about to get. Part of
    the caller's step."""
    base, theirs, mine = (None if text is None else digest(text) for text in clash[:3])
    assert theirs is not None and mine is not None  # noqa: S101 - only a base may be unknown
    known = {base: clash.base, theirs: clash.theirs, mine: clash.mine}
    copy.objects.add((name, text) for name, text in known.items() if name is not None and text is not None)
    drop_unused(copy, path)
    copy.db.conflicts.put(
        RecordedConflict(
            path,
            copy.free_name(path),
            base,
            theirs,
            mine,
            author_of(copy, path),
            line_ranges([one.theirs for one in clash.conflicts]),
            line_ranges([one.mine for one in clash.conflicts]),
        )
    )


def drop_unused(copy: WorkingCopy, path: str) -> None:
    """Forget the clashes of a path of which no copy came (the file was saved or deleted in between), or is
    left."""
    for known in copy.db.conflicts.of(path):
        if not copy.exists(known.kept_as):
            copy.db.conflicts.remove(known.kept_as)


def author_of(copy: WorkingCopy, path: str) -> str | None:
    """The handle of whoever made the branch's version of a path, None if it is not known or several did."""
    handles = unsealed_authors(copy).get(path) or copy.sealed_by
    return handles[0] if len(handles) == 1 else None
