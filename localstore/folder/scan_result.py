"""What a look at a working copy found, and what of it the records keep."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal, NamedTuple

import msgspec

from localstore.core import paths
from localstore.folder.stat_cache import RecordedFolder, Stat

Rescan = Literal["", "files", "all"]


class Skipped(msgspec.Struct, frozen=True):
    """Something the walk left out. `path` is fit for a terminal; `cap` is the limit it is over, in bytes;
    `remedy` says what lets it in, where there is something."""

    path: str
    reason: str
    size: int = 0
    cap: int | None = None
    remedy: str = ""


class Exclusions(msgspec.Struct, array_like=True):
    """What one folder holds beside the files that are taken. `ignored` counts entries left out by rules;
    `hidden` names, as the system's bytes, what could not be seen (a folder ends in `/`). `again`: what no
    event tells of, so that each look must go there: the folder's files, or all below it."""

    ignored: int = 0
    skipped: list[Skipped] = []
    hidden: list[bytes] = []
    rescan: Rescan = ""


class ScanChanges(NamedTuple):
    """What a walk found that the records did not know. `folders`: those to record, None to forget, by their
    path with a slash behind; `fresh`: files that are new or changed; `gone`: paths without a file."""

    folders: dict[str, RecordedFolder | None]
    fresh: list[Stat]
    gone: list[str]


class Scan:
    """A look at the working copy. `asides`: by folder, its path with a slash behind, where there are any."""

    def __init__(self) -> None:
        self.exclusions: dict[str, Exclusions] = {}
        self.bytes_hashed = 0
        self._folders: dict[str, RecordedFolder | list[Stat]] = {}
        self._opened: dict[str, dict[str, Stat]] = {}
        self._recorded: Callable[[], Iterable[RecordedFolder]] | None = None
        self._single: Callable[[str], Stat | None] | None = None

    def add(self, prefix: str, folder: RecordedFolder | list[Stat]) -> None:
        """Take in the files of one folder; `prefix` is its path with a slash behind."""
        self._folders[prefix] = folder

    def read_from_records(
        self, whole: Callable[[], Iterable[RecordedFolder]], single: Callable[[str], Stat | None]
    ) -> None:
        """The look went to some folders only: the files of all are what the records have now, to be read
        when somebody asks."""
        self._recorded, self._single = whole, single

    @cached_property
    def files(self) -> dict[str, Stat]:
        """Path → what it was when the walk passed."""
        found: dict[str, Stat] = {}
        for folder in self._folders.values() if self._recorded is None else self._recorded():
            found.update((one.path, one) for one in _stats(folder))
        return found

    def find(self, path: str) -> Stat | None:
        """What `files` has of one path, at the price of its folder."""
        if self._single is not None:
            return self._single(path)
        prefix = path[: path.rfind("/") + 1]
        if prefix not in self._opened:
            self._opened[prefix] = {one.path: one for one in _stats(self._folders.get(prefix, []))}
        return self._opened[prefix].get(path)

    @cached_property
    def ignored(self) -> int:
        """How many entries rules left out."""
        return sum(one.ignored for one in self.exclusions.values())

    @cached_property
    def skipped(self) -> list[Skipped]:
        """What was not taken, by path."""
        return sorted((one for aside in self.exclusions.values() for one in aside.skipped), key=_path)

    @cached_property
    def hidden(self) -> set[str]:
        """Paths, and folders ending in `/`, whose contents the walk could not see: what lies there is
        unknown, not removed."""
        return {os.fsdecode(one) for aside in self.exclusions.values() for one in aside.hidden}

    def unknown(self, path: str) -> bool:
        """Whether the walk cannot say if the file is still there."""
        if not self.hidden:
            return False
        return path in self.hidden or any(f"{above}/" in self.hidden for above in paths.parents(path))


class PartialWalk:
    """Folders that a look has to go to, by their path with a slash behind: `files` alone, or `all` that is
    below too. The root is the empty path."""

    def __init__(self, files: Iterable[str], all_below: Iterable[str]) -> None:
        below = set(all_below)
        self.all = {one for one in below if not any(above in below for above in _above(one))}
        self.files = {
            one
            for one in files
            if one not in self.all and not any(above in self.all for above in _above(one))
        }
        self.on_the_way: dict[str, set[str]] = {}
        for one in self.all | self.files:
            for above in _above(one):
                name = one[len(above) :].partition("/")[0]
                self.on_the_way.setdefault(above, set()).add(name)

    def __bool__(self) -> bool:
        return bool(self.all or self.files)

    def covers(self, prefix: str) -> bool:
        """Whether the look goes to this folder."""
        return prefix in self.files or prefix in self.all or any(one in self.all for one in _above(prefix))


class WatcherMistaken(Exception):
    """The folder is not as the watcher told: the look must go everywhere."""


def changed_exclusions(
    before: Mapping[str, Exclusions], now: Mapping[str, Exclusions]
) -> dict[str, Exclusions | None]:
    """What to write so that the records have `now`; None: to forget."""
    written: dict[str, Exclusions | None] = {
        path: one for path, one in now.items() if before.get(path) != one
    }
    return written | dict.fromkeys(before.keys() - now.keys())


def _stats(folder: RecordedFolder | list[Stat]) -> list[Stat]:
    return folder.stats() if isinstance(folder, RecordedFolder) else folder


def _above(prefix: str) -> Iterator[str]:
    """The folders above, as prefixes, the root first; none for the root."""
    if prefix:
        yield ""
    for at, char in enumerate(prefix[:-1]):
        if char == "/":
            yield prefix[: at + 1]


def _path(one: Skipped) -> str:
    return one.path
