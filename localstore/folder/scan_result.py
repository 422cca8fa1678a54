"""The result of a scan. Also defines the part of the result that the client's record stores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal, NamedTuple

import msgspec

from localstore.core import paths
from localstore.folder.stat_cache import RecordedFolder, Stat

Rescan = Literal["", "files", "all"]
KEPT_NAMED = 3  # paths that `Skipped.kept_words` names before it counts the rest


class Skipped(msgspec.Struct, frozen=True):
    """An entry that the scan left out. `path`: its path. `size` and `cap`: its size and the limit in bytes
    that it exceeds. `remedy`: how to include it, if that is possible. `keeps`: the files of the branch whose
    place the entry has taken in the folder; they stay unchanged on the branch. All paths are escaped for a
    terminal."""

    path: str
    reason: str
    size: int = 0
    cap: int | None = None
    remedy: str = ""
    keeps: tuple[str, ...] = ()

    @property
    def kept_words(self) -> str:
        """The end of a sentence about the files in `keeps`, such as `; the branch keeps a.txt as it was`. ""
        if there are none."""
        if not self.keeps:
            return ""
        names, more = ", ".join(self.keeps[:KEPT_NAMED]), len(self.keeps) - KEPT_NAMED
        also = f" and {more} more" if more > 0 else ""
        return f"; the branch keeps {names}{also} as {'it was' if len(self.keeps) == 1 else 'they were'}"


class Exclusions(msgspec.Struct, array_like=True):
    """What a scan left out of one folder. `ignored`: how many entries match ignore rules. `hidden`: raw names
    of the entries that could not be read (folders end in `/`). `rescan`: what every scan must visit
    because the watcher gets no events for it, either the folder's files or everything below."""

    ignored: int = 0
    skipped: list[Skipped] = []
    hidden: list[bytes] = []
    rescan: Rescan = ""


class ScanChanges(NamedTuple):
    """How a scan differs from the record. `folders`: for each path with a trailing slash, what to record of
    the folder, None to forget it. `fresh`: new or changed files. `gone`: paths whose file was removed."""

    folders: dict[str, RecordedFolder | None]
    fresh: list[Stat]
    gone: list[str]


class Scan:
    """The result of a scan. `exclusions`: what was left out of each folder, by the folder's path with a
    trailing slash."""

    def __init__(self) -> None:
        self.exclusions: dict[str, Exclusions] = {}
        self.bytes_hashed = 0
        self._folders: dict[str, RecordedFolder | list[Stat]] = {}
        self._opened: dict[str, dict[str, Stat]] = {}
        self._recorded: Callable[[], Iterable[RecordedFolder]] | None = None
        self._single: Callable[[str], Stat | None] | None = None

    def add(self, prefix: str, folder: RecordedFolder | list[Stat]) -> None:
        """Add the files of one folder; `prefix` is its path with a trailing slash."""
        self._folders[prefix] = folder

    def read_from_records(
        self, whole: Callable[[], Iterable[RecordedFolder]], single: Callable[[str], Stat | None]
    ) -> None:
        """After a scan that visited only some folders, read the other files from the record once they are
        needed. `whole`: returns all folders; `single`: returns the file at one path."""
        self._recorded, self._single = whole, single

    @cached_property
    def files(self) -> dict[str, Stat]:
        """All files, by path."""
        by_path: dict[str, Stat] = {}
        for folder in self._folders.values() if self._recorded is None else self._recorded():
            by_path.update((stat.path, stat) for stat in _stats(folder))
        return by_path

    def find(self, path: str) -> Stat | None:
        """The file at the path, None if there is none. This reads only the folder of the path, whereas
        `files` reads all folders."""
        if self._single is not None:
            return self._single(path)
        prefix = path[: path.rfind("/") + 1]
        if prefix not in self._opened:
            self._opened[prefix] = {stat.path: stat for stat in _stats(self._folders.get(prefix, []))}
        return self._opened[prefix].get(path)

    @cached_property
    def ignored(self) -> int:
        """How many entries match ignore rules."""
        return sum(aside.ignored for aside in self.exclusions.values())

    @cached_property
    def skipped(self) -> list[Skipped]:
        """Entries that were left out, sorted by path."""
        return sorted((entry for aside in self.exclusions.values() for entry in aside.skipped), key=_path)

    @cached_property
    def hidden(self) -> set[str]:
        """The paths of the entries that could not be read, so that their content is unknown. Folders end in
        `/`."""
        return {os.fsdecode(path) for aside in self.exclusions.values() for path in aside.hidden}

    def unknown(self, path: str) -> bool:
        """Whether the scan cannot tell if there is a file at this path."""
        return self.hiding(path) is not None

    def hiding(self, path: str) -> str | None:
        """The entry at the path, or above it, that the scan could not read; None if there is none. With such
        an entry, nobody knows whether the file exists. For example, a link in the place of a folder hides the
        files of that folder."""
        if not self.hidden:
            return None
        for place in (*paths.parents(path), path):
            if place in self.hidden or f"{place}/" in self.hidden:
                return place
        return None


class PartialWalk:
    """The folders to visit in a scan that does not visit all, by path with a trailing slash ("" for the
    root). `files`: folders of which only the files directly in them are visited. `all`: folders that are
    visited with everything below."""

    def __init__(self, files: Iterable[str], all_below: Iterable[str]) -> None:
        below = set(all_below)
        self.all = {folder for folder in below if not any(above in below for above in _above(folder))}
        self.files = {
            folder
            for folder in files
            if folder not in self.all and not any(above in self.all for above in _above(folder))
        }
        self.on_the_way: dict[str, set[str]] = {}
        for folder in self.all | self.files:
            for above in _above(folder):
                name = folder[len(above) :].partition("/")[0]
                self.on_the_way.setdefault(above, set()).add(name)

    def __bool__(self) -> bool:
        return bool(self.all or self.files)

    def covers(self, prefix: str) -> bool:
        """Whether the scan visits this folder."""
        return (
            prefix in self.files or prefix in self.all or any(folder in self.all for folder in _above(prefix))
        )


class WatcherMistaken(Exception):
    """A folder that the watcher named does not exist, so the whole working copy must be scanned."""


def changed_exclusions(
    before: Mapping[str, Exclusions], now: Mapping[str, Exclusions]
) -> dict[str, Exclusions | None]:
    """The changes that turn the exclusions `before` into `now`, by folder. None stands for a folder whose
    exclusions are deleted."""
    written: dict[str, Exclusions | None] = {
        path: aside for path, aside in now.items() if before.get(path) != aside
    }
    return written | dict.fromkeys(before.keys() - now.keys())


def _stats(folder: RecordedFolder | list[Stat]) -> list[Stat]:
    return folder.stats() if isinstance(folder, RecordedFolder) else folder


def _above(prefix: str) -> Iterator[str]:
    """The folders above a prefix (the path of a folder with a trailing slash), the root first. The root
    itself has none above it."""
    if prefix:
        yield ""
    for at, char in enumerate(prefix[:-1]):
        if char == "/":
            yield prefix[: at + 1]


def _path(skipped: Skipped) -> str:
    return skipped.path
