"""Scans single files, for saves that name their path, and updates the record like a walk."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from localstore.core.errors import TooLarge
from localstore.core.ignore import matcher
from localstore.core.ignore.matcher import SOURCES
from localstore.core.paths import parents, terminal_safe
from localstore.folder.files import Files
from localstore.folder.scan_result import Exclusions, Scan, Skipped
from localstore.folder.stat_cache import ScanSinks, Stat, hash_file
from localstore.folder.walk_rules import NESTED, fault_of, rules_in
from localstore.sync.working_copy import WorkingCopy


def examine(copy: WorkingCopy, paths: Iterable[str]) -> Scan:
    """Scan these paths. Left out: ignored files that the record does not know, and names that no repository
    accepts."""
    scan, found, gone = Scan(), {}, []
    by_folder: dict[str, list[Stat]] = {}
    sinks = ScanSinks(copy.chunk_lists, copy.objects.cache)
    for path in paths:
        if fault_of(path) is not None:
            continue
        prefix = path[: path.rfind("/") + 1]
        by_folder.setdefault(prefix, [])
        if path not in copy.entries and left_out(copy.files, path):
            continue
        try:
            seen = _read(copy.files, path, sinks)
        except OSError as error:
            aside = scan.exclusions.setdefault(prefix, Exclusions(skipped=[], hidden=[]))
            aside.hidden.append(os.fsencode(path))
            aside.skipped.append(Skipped(terminal_safe(path), f"unreadable: {error.strerror or ''}"))
            continue
        if seen is None:
            gone.append(path)
        else:
            found[path] = seen
            by_folder[prefix].append(seen)
            scan.bytes_hashed += seen.size
    for prefix, stats in by_folder.items():
        scan.add(prefix, stats)
    copy.files.forget()
    copy.db.put_stats(found.values(), gone)
    return scan


def _read(files: Files, path: str, sinks: ScanSinks) -> Stat | None:
    """The file's stat; None if there is no regular file."""
    info = files.stat(path)
    if info is None or not stat.S_ISREG(info.st_mode):
        return None
    try:
        return hash_file(files, path, sinks)
    except FileNotFoundError:
        return None


def left_out(files: Files, path: str) -> bool:
    """Whether the ignore rules, or a nested repository, exclude a file at this path. Reads the rules of its
    parent folders."""
    above = sorted(parents(path), key=len)
    scope = matcher.root(_rules(files, ""))
    for folder in above:
        name = folder.rpartition("/")[2]
        if scope.prune(name) or any(files.stat(f"{folder}/{inside}") is not None for inside in NESTED):
            return True
        scope = scope.enter(name, _rules(files, f"{folder}/"))
    return scope.ignored(path.rpartition("/")[2], False)


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
