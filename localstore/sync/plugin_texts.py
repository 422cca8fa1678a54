"""Handles saves of editor plugins that have lost their agent.

A plugin sends typed changes to the agent, and saves the file itself if the agent is gone. Such a save
contains letters that already became an edit of the lane. So the save must be compared with the text that the
plugin showed when it sent its last edit. The record stores that text (`localstore.record.arrivals`). Compared
with an older text, the save would insert the letters a second time, or conflict with them."""

from __future__ import annotations

from localstore.core.diff.text_edits import edits, keeps
from localstore.core.errors import SvcError
from localstore.record.entry import PathRecord
from localstore.sync.working_copy import WorkingCopy


def rebase_on_plugin_text(copy: WorkingCopy, entry: PathRecord, data: bytes) -> None:
    """Set the entry's shadow to a text that an editor plugin showed, so that the save `data` is compared with
    that text. This is done only if the save contains everything that was typed between the present shadow and
    that text."""
    arrivals = copy.db.arrivals.get(entry.path)
    if arrivals is None or not arrivals.plugin_texts or entry.shadow is None:
        return
    try:
        base = copy.text(entry.shadow)
        for version in reversed(arrivals.plugin_texts):
            if has_what_was_typed(base, copy.text(version.digest), data):
                entry.shadow = version.digest
                return
    except SvcError:
        return  # neither the record nor the relay has one of the texts


def has_what_was_typed(old: bytes, typed: bytes, data: bytes) -> bool:
    """Whether the save `data` contains all text that was inserted between `old` and `typed`. Then the save
    was made from `typed`, and not from `old`. False if nothing was inserted."""
    return any(edit.inserted for edit in edits(old, typed)) and keeps(old, typed, data)
