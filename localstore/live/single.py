"""Scans single files whose paths are known to have been saved. The record is updated as by a whole scan."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from localstore.core.errors import TooLarge
from localstore.core.ignore import matcher
from localstore.core.ignore.matcher import SOURCES
from localstore.core.paths import RESERVED, parents
from localstore.folder.files import Files
from localstore.folder.git_tracked import GitTracked
from localstore.folder.link import FOLDER
from localstore.folder.scan_result import Exclusions, Scan, Skipped
from localstore.folder.stat_cache import ScanSinks, Stat, hash_file
from localstore.folder.walk_rules import IS_NESTED, IS_OWN, NESTED, fault_of, rules_in
from localstore.sync.uncarried import readable
from localstore.sync.working_copy import WorkingCopy


def examine(copy: WorkingCopy, paths: Iterable[str]) -> Scan:
    """Scan these paths. Ignored files that are not in the record are left out, and so are names that no
    repository accepts. A file that is still as svc wrote it is not read (`WorkingCopy.ours`).

    If a file of the record is missing, everything that may have replaced it is reported as skipped: links and
    nested repositories at its path, and files in its folder whose names no repository accepts."""
    copy.git.refresh()
    scan, present, missing_paths = Scan(), {}, []
    aside = _Aside(copy.files, scan)
    by_folder: dict[str, list[Stat]] = {}
    sinks = ScanSinks(copy.chunk_lists, copy.objects.cache)
    for path in paths:
        fault = fault_of(path)
        if fault is not None:
            if copy.files.stat(path) is not None:
                aside.skip(path, fault)
            continue
        prefix = path[: path.rfind("/") + 1]
        by_folder.setdefault(prefix, [])
        if path not in copy.entries and left_out(copy.files, path, copy.git):
            continue
        try:
            ours = copy.ours(path)
            seen = ours or _read(copy.files, path, sinks)
        except OSError as error:
            aside.skip(path, f"unreadable: {error.strerror or ''}")
            continue
        if seen is None:
            aside.look_for(path, path in copy.entries)
            missing_paths.append(path)
        else:
            present[path] = seen
            by_folder[prefix].append(seen)
            scan.bytes_hashed += 0 if ours else seen.size
    for prefix, stats in by_folder.items():
        scan.add(prefix, stats)
    copy.files.forget()
    copy.db.put_stats(present.values(), missing_paths)
    return scan


class _Aside:
    """Finds entries of the folder that svc cannot send, and adds them to the skipped entries of the scan. It
    looks at the scanned paths and at the folders above them. Where a recorded file is missing, it looks at
    the whole folder of that file."""

    def __init__(self, files: Files, scan: Scan) -> None:
        self._files, self._scan = files, scan
        self._listed: set[str] = set()
        self._skipped: set[str] = set()

    def skip(self, path: str, reason: str, folder: bool = False) -> None:
        if path in self._skipped:
            return
        self._skipped.add(path)
        exclusions = self._scan.exclusions.setdefault(
            path[: path.rfind("/") + 1], Exclusions(skipped=[], hidden=[])
        )
        exclusions.hidden.append(os.fsencode(f"{path}/" if folder else path))
        exclusions.skipped.append(Skipped(readable(path), reason))

    def look_for(self, path: str, recorded: bool) -> None:
        """Find out why there is no regular file at a path. If something else is at the path, or in the place
        of a folder above it, such as a symlink, it is added to the skipped entries. `recorded`: the record
        has the file, so it may have been renamed to a name that no repository accepts."""
        for place in (*parents(path), path):
            info = self._files.stat(place)
            if info is None:
                break
            if stat.S_ISDIR(info.st_mode):
                if any(self._files.stat(f"{place}/{inside}") is not None for inside in NESTED):
                    mark = self._files.stat(f"{place}/{FOLDER}")
                    own = mark is not None and stat.S_ISREG(mark.st_mode)
                    return self.skip(place, IS_OWN if own else IS_NESTED, folder=True)
            elif not stat.S_ISREG(info.st_mode):
                return self.skip(place, "symlink" if stat.S_ISLNK(info.st_mode) else "special")
        if recorded:
            self._list(path.rpartition("/")[0])
        return None

    def _list(self, folder: str) -> None:
        """Find the entries of a folder whose names no repository accepts, and add them to the skipped
        entries."""
        if folder in self._listed:
            return
        self._listed.add(folder)
        prefix = f"{folder}/" if folder else ""
        try:
            names = (
                self._files.names(folder) if folder else [child.name for child in self._files.root.iterdir()]
            )
        except OSError:
            return
        for name in names:
            fault = None if name.lower() in RESERVED else fault_of(prefix + name)
            if fault is not None:
                self.skip(prefix + name, fault)


def _read(files: Files, path: str, sinks: ScanSinks) -> Stat | None:
    """Hash the file and return its stat. None if there is no regular file at the path."""
    info = files.stat(path)
    if info is None or not stat.S_ISREG(info.st_mode):
        return None
    try:
        return hash_file(files, path, sinks)
    except FileNotFoundError:
        return None


def left_out(files: Files, path: str, git: GitTracked) -> bool:
    """Whether a file at this path is excluded, by ignore rules or because a nested repository contains it.
    Reads the rules of the folders above."""
    above = sorted(parents(path), key=len)
    if any(files.stat(f"{folder}/{inside}") is not None for folder in above for inside in NESTED):
        return True
    return _is_ignored(files, path, above) and not git.keeps(path)


def _is_ignored(files: Files, path: str, above: list[str]) -> bool:
    scope = matcher.root(_rules(files, ""))
    for folder in above:
        name = folder.rpartition("/")[2]
        if scope.prune(name):
            return True
        scope = scope.enter(name, _rules(files, f"{folder}/"))
    return scope.is_ignored(path.rpartition("/")[2], False)


def _rules(files: Files, prefix: str) -> dict[str, str]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        opened = os.open(files.root, flags)
        for name in prefix.split("/")[:-1]:
            above = opened
            try:
                opened = os.open(name, flags, dir_fd=above)
            finally:
                os.close(above)
    except OSError:
        return {}
    try:
        return rules_in(opened, prefix, SOURCES)
    except TooLarge:
        return {}  # a walk reports this
    finally:
        os.close(opened)
