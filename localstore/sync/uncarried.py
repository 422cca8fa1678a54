"""Finds files that are missing in the folder and must stay on the branch. Something that svc cannot send has
replaced them: a link or a socket at their path, a file over a size cap, or a file whose new name no
repository accepts."""

from __future__ import annotations

import os
import stat as stat_module
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from localstore.core.paths import parents, terminal_safe
from localstore.folder.scan_result import Scan, Skipped
from localstore.folder.stat_cache import Stat, read_stat
from localstore.folder.walk_rules import fault_of
from localstore.sync.working_copy import WorkingCopy

NAMED_BADLY = 10_000  # files of unacceptable names that are compared with missing ones

OverCap = Callable[[str, Stat], Skipped | None]
"""Why a byte file is over a size cap; None if it fits."""


class Uncarried:
    """Finds out what replaced a missing file, if svc cannot send the replacement."""

    def __init__(self, copy: WorkingCopy, scan: Scan, over: OverCap) -> None:
        self._copy, self._scan, self._over = copy, scan, over
        self._unsent: dict[bytes, str] = {}
        self._below: dict[str, str] = {}
        self._above: dict[str, bool] = {}

    def leave_out(self, path: str, digest: bytes, new: bool) -> None:
        """Record that the file at `path`, with the content `digest`, is not sent. `new`: the branch has no
        file at this path, so the file may be a renamed one."""
        if new:
            self._unsent.setdefault(digest, path)
        for folder in parents(path):
            self._below.setdefault(folder, path)

    def cause(self, path: str, digest: bytes | None, size: int) -> str | None:
        """The path of the entry that replaced the missing file at `path` and cannot be sent. None if there is
        no such entry, which means that the file was removed. `digest`, `size`: digest and size of the
        missing file."""
        hiding = self._scan.hiding(path)
        if hiding is not None:
            return hiding
        if path in self._below and self._only_unsent(path):
            return self._below[path]
        for folder in parents(path):
            if self._is_over_cap(folder):
                return folder
        if digest is None:
            return None
        unsent = self._unsent.get(digest) or self._renamed_badly(digest, size)
        return None if unsent is None or digest in self._new_digests else unsent

    @cached_property
    def _new_digests(self) -> set[bytes]:
        """Digests of the new files here that can be sent. If a missing file has one of these digests, it was
        renamed to that new file. Then nothing that cannot be sent has replaced it."""
        entries, unsent = self._copy.entries, set(self._unsent.values())
        return {
            file.digest
            for path, file in self._scan.files.items()
            if path not in entries and path not in unsent
        }

    def _only_unsent(self, folder: str) -> bool:
        """Whether the folder contains no file that can be sent. If so, the branch can keep a file that has
        the folder's name."""
        unsent = {*self._below.values(), *self._unsent.values()}
        below = (path for path in self._scan.files if path.startswith(f"{folder}/"))
        return all(path in unsent for path in below)

    def _is_over_cap(self, folder: str) -> bool:
        """Whether a file over a size cap is at the path of this folder."""
        if folder not in self._above:
            info = self._copy.files.stat(folder)
            stat = None
            if info is not None and stat_module.S_ISREG(info.st_mode) and info.st_size > self._copy.file_cap:
                stat = self._scan.find(folder) or read_stat(self._copy.files, folder)
            over = self._over(folder, stat) if stat is not None and stat.kind != "text" else None
            self._above[folder] = over is not None
        return self._above[folder]

    def _renamed_badly(self, digest: bytes, size: int) -> str | None:
        for path in self._named_badly.get(size, ()):
            stat = read_stat(self._copy.files, path)
            if stat is not None and stat.digest == digest:
                return path
        return None

    @cached_property
    def _named_badly(self) -> dict[int, list[str]]:
        """The files that cannot be sent because no repository accepts their name, or the name of a folder
        above them. Returns their paths by size in bytes."""
        by_size: dict[int, list[str]] = {}
        roots = [hidden for hidden in sorted(self._scan.hidden) if fault_of(hidden.rstrip("/")) is not None]
        for count, (path, size) in enumerate(self._regular_files(roots)):
            if count == NAMED_BADLY:
                break
            by_size.setdefault(size, []).append(path)
        return by_size

    def _regular_files(self, roots: Iterable[str]) -> Iterator[tuple[str, int]]:
        files = self._copy.files
        todo = [root.rstrip("/") for root in roots]
        while todo:
            path = todo.pop()
            info = files.stat(path)
            if info is None:
                continue
            if stat_module.S_ISREG(info.st_mode):
                yield path, info.st_size
            elif stat_module.S_ISDIR(info.st_mode):
                try:
                    todo.extend(f"{path}/{name}" for name in files.names(path))
                except OSError:
                    continue


def with_kept(skipped: Iterable[Skipped], kept_by: dict[str, list[str]]) -> list[Skipped]:
    """The skipped entries, each with the files that stay on the branch because of the entry. `kept_by`: these
    files, by the path of the entry. An entry of `kept_by` that is not in `skipped` is added."""
    by_path = {readable(cause): tuple(map(terminal_safe, paths)) for cause, paths in kept_by.items()}
    named = []
    for item in skipped:
        keeps = by_path.pop(item.path, ())
        named.append(_keeping(item, keeps) if keeps else item)
    return named + [Skipped(cause, "not sent", keeps=keeps) for cause, keeps in by_path.items()]


def _keeping(item: Skipped, keeps: tuple[str, ...]) -> Skipped:
    return Skipped(item.path, item.reason, item.size, item.cap, item.remedy, keeps)


def readable(path: str) -> str:
    """The path, escaped for a terminal. Bytes that are not UTF-8 are escaped too."""
    return terminal_safe(os.fsencode(path).decode("utf-8", "backslashreplace"))
