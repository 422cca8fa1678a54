"""Conflicts: versions of a file that cannot be merged. The branch's version keeps the path, and the local
version becomes a conflict copy. Both versions are recorded until the user resolves the conflict; for
texts, their base is recorded too."""

from __future__ import annotations

from typing import NamedTuple

from localstore.core.diff.text_merge import TextConflict
from localstore.core.encoding import digest
from localstore.record.conflicts import RecordedConflict, line_ranges
from localstore.sync.remote import unsealed_authors
from localstore.sync.working_copy import WorkingCopy


class ConflictingTexts(NamedTuple):
    """Two texts that cannot be merged. `base`: their common base, None if unknown. `conflicts`: the ranges of
    lines that both changed. It is empty if the merge failed for another reason, such as the size or a
    binary base."""

    base: bytes | None
    theirs: bytes
    mine: bytes
    conflicts: list[TextConflict]


class TextsConflict(Exception):
    """Two texts cannot be merged. This is raised before anything is changed. `texts`: the texts and their
    conflict."""

    def __init__(self, clash: ConflictingTexts) -> None:
        super().__init__("the texts stand against each other")
        self.texts = clash


def record_conflict(copy: WorkingCopy, path: str, clash: ConflictingTexts) -> None:
    """Record a conflict at `path`, with the name that the conflict copy will get. At this time the disk still
    has the local text at `path`. Runs in the caller's transaction."""
    base, theirs, mine = (None if text is None else digest(text) for text in clash[:3])
    assert theirs is not None and mine is not None  # noqa: S101 - only a base may be unknown
    texts = {base: clash.base, theirs: clash.theirs, mine: clash.mine}
    copy.objects.add((name, text) for name, text in texts.items() if name is not None and text is not None)
    drop_unused(copy, path)
    copy.db.conflicts.put(
        RecordedConflict(
            path,
            copy.free_name(path),
            base,
            theirs,
            mine,
            author_of(copy, path),
            line_ranges([conflict.theirs for conflict in clash.conflicts]),
            line_ranges([conflict.mine for conflict in clash.conflicts]),
        )
    )


def record_versions(copy: WorkingCopy, path: str, theirs: bytes | None, mine: bytes | None) -> None:
    """Record a conflict of two files that have no common text, such as binary files. `theirs`: digest of the
    branch's version; `mine`: digest of the local version, which gets the conflict name. Does nothing if there
    is only one version, or if both are equal. Runs in the caller's transaction.

    The local version may already have a recorded conflict whose copy is not made yet. Then only the branch's
    version and its author are changed in that record."""
    if theirs is None or mine is None or theirs == mine:
        return
    drop_unused(copy, path, but=mine)
    by = author_of(copy, path)
    for recorded in copy.db.conflicts.of(path):
        if recorded.mine == mine and not copy.exists(recorded.kept_as):
            copy.db.conflicts.put(recorded._replace(theirs=theirs, by=by))
            return
    conflict = RecordedConflict(path, copy.free_name(path), None, theirs, mine, by, "", "")
    copy.db.conflicts.put(conflict)


def drop_unused(copy: WorkingCopy, path: str, but: bytes | None = None) -> None:
    """Drop those recorded conflicts of a path whose conflict copies are not on the disk. `but`: digest of a
    local version whose conflict stays, because its copy is about to be made."""
    for recorded in copy.db.conflicts.of(path):
        if recorded.mine != but and not copy.exists(recorded.kept_as):
            copy.db.conflicts.remove(recorded.kept_as)


def author_of(copy: WorkingCopy, path: str) -> str | None:
    """The handle of the author of the branch's version of a path. None if the author is unknown, or if
    several people changed it."""
    handles = unsealed_authors(copy).get(path) or copy.sealed_by
    return handles[0] if len(handles) == 1 else None
