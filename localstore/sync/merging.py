"""Edits captured from a file meet a lane that has moved on: the texts are merged, then operations are made.

A file says what its text became, not what was meant. So what is here and what others made of it are merged as
texts (`localstore.core.diff.text_merge`), and only the result becomes operations, on the lane as it is now.
What cannot be merged is a conflict (`localstore.sync.conflicts`): the lane's text stays, mine becomes a file
of its own.
"""

from __future__ import annotations

from localstore.core.diff.text_merge import merge
from localstore.core.encoding import digest
from localstore.core.errors import TooLarge
from localstore.core.lane.lane import Lane
from localstore.core.limits import TEXT_FILE
from localstore.core.storage.file_kind import kind_of
from localstore.record.entry import PathRecord
from localstore.sync.conflicts import ConflictingTexts, TextsConflict
from localstore.sync.remote import Remote
from localstore.sync.working_copy import WorkingCopy


def advance(copy: WorkingCopy, entry: PathRecord, remote: Remote) -> None:
    """Bring the confirmed lane to the relay's state and what is captured here onto it, in one step. Clashed,
    and nothing is changed, where the two cannot be merged."""
    same_epoch = entry.epoch == remote.row.epoch
    if same_epoch and remote.state is None and entry.touched:
        return  # the relay does not tell what it confirmed to us
    if not entry.pending:
        _adopt(copy, entry, remote, None, None)
    elif same_epoch and remote.row.other <= entry.seen:
        entry.seen = max(entry.seen, remote.row.ver)
        with copy.db.step():
            copy.save(entry)
    else:
        lane = _lane(copy, remote)
        update = merge_edit(
            copy, entry.path, lane, copy.confirmed_lane(entry).text(), copy.lane_with_pending(entry).text()
        )
        text = lane.text()
        copy.objects.add([(digest(text), text)])
        _adopt(copy, entry, remote, update, text)


def merge_edit(copy: WorkingCopy, path: str, lane: Lane, base: bytes, mine: bytes) -> bytes | None:
    """Give `lane` the change from `base`, which the disk once showed of it, to `mine`. The update that does
    it, None if the lane has it all. Clashed where that cannot be, and the lane is as it was."""
    theirs = lane.text()
    if kind_of(base) != "text":  # a file that was bytes before
        raise TextsConflict(ConflictingTexts(None, theirs, mine, []))
    merged = merge(base, theirs, mine)
    if merged.conflicts or len(merged.text) > TEXT_FILE:
        raise TextsConflict(ConflictingTexts(base, theirs, mine, merged.conflicts))
    try:
        update = lane.edit(copy.replica, merged.text)
    except TooLarge:
        raise TextsConflict(ConflictingTexts(base, theirs, mine, [])) from None
    if base not in (theirs, mine) and theirs != mine:
        copy.merged.add(path)
    return update


def _lane(copy: WorkingCopy, remote: Remote) -> Lane:
    if remote.state is not None:
        return Lane.load(remote.state, copy.replica)
    return copy.genesis(remote.row.gen, remote.row.epoch, copy.text(remote.genesis))


def _adopt(
    copy: WorkingCopy, entry: PathRecord, remote: Remote, update: bytes | None, text: bytes | None
) -> None:
    """Take the relay's lane for ours, with `update` captured on it, which makes its text `text`."""
    entry.epoch, entry.seen = remote.row.epoch, max(entry.seen, remote.row.ver)
    entry.genesis, entry.touched = remote.genesis, remote.state is not None
    entry.want, entry.size = remote.row.digest, remote.row.size
    if text is not None:
        entry.want, entry.size = digest(text), len(text)
    entry.pending = 0 if update is None else 1
    with copy.db.step():
        copy.db.put_lane_state(entry.path, remote.state)
        copy.db.put_pending(entry.path, [] if update is None else [update])
        copy.save(entry)
