"""Carrying pending updates from an old epoch of a lane into the current one (lane protocol, Epochs)."""

from __future__ import annotations

from localstore.core.encoding import digest
from localstore.core.errors import UpdateInvalid
from localstore.core.lane import Lane
from localstore.core.lane_carry import SCRATCH_MINE, SCRATCH_THEIRS, carry
from localstore.entry import Entry
from localstore.sync.device import Device
from localstore.sync.remote import Remote


def advance(device: Device, entry: Entry, remote: Remote) -> None:
    """Bring the confirmed lane to the relay's state and the pending updates onto it, in one step."""
    unknown = remote.state is None and entry.touched and entry.epoch == remote.row.epoch
    if not entry.pending and not unknown:
        _take(device, entry, remote)
        return
    base, pending = device.confirmed(entry), device.db.pending(entry.path)
    epoch = entry.epoch
    while epoch < remote.row.epoch:
        step = _exactly(device, entry, remote, epoch, base, pending) if pending else None
        if step is not None:
            epoch, base, pending = step
        else:
            pending = _by_text(device, base, pending, _lane(device, remote))
            epoch, base = remote.row.epoch, _lane(device, remote)
    if remote.state is not None:
        base.merge(remote.state)
    _store(device, entry, remote, base, pending)


def _take(device: Device, entry: Entry, remote: Remote) -> None:
    """Nothing of ours is pending: the relay's state holds all that we ever sent."""
    entry.epoch, entry.seen = remote.row.epoch, max(entry.seen, remote.row.ver)
    entry.genesis, entry.touched = remote.genesis, remote.state is not None
    entry.want, entry.size = remote.row.digest, remote.row.size
    with device.db.step():
        device.db.put_lane_state(entry.path, remote.state)
        device.save(entry)


def _lane(device: Device, remote: Remote) -> Lane:
    if remote.state is not None:
        return Lane.load(remote.state, device.replica)
    return device.genesis(remote.row.gen, remote.row.epoch, device.text(remote.genesis))


def _exactly(
    device: Device, entry: Entry, remote: Remote, epoch: int, base: Lane, pending: list[bytes]
) -> tuple[int, Lane, list[bytes]] | None:
    """The old epoch is known to its end: its end is the genesis of the next one. None if it is not, or its
    end is one that a lane refuses."""
    if epoch not in remote.finals:
        return None
    _, final = remote.finals[epoch]
    try:
        if final is not None:
            base.merge(final)
    except UpdateInvalid:
        if not base.sound:
            raise
        return None
    following = device.genesis(entry.gen, epoch + 1, base.text())
    update = carry(base, pending, device.replica, following.copy())
    return epoch + 1, following, [update] if update else []


def _by_text(device: Device, base: Lane, pending: list[bytes], target: Lane) -> list[bytes]:
    """The old epoch's end was dropped: what changed since then is taken as a difference of texts."""
    if not pending:
        return []
    scratch = Lane.genesis("", 0, 0, base.text())
    there = scratch.copy()
    mine = carry(base, pending, SCRATCH_MINE, scratch)
    there.edit(SCRATCH_THEIRS, target.text())
    update = carry(there, [mine] if mine else [], device.replica, target)
    return [update] if update else []


def _store(device: Device, entry: Entry, remote: Remote, base: Lane, pending: list[bytes]) -> None:
    current = base.copy()
    current.replay(pending)
    text = current.text()
    touched = remote.state is not None or (entry.touched and entry.epoch == remote.row.epoch)
    entry.epoch, entry.seen = remote.row.epoch, max(entry.seen, remote.row.ver)
    entry.genesis, entry.touched = remote.genesis, touched
    entry.pending, entry.want, entry.size = len(pending), digest(text), len(text)
    if pending:
        device.objects.add([(entry.want, text)])
    with device.db.step():
        device.db.put_lane_state(entry.path, base.state() if entry.touched else None)
        device.db.put_pending(entry.path, pending)
        device.save(entry)
