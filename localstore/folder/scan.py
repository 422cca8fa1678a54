"""Walks through a working copy and finds what changed. Files whose stat is unchanged since the last walk are
not read; a file that may have changed while it was hashed is read again."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from localstore.core.encoding import digest as blake3
from localstore.core.ignore import matcher
from localstore.core.ignore.matcher import SOURCES, Scope
from localstore.core.ignore.wildmatch import octets
from localstore.core.paths import terminal_safe
from localstore.folder.files import Files
from localstore.folder.link import FOLDER
from localstore.folder.scan_result import (
    Exclusions,
    PartialWalk,
    Rescan,
    Scan,
    ScanChanges,
    Skipped,
    WatcherMistaken,
)
from localstore.folder.stat_cache import NO_SINKS, RecordedFolder, ScanSinks, Stat, hash_file, is_trusted
from localstore.folder.walk_rules import IS_NESTED, IS_OWN, LISTED, NESTED, fault_of, rules_in


class Tracked(Protocol):
    """Tells which paths are scanned even if an ignore rule matches them, because the record already has
    them."""

    def tracks(self, path: str) -> bool:
        """Whether the record has this file."""

    def tracks_below(self, folder: str) -> bool:
        """Whether the record has a file below the directory."""


def scan(
    files: Files,
    seen: Mapping[str, RecordedFolder],
    tracked: Tracked,
    sinks: ScanSinks = NO_SINKS,
    part: PartialWalk | None = None,
) -> tuple[Scan, ScanChanges]:
    """Walk the working copy, or only `part` of it. Returns (the scan, the changes to record).

    `seen`: the results of earlier walks, by folder. `sinks`: receives the texts of changed files, but not of
    new files. Raises WatcherMistaken if a folder of `part` does not exist."""
    walker = _Walker(files, seen, tracked, sinks, part)
    walker.run()
    files.forget()
    return walker.scan, walker.changes()


class _Listed(NamedTuple):
    """A file in the listing of a folder, with the values of its stat that show whether it changed. Times are
    nanoseconds."""

    name: str
    mode: int
    size: int
    mtime: int
    ctime: int
    inode: int


class _Contents(NamedTuple):
    """The entries of a directory. `files`: all entries that are not directories, as tuples with the members
    of `_Listed`. `linked`: some file has several hard links, so it can change under another name."""

    folders: list[str]
    files: list[tuple[Any, ...]]
    linked: bool


class _Walker:
    """Walks through folders. If the mark of a folder (digest of its listing and rules) equals the recorded
    mark, its files are not examined."""

    def __init__(
        self,
        files: Files,
        seen: Mapping[str, RecordedFolder],
        tracked: Tracked,
        sinks: ScanSinks,
        part: PartialWalk | None,
    ) -> None:
        self._files, self._seen, self._tracked = files, seen, tracked
        self._sinks_changed, self._sinks_new = sinks, sinks._replace(text=None)
        self._part = part
        self._passed: set[str] = set()
        self._changes = ScanChanges({}, [], [])
        self.scan = Scan()

    def run(self) -> None:
        fd = os.open(self._files.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._folder(fd, "", None, _BUILT_IN, self._part is None)
        finally:
            os.close(fd)

    def changes(self) -> ScanChanges:
        """The changes to record. Folders that the walk did not reach count as removed."""
        for prefix in self._seen.keys() - self._passed:
            self._changes.folders[prefix] = None
            self._changes.gone.extend(file.path for file in self._seen[prefix].stats())
        return self._changes

    def _folder(self, fd: int, prefix: str, above: Scope | None, ruled: bytes, whole: bool) -> bool:
        """Walk one open directory. Returns False if it is left out, because it is unreadable or a nested
        repository.

        `prefix`: its path with a trailing slash, "" for the root. `ruled`: digest of the ignore rules of the
        folders above. `whole`: walk everything below; otherwise only the folders that this scan has to
        visit."""
        try:
            with os.scandir(fd) as entries:
                listed = list(entries)
        except OSError as error:
            if not prefix:
                raise
            self._skip(prefix, prefix[:-1], "unreadable", folder=True, detail=error.strerror or "")
            return False
        names = {entry.name for entry in listed}
        if prefix and not names.isdisjoint(NESTED):
            own = any(entry.name == FOLDER and entry.is_file(follow_symlinks=False) for entry in listed)
            self._skip(prefix, prefix[:-1], IS_OWN if own else IS_NESTED, folder=True)
            return False
        rules = {} if names.isdisjoint(SOURCES) else rules_in(fd, prefix, names)
        if rules:
            ruled = _digest((ruled, prefix, [(name, octets(text)) for name, text in sorted(rules.items())]))
        scope = above.enter(prefix[:-1].rpartition("/")[2], rules) if above else matcher.root(rules)
        if self._part is not None and not whole:
            whole = prefix in self._part.all
            if not whole:
                self._walk_part(fd, prefix, listed, scope, ruled)
                return True
        found_here = _split(listed)
        self._listing(prefix, found_here, scope, ruled)
        for name in found_here.folders:
            self._directory(fd, name, prefix + name, scope, ruled, whole=True)
        return True

    def _walk_part(
        self, fd: int, prefix: str, listed: list[os.DirEntry[str]], scope: Scope, ruled: bytes
    ) -> None:
        """Walk one folder in a scan that visits only some folders (`PartialWalk`). If the folder is one of
        them, its files are scanned. Then the walk enters the subfolders that it has to visit, and those that
        lead to such folders."""
        part = self._part
        assert part is not None  # noqa: S101 - the caller asked
        if prefix in part.files:
            contents = _split(listed)
            self._listing(prefix, contents, scope, ruled)
            for name in contents.folders:  # a folder that was entered here may have got this name
                if not scope.prune(name):
                    self._is_nameable(f"{prefix}{name}/", prefix + name, folder=True)
        below = part.on_the_way.get(prefix, set())
        there = set()
        for entry in listed:
            if entry.name not in below:
                continue
            if not entry.is_dir(follow_symlinks=False):
                raise WatcherMistaken  # what took the folder's place may be what svc cannot carry
            there.add(entry.name)
        for name in below:
            entered = name in there and self._directory(fd, name, prefix + name, scope, ruled, whole=False)
            if not entered and f"{prefix}{name}/" not in part.all:
                raise WatcherMistaken

    def _listing(self, prefix: str, contents: _Contents, scope: Scope, ruled: bytes) -> None:
        """Scan the files of the folder `prefix`. `contents`: the entries of the folder; `ruled`: digest of
        its ignore rules."""
        if contents.linked:
            self._require_rescan(prefix, "files")
        if not contents.files:
            return
        self._passed.add(prefix)
        seen = self._seen.get(prefix)
        mark = _mark(ruled, contents.files)
        if seen is not None and mark and seen.mark == mark:
            self.scan.add(prefix, seen)
        else:
            self._compare(prefix, map(_Listed._make, contents.files), scope, mark, seen)

    def _compare(
        self, prefix: str, files: Iterable[_Listed], scope: Scope, mark: bytes, seen: RecordedFolder | None
    ) -> None:
        """Compare the files of the folder `prefix` with its recorded files (`seen`), and hash those that may
        have changed. `mark`: the present digest of the folder's listing and rules. It is recorded, unless a
        file of the folder must be examined on every scan."""
        recorded = {file.path: file for file in seen.stats()} if seen else {}
        stats: list[Stat] = []
        plain = True
        for listed in files:
            path = prefix + listed.name
            if scope.is_ignored(listed.name, False):
                plain = False  # it may become tracked, which the listing does not show
                if not self._tracked.tracks(path):
                    self._ignore(prefix)
                    continue
            cached = recorded.get(path)
            if cached is not None and _is_unchanged(cached, listed):
                stats.append(cached)
                continue
            stat = self._hash(prefix, path, listed, cached is None)
            if stat is None:
                plain = False
                continue
            stats.append(stat)
            plain = plain and is_trusted(stat)
            self._changes.fresh.append(stat)
        self.scan.add(prefix, stats)
        self._changes.gone.extend(recorded.keys() - {stat.path for stat in stats})
        self._record(prefix, RecordedFolder.of(stats, mark if plain else b""), seen)

    def _record(self, prefix: str, now: RecordedFolder, before: RecordedFolder | None) -> None:
        if not now.same_as(before):
            self._changes.folders[prefix] = now

    def _directory(self, above: int, name: str, path: str, scope: Scope, ruled: bytes, whole: bool) -> bool:
        """Walk the folder `name` of the open directory `above`. Returns False if it is ignored or cannot be
        opened."""
        prefix, pruned = path + "/", scope.prune(name)
        if pruned and not self._tracked.tracks_below(path):
            self._ignore(prefix)
            return False
        if prefix not in self._seen and not self._is_nameable(prefix, path, folder=True):
            return False
        try:
            fd = os.open(name, LISTED, dir_fd=above)
        except FileNotFoundError:
            return False
        except OSError as error:
            self._skip(prefix, path, "unreadable", folder=True, detail=error.strerror or "")
            return False
        if pruned:
            self._require_rescan(prefix, "all")  # the watcher follows the ignore rules only
        try:
            return self._folder(fd, prefix, scope, ruled, whole)
        finally:
            os.close(fd)

    def _hash(self, prefix: str, path: str, listed: _Listed, new: bool) -> Stat | None:
        """Hash a file whose stat differs from the recorded one. Returns None if the file must be skipped.
        `new`: the record does not have the file at all."""
        if new and not self._is_nameable(prefix, path):
            return None
        if not stat.S_ISREG(listed.mode):
            self._skip(prefix, path, "symlink" if stat.S_ISLNK(listed.mode) else "special")
            return None
        try:
            hashed = hash_file(self._files, path, self._sinks_new if new else self._sinks_changed)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._skip(prefix, path, "unreadable", detail=error.strerror or "")
            return None
        self.scan.bytes_hashed += hashed.size
        return hashed

    def _is_nameable(self, prefix: str, path: str, folder: bool = False) -> bool:
        fault = fault_of(path)
        if fault:
            self._skip(prefix, path, fault, folder)
        return fault is None

    # --- what is left out, noted with the folder it belongs to: a folder's own fate with that folder

    def _exclusions_of(self, prefix: str) -> Exclusions:
        return self.scan.exclusions.setdefault(prefix, Exclusions())

    def _ignore(self, prefix: str) -> None:
        self._exclusions_of(prefix).ignored += 1

    def _require_rescan(self, prefix: str, again: Rescan) -> None:
        aside = self._exclusions_of(prefix)
        aside.rescan = aside.rescan if aside.rescan == "all" else again

    def _skip(self, prefix: str, path: str, reason: str, folder: bool = False, detail: str = "") -> None:
        """Record the skipped entry at `path` in the exclusions of the folder `prefix`. `folder`: whether the
        entry is a folder. `detail`: text to add to the `reason`."""
        text = os.fsencode(path).decode("utf-8", "backslashreplace")
        aside = self._exclusions_of(prefix)
        aside.hidden.append(os.fsencode(path + "/" if folder else path))
        aside.skipped.append(Skipped(terminal_safe(text), f"{reason}: {detail}" if detail else reason))


def _mark(ruled: bytes, files: list[tuple[Any, ...]]) -> bytes:
    """The mark of a folder: a digest of its listing `files` and of its ignore rules, whose digest is `ruled`.
    It is b"" if a name is not UTF-8."""
    try:
        return _digest((ruled, files))
    except UnicodeEncodeError:
        return b""


def _digest(value: object) -> bytes:
    return blake3(_ENCODE(value))


_ENCODE = msgspec.msgpack.Encoder().encode
_BUILT_IN = _digest(matcher.DEFAULTS)


def _split(listed: list[os.DirEntry[str]]) -> _Contents:
    """The entries of a directory, divided into folders and files. Entries that have vanished since the
    listing are left out."""
    folders: list[str] = []
    files: list[tuple[Any, ...]] = []
    linked = False
    for entry in listed:
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.name)
            continue
        try:
            info = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if info.st_nlink > 1:
            linked = True
        files.append(
            (entry.name, info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)
        )
    return _Contents(folders, files, linked)


def _is_unchanged(cached: Stat, listed: _Listed) -> bool:
    """Whether the listed file certainly still has the content that was hashed when `cached` was recorded."""
    return listed[2:] == cached[1:5] and stat.S_ISREG(listed.mode) and is_trusted(cached)
