"""Records the relay's version of a path as the version that the folder has."""

from __future__ import annotations

from localstore.record.entry import PathRecord
from localstore.sync.remote import Remote
from localstore.sync.working_copy import WorkingCopy


def adopt(copy: WorkingCopy, remote: Remote, shadow: bytes | None) -> None:
    """Record the relay's version of a path as the version that this folder has. `shadow`: digest of the file
    on the disk, None for no file."""
    copy.forget(remote.row.path)
    copy.db.put_lane_state(remote.row.path, remote.state)
    copy.save(entry_of(remote, shadow))


def entry_of(remote: Remote, shadow: bytes | None) -> PathRecord:
    """The entry that records a path with the relay's version. `shadow`: digest of the file on the disk, None
    for no file."""
    row = remote.row
    assert row.kind != "gone"  # noqa: S101 - rows of the frontier are files
    return PathRecord(
        path=row.path,
        kind=row.kind,
        gen=row.gen,
        epoch=row.epoch,
        seen=row.ver,
        genesis=remote.genesis if row.kind == "text" else None,
        touched=remote.state is not None,
        want=row.digest,
        size=row.size,
        shadow=shadow,
    )
