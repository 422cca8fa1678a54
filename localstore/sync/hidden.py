"""Finds sealed files of the folder that this account does not see any more. Its role was lowered, or their
paths became private."""

from __future__ import annotations

from collections.abc import Container

from localstore.core.errors import NotFound
from localstore.folder.scan_result import Scan
from localstore.sync import verify
from localstore.sync.reconcile import is_gone
from localstore.sync.working_copy import WorkingCopy


def hidden_files(copy: WorkingCopy, scan: Scan, visible_paths: Container[str]) -> list[str]:
    """The paths of unchanged files of the folder's last seal that the relay hides from this account now. A
    pull would remove them, although nobody removed them. An account that may write sees all files, and gets
    an empty list. `visible_paths`: paths that the account is known to see."""
    seal = copy.last_seal
    if copy.key is not None or seal is None:
        return []
    sealed, index = copy.db.read_sealed(), copy.db.number("since")
    gone = [
        path
        for path, entry in copy.entries.items()
        if path in sealed and path not in visible_paths and is_gone(entry, index) and not entry.pending
        if (stat := scan.find(path)) is not None and stat.digest == entry.shadow
    ]
    if not gone:
        return []
    try:
        payload = verify.seal(copy.transport.seal(seal), seal, copy.repo.repo_id, named=True)
        visible = verify.files(copy.transport, seal, payload)
    except NotFound:
        return sorted(gone)
    return sorted(path for path in gone if path not in visible)
