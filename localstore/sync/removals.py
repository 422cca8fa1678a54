"""Counts the files that a push or live sync would remove from the branch."""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterable

from localstore.core.removals import count_lost
from localstore.folder.scan_result import Scan
from localstore.sync.working_copy import WorkingCopy


def missing_files(copy: WorkingCopy, scan: Scan, paths: Iterable[str]) -> list[str]:
    """Those of `paths` whose file is no longer on the disk, although the branch accepted it and this folder
    had it."""
    missing = []
    for path in paths:
        if scan.find(path) is not None or scan.unknown(path):
            continue
        entry = copy.entries.get(path)
        if entry is None or not entry.gen or entry.shadow is None:
            continue
        info = copy.files.stat(path)
        if info is None or stat.S_ISDIR(info.st_mode):
            missing.append(path)
    return missing


def lost_among(copy: WorkingCopy, scan: Scan, missing: Collection[str]) -> int:
    """How many of the missing files were not just renamed. A file was renamed if a new file has its bytes."""
    sealed = copy.db.read_sealed()
    gone = [entry.shadow for path in missing if (entry := copy.entries.get(path)) and entry.shadow]
    new = {stat.path: stat.digest for stat in scan.files.values() if stat.path not in sealed}
    for path, entry in copy.entries.items():
        if path not in sealed and path not in missing and entry.shadow is not None:
            new.setdefault(path, entry.shadow)
    return count_lost(gone, new.values())
