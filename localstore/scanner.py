"""What is in a working copy: one walk, with a stat cache that never trusts a file it may have raced with."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple, Protocol

import msgspec

from localstore.core import ignore, paths
from localstore.core.classify import Classifier
from localstore.core.errors import PathInvalid, TooLarge
from localstore.core.ignore import SOURCES, Scope
from localstore.core.limits import BLOB_FILE, IGNORE_FILE_BYTES
from localstore.core.paths import terminal_safe
from localstore.cutting import CutLists, cut
from localstore.db import Stat
from localstore.files import Files
from localstore.link import FOLDER

RACY = 20_000_000  # ns: a file changed this shortly before it was hashed may have changed since, unseen
RACY_COARSE = 2_000_000_000  # where the file system keeps whole seconds
SECOND = 1_000_000_000
NESTED = (".git", FOLDER)

Reason = Literal["symlink", "special", "unreadable", "not UTF-8", "unsafe name", "nested repository"]


class Skipped(msgspec.Struct, frozen=True):
    """Something the walk left out. `path` is fit for a terminal; `cap` is the limit it is over, in bytes."""

    path: str
    reason: str
    size: int = 0
    cap: int | None = None


class Scan(msgspec.Struct):
    """`files`: path → what it is. `ignored` counts entries left out by rules. `hidden`: paths, and folders
    ending in `/`, whose contents the walk could not see: what lies there is unknown, not removed."""

    files: dict[str, Stat]
    skipped: list[Skipped]
    ignored: int
    hidden: set[str]
    bytes_hashed: int = 0

    def unknown(self, path: str) -> bool:
        """Whether the walk cannot say if the file is still there."""
        if not self.hidden:
            return False
        return path in self.hidden or any(f"{above}/" in self.hidden for above in paths.parents(path))


class Hashed(NamedTuple):
    """Changes for the stat cache."""

    fresh: list[Stat]
    gone: list[str]


class Tracked(Protocol):
    """Which paths the copy knows: they are looked at even where a rule would ignore them."""

    def tracks(self, path: str) -> bool:
        """Whether the file is known."""

    def tracks_below(self, folder: str) -> bool:
        """Whether any file below the directory is known."""


def scan(
    files: Files, cache: Mapping[str, Stat], tracked: Tracked, lists: CutLists | None = None
) -> tuple[Scan, Hashed]:
    """Walk the working copy. `lists` is given the chunks of the large files that are hashed."""
    walker = _Walker(files, cache, tracked, lists)
    walker.run()
    files.forget()
    found = walker.scan
    gone = [path for path in cache if path not in found.files]
    return found, Hashed(walker.fresh, gone)


def look(files: Files, path: str, cached: Stat | None = None) -> Stat | None:
    """One file as it is now; None unless a regular, readable file is there."""
    info = files.stat(path)
    if info is None or not stat.S_ISREG(info.st_mode):
        return None
    if cached is not None and _unchanged(cached, info):
        return cached
    try:
        return _hash(files, path)
    except OSError:
        return None


class _Walker:
    """Most files are in the cache, unchanged: for those the loop of `_folder` calls as little as it can."""

    def __init__(
        self, files: Files, cache: Mapping[str, Stat], tracked: Tracked, lists: CutLists | None
    ) -> None:
        self._files, self._cache, self._tracked, self._lists = files, cache, tracked, lists
        self.scan = Scan({}, [], 0, set())
        self.fresh: list[Stat] = []

    def run(self) -> None:
        self._folder(os.fspath(self._files.root), "", None)

    def _folder(self, full: str, prefix: str, above: Scope | None) -> None:
        """One directory; `prefix` is its path with a slash behind, empty for the root."""
        try:
            with os.scandir(full) as found:
                listed = list(found)
        except OSError as error:
            if not prefix:
                raise
            self._skip(prefix.rstrip("/"), "unreadable", folder=True, detail=error.strerror or "")
            return
        names = {entry.name for entry in listed}
        if prefix and not names.isdisjoint(NESTED):
            self._skip(prefix.rstrip("/"), "nested repository", folder=True)
            return
        rules = {} if names.isdisjoint(SOURCES) else self._rules(full, names)
        scope = above.enter(prefix[:-1].rpartition("/")[2], rules) if above else ignore.root(rules)
        ignored, cache, files = scope.ignored, self._cache, self.scan.files
        for entry in listed:
            name = entry.name
            path = prefix + name
            if entry.is_dir(follow_symlinks=False):
                self._directory(entry, path, scope)
                continue
            if ignored(name, False) and not self._tracked.tracks(path):
                self.scan.ignored += 1
                continue
            cached = cache.get(path)
            if cached is not None and _same(entry, cached):
                files[path] = cached
            elif cached is not None or self._nameable(path):
                self._file(entry, path)

    def _directory(self, entry: os.DirEntry[str], path: str, scope: Scope) -> None:
        if scope.prune(entry.name) and not self._tracked.tracks_below(path):
            self.scan.ignored += 1
        elif self._nameable(path):
            self._folder(entry.path, path + "/", scope)

    def _file(self, entry: os.DirEntry[str], path: str) -> None:
        """A file that is not in the cache as it is."""
        if entry.is_symlink():
            self._skip(path, "symlink")
            return
        try:
            if not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                self._skip(path, "special")
                return
            hashed = _hash(self._files, path, self._lists)
        except FileNotFoundError:
            return
        except OSError as error:
            self._skip(path, "unreadable", detail=error.strerror or "")
            return
        self.fresh.append(hashed)
        self.scan.bytes_hashed += hashed.size
        self.scan.files[path] = hashed

    def _nameable(self, path: str) -> bool:
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            self._skip(os.fsencode(path).decode("utf-8", "backslashreplace"), "not UTF-8")
            return False
        try:
            paths.check(path)
        except PathInvalid:
            self._skip(path, "unsafe name")
            return False
        return True

    def _skip(self, path: str, reason: Reason, folder: bool = False, detail: str = "") -> None:
        self.scan.hidden.add(path + "/" if folder else path)
        self.scan.skipped.append(Skipped(terminal_safe(path), f"{reason}: {detail}" if detail else reason))

    def _rules(self, full: str, names: Collection[str]) -> dict[str, str]:
        texts = {}
        for source in [one for one in SOURCES if one in names]:
            path = f"{full}/{source}"
            try:
                fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:
                continue
            with os.fdopen(fd, "rb") as file:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    continue
                data = file.read(IGNORE_FILE_BYTES + 1)
            if len(data) > IGNORE_FILE_BYTES:
                raise TooLarge(f"{terminal_safe(path)} is larger than {IGNORE_FILE_BYTES} bytes; shorten it")
            texts[source] = data.decode("utf-8", "surrogateescape")
        return texts


def _same(entry: os.DirEntry[str], cached: Stat) -> bool:
    """Whether the listed file is surely the one that was hashed."""
    try:
        info = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(info.st_mode) and _unchanged(cached, info)


def _unchanged(cached: Stat, info: os.stat_result) -> bool:
    _, size, mtime, ctime, inode, _, _, checked = cached
    if ctime != info.st_ctime_ns or mtime != info.st_mtime_ns or size != info.st_size or inode != info.st_ino:
        return False
    newest = mtime if mtime > ctime else ctime
    if newest + RACY_COARSE < checked:
        return True
    return newest + RACY < checked and not (mtime % SECOND == 0 and ctime % SECOND == 0)


def _hash(files: Files, path: str, lists: CutLists | None = None) -> Stat:
    """Read the file. Its stat is taken before the bytes, so a change while reading shows the next time."""
    checked = time.time_ns()
    fd = files.open(path)
    with os.fdopen(fd, "rb", buffering=0) as file:
        info = os.fstat(fd)
        classifier = Classifier()
        if lists is not None and info.st_size > BLOB_FILE:
            found = cut(file, classifier.feed)
            lists.keep(classifier.result().blake3, found)
        else:
            while chunk := file.read(1 << 20):
                classifier.feed(chunk)
    kind, size, digest = classifier.result()
    return Stat(path, size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, kind, digest, checked)
