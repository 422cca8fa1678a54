"""Holds back removals of most files of a live branch until the user confirms them by a push."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection
from typing import NamedTuple

from localstore.core.removals import removes_most
from localstore.folder.scan_result import Scan
from localstore.sync.removals import lost_among, missing_files
from localstore.sync.working_copy import WorkingCopy

REMEMBERED = 60.0  # seconds for which removals that were sent count: a slow `rm -r` is one removal


class _Sent(NamedTuple):
    """Removals that were sent. `at`: when they were sent. `files`: how many files they removed, not counting
    renamed files. `tree`: how many files the branch had then."""

    at: float
    files: int
    tree: int


class HeldRemovals:
    """Removals that are held back, which means that they are not sent. `held`: the paths; `lost`: how many of
    these files were not just renamed; `tree`: how many files the branch has."""

    def __init__(self) -> None:
        self.held: set[str] = set()
        self.lost = self.tree = 0
        self._sent: deque[_Sent] = deque()

    def prune(self, copy: WorkingCopy) -> None:
        """Forget those held-back removals whose paths have no entry in the record any more, because a push
        has sent them."""
        if self.held:
            self.held = {path for path in self.held if path in copy.entries}

    def hold(self, copy: WorkingCopy, scan: Scan, paths: Collection[str]) -> set[str]:
        """Decide again which removals are held back. This is done only if one of `paths` has lost its file,
        or is itself held back. Returns the paths whose removal was held back before and can be sent now."""
        more = missing_files(copy, scan, paths)
        if not more and self.held.isdisjoint(paths):
            return set()
        missing = {*more, *missing_files(copy, scan, self.held)}
        before, self.held = self.held, set()
        now = time.monotonic()
        while self._sent and self._sent[0].at < now - REMEMBERED:
            self._sent.popleft()
        sent = sum(removal.files for removal in self._sent)
        now_here = max(copy.db.count_rows(), copy.db.count_shown())  # own saves are no rows until they return
        tree = max([now_here, *(removal.tree for removal in self._sent)])  # it may have grown since
        if removes_most(len(missing) + sent, tree):
            lost = lost_among(copy, scan, missing)
            if removes_most(lost + sent, tree):
                self.held, self.lost, self.tree = missing, lost + sent, tree
                return set()
        if missing:
            new = copy.db.unsealed_digests()
            lost = sum(copy.entries[path].shadow not in new for path in missing)
            self._sent.append(_Sent(now, lost, now_here))
        return before & missing

    @property
    def words(self) -> str:
        """A sentence for the user about the removals that are held back, and what to do; "" if there are
        none."""
        if not self.held:
            return ""
        return (
            f"{self.lost} of {self.tree} files are gone here, and {len(self.held)} removals are not sent; "
            "to send them: svc push --yes; to take them back: svc restore ."
        )
