"""Saves of editor plugins that have lost their agent.

A plugin tells the agent what is typed and saves the file when the agent is gone. Letters that became an edit
of the lane stand in that save too. So it is an edit of the text that the plugin showed when the last edit was
made of what it told, which the record keeps (`localstore.record.arrivals`), whether or not the file had that
text by then. As an edit of an older text it would bring the letters a second time, or be a conflict with
them.
"""

from __future__ import annotations

from localstore.core.diff.text_edits import edits, keeps
from localstore.core.errors import SvcError
from localstore.record.entry import PathRecord
from localstore.sync.working_copy import WorkingCopy


def rebase_on_told(copy: WorkingCopy, entry: PathRecord, data: bytes) -> None:
    """If the file does not have the lane's text yet, and the save `data` has all that a plugin told of it,
    make what the plugin showed the entry's shadow."""
    arrivals = copy.db.arrivals.get(entry.path)
    if arrivals is None or not arrivals.told or entry.shadow is None:
        return
    try:
        base = copy.text(entry.shadow)
        for version in reversed(arrivals.told):
            if has_what_was_told(base, copy.text(version.digest), data):
                entry.shadow = version.digest
                return
    except SvcError:
        return  # neither the record nor the relay has one of the texts


def has_what_was_told(old: bytes, typed: bytes, data: bytes) -> bool:
    """Whether something was typed into `old` that led to `typed`, and the save `data` has all of it. Then it
    is no save of `old`."""
    return any(edit.inserted for edit in edits(old, typed)) and keeps(old, typed, data)
