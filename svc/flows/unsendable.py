"""Finds changes that a push does not send. These are changes of files over a size cap, and some removals. A
removal is not sent if something that svc cannot send, such as a link, is now at the path of the file."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from localstore.folder.scan_result import Scan, Skipped
from localstore.sync.compose import SizeCaps
from localstore.sync.uncarried import Uncarried
from localstore.sync.working_copy import WorkingCopy
from svc.flows.common import update_file_cap


class Unsendable(NamedTuple):
    """Changes that a push does not send. `over` maps the path of each file over a size cap to the reason.
    `kept` has files that are missing in the folder but stay on the branch. They are grouped by the path of
    what is in their place and cannot be sent, such as a link."""

    over: dict[str, Skipped]
    kept: dict[str, list[str]]

    @property
    def paths(self) -> set[str]:
        """The paths of all changes that a push does not send."""
        return {*self.over, *(path for paths in self.kept.values() for path in paths)}


def find_unsendable(
    copy: WorkingCopy, scan: Scan, changed: Collection[str], new: Collection[str], removed: Collection[str]
) -> Unsendable:
    """Return those of the changed, new and removed paths whose changes a push does not send."""
    update_file_cap(copy)
    caps = SizeCaps(copy, scan)
    uncarried = Uncarried(copy, scan, caps.over)
    result = Unsendable({}, {})
    for path in sorted({*changed, *new}):
        stat = scan.find(path)
        over = caps.over(path, stat) if stat and stat.kind == "blob" else None
        if stat is not None and over is not None:
            result.over[path] = over
            uncarried.leave_out(path, stat.digest, path in new)
    if not (result.over or scan.skipped):
        return result
    for path in removed:
        entry = copy.entries.get(path)
        cause = uncarried.cause(path, entry.shadow, entry.size) if entry is not None else None
        if cause is not None:
            result.kept.setdefault(cause, []).append(path)
    return result
