"""Merges a captured edit (an edit found on disk) with a lane that has changed meanwhile.

A captured edit has only the resulting text, not the characters that were typed. So it is merged as text
(`localstore.core.diff.text_merge`), and the result becomes updates of the current lane. If the merge fails,
`TextsConflict` is raised (`localstore.sync.conflicts`)."""

from __future__ import annotations

from localstore.core.diff.overlay import overlay
from localstore.core.diff.text_merge import merge
from localstore.core.encoding import digest
from localstore.core.errors import Invalid, TooLarge
from localstore.core.lane.carry import carry
from localstore.core.lane.lane import Lane
from localstore.core.model.limits import TEXT_FILE
from localstore.core.storage.file_kind import kind_of
from localstore.record.entry import PathRecord
from localstore.record.typed import drop_typed, is_typed, put_typed
from localstore.sync.conflicts import ConflictingTexts, TextsConflict
from localstore.sync.remote import Remote
from localstore.sync.working_copy import WorkingCopy


def advance(copy: WorkingCopy, entry: PathRecord, remote: Remote) -> None:
    """Replace the confirmed lane of an entry by the relay's lane, and merge the pending edits into it, in one
    transaction. If they cannot be merged, raises TextsConflict with nothing changed."""
    same_epoch = entry.epoch == remote.row.epoch
    if same_epoch and remote.state is None and entry.touched:
        return  # the relay sent no state, so the confirmed one stays
    if not entry.pending:
        _adopt(copy, entry, remote, [], None)
    elif same_epoch and remote.row.other <= entry.seen:
        entry.seen = max(entry.seen, remote.row.ver)
        with copy.db.step():
            copy.save(entry)
    elif not (is_typed(copy.db, entry) and _advance_typed(copy, entry, remote, same_epoch)):
        lane = _lane(copy, remote)
        update = merge_edit(
            copy, entry.path, lane, copy.confirmed_lane(entry).text(), copy.lane_with_pending(entry).text()
        )
        text = lane.text()
        copy.objects.add([(digest(text), text)])
        with copy.db.step():
            drop_typed(copy.db, entry.path)
            _adopt(copy, entry, remote, [] if update is None else [update], text)


def _advance_typed(copy: WorkingCopy, entry: PathRecord, remote: Remote, same_epoch: bool) -> bool:
    """Replace the confirmed lane by the relay's lane, and merge the pending typed edits into it character by
    character. Returns False, with nothing changed, if they have to be merged as texts. `same_epoch`: whether
    both lanes are in the same epoch."""
    lane, pending = _lane(copy, remote), copy.db.pending(entry.path)
    try:
        if same_epoch:
            lane.replay(pending)
        else:
            update = carry(copy.confirmed_lane(entry), pending, copy.replica, lane)
            pending = [] if update is None else [update]
    except Invalid:
        return False
    text = lane.text()
    copy.objects.add([(digest(text), text)])
    with copy.db.step():
        _adopt(copy, entry, remote, pending, text)
        put_typed(copy.db, entry)
    return True


def merge_edit(copy: WorkingCopy, path: str, lane: Lane, base: bytes, mine: bytes) -> bytes | None:
    """Apply the change from `base` to `mine` to `lane`. `base`: a text that was on the disk. Returns the
    update, or None if the lane already has the change. Raises TextsConflict, with the lane unchanged.

    In a folder that is synced live there is no conflict if both sides only inserted text at the same place:
    the texts are put one after the other."""
    theirs = lane.text()
    if kind_of(base) != "text":  # the file was binary before
        raise TextsConflict(ConflictingTexts(None, theirs, mine, []))
    merged = merge(base, theirs, mine)
    text: bytes | None = merged.text
    if merged.conflicts:
        text = overlay(base, theirs, mine) if copy.live else None
    if text is None or len(text) > TEXT_FILE:
        raise TextsConflict(ConflictingTexts(base, theirs, mine, merged.conflicts))
    try:
        update = lane.edit(copy.replica, text)
    except TooLarge:
        raise TextsConflict(ConflictingTexts(base, theirs, mine, [])) from None
    if base not in (theirs, mine) and theirs != mine:
        copy.merged.add(path)
    return update


def _lane(copy: WorkingCopy, remote: Remote) -> Lane:
    """The relay's lane as a `Lane` that this replica can edit."""
    if remote.state is not None:
        return Lane.load(remote.state, copy.replica)
    return copy.genesis(remote.row.gen, remote.row.epoch, copy.text(remote.genesis))


def _adopt(
    copy: WorkingCopy, entry: PathRecord, remote: Remote, pending: list[bytes], text: bytes | None
) -> None:
    """Record the relay's lane as confirmed. `pending`: the updates that this folder has made and the relay
    has not confirmed. `text`: the text with these updates, None if there are none."""
    entry.epoch, entry.seen = remote.row.epoch, max(entry.seen, remote.row.ver)
    entry.genesis, entry.touched = remote.genesis, remote.state is not None
    entry.want, entry.size = remote.row.digest, remote.row.size
    if text is not None:
        entry.want, entry.size = digest(text), len(text)
    entry.pending = len(pending)
    with copy.db.step():
        copy.db.put_lane_state(entry.path, remote.state)
        copy.db.put_pending(entry.path, pending)
        copy.save(entry)
