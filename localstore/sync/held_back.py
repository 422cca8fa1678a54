"""Finds new files that git ignores only by settings of this user. They are sent only after a push is
confirmed, because a file that a user excludes from every repository may contain a password."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from localstore.core.ignore.matcher import GIT_EVERYWHERE, Reason
from localstore.core.paths import terminal_safe
from localstore.folder.scan_result import Scan, Skipped
from localstore.sync.working_copy import WorkingCopy


class HeldBack(msgspec.Struct, frozen=True):
    """A new file that is held back. `rule`: the rule of git that matches it. `line`: a line for `.svcignore`
    that would exclude it."""

    path: str
    rule: str
    line: str


def held_back(copy: WorkingCopy, scan: Scan, paths: Iterable[str]) -> list[HeldBack]:
    """Those of `paths` that are new files which git ignores only for this user. A file is new if it was
    scanned and is not in the record."""
    new = [path for path in paths if path not in copy.entries and scan.find(path) is not None]
    if not new:
        return []
    copy.git_excludes.refresh()
    if not copy.git_excludes.active:
        return []
    held = []
    for path in new:
        reason = copy.git_excludes.reason(path)
        if reason is not None and not copy.git.keeps(path):
            held.append(HeldBack(path, _rule(copy, reason), _line(path, reason)))
    return held


def new_git_ignored(copy: WorkingCopy) -> list[HeldBack]:
    """All new files of the folder that git ignores only for this user. The folder is scanned only if git has
    rules of this user."""
    copy.git_excludes.refresh()
    if not copy.git_excludes.active:
        return []
    scan = copy.scan()
    return held_back(copy, scan, copy.db.may_need_update())


def to_skipped(held: HeldBack) -> Skipped:
    """The file that is held back, in the form of an entry that a scan skipped, with the reason."""
    return Skipped(
        terminal_safe(held.path), f"git ignores it for you ({held.rule}); svc push asks before it sends it"
    )


def _rule(copy: WorkingCopy, reason: Reason) -> str:
    source = copy.git_excludes.file_everywhere if reason.source == GIT_EVERYWHERE else reason.source
    return terminal_safe(f"{source}:{reason.line} {reason.pattern}")


def _line(path: str, reason: Reason) -> str:
    """A line for `.svcignore` that excludes what git's rule matched. That is the file, or a folder
    above it."""
    folder = "/" if reason.path != path else ""
    return "/" + escape_pattern(reason.path) + folder


def escape_pattern(path: str) -> str:
    """An ignore pattern that matches only this path."""
    pattern = "".join("\\" + char if char in "\\*?[]" else char for char in path)
    return pattern[:-1] + "\\ " if pattern.endswith(" ") else pattern
