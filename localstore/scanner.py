"""What is in a working copy: one walk, with a stat cache that never trusts a file it may have raced with."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from localstore.core import ignore, paths
from localstore.core.encoding import digest as blake3
from localstore.core.errors import PathInvalid, TooLarge
from localstore.core.ignore import SOURCES, Scope
from localstore.core.limits import IGNORE_FILE_BYTES
from localstore.core.paths import terminal_safe
from localstore.core.wildmatch import octets
from localstore.cutting import CutLists
from localstore.files import Files
from localstore.link import FOLDER
from localstore.stats import Seen, Stat, hashed, trusted

NESTED = (".git", FOLDER)
LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Reason = Literal["symlink", "special", "unreadable", "not UTF-8", "unsafe name", "nested repository"]


class Skipped(msgspec.Struct, frozen=True):
    """Something the walk left out. `path` is fit for a terminal; `cap` is the limit it is over, in bytes;
    `remedy` says what lets it in, where there is something."""

    path: str
    reason: str
    size: int = 0
    cap: int | None = None
    remedy: str = ""


class Scan:
    """`ignored` counts entries left out by rules. `hidden`: paths, and folders ending in `/`, whose contents
    the walk could not see: what lies there is unknown, not removed."""

    def __init__(self) -> None:
        self.skipped: list[Skipped] = []
        self.ignored = 0
        self.hidden: set[str] = set()
        self.bytes_hashed = 0
        self._folders: dict[str, Seen | list[Stat]] = {}
        self._opened: dict[str, dict[str, Stat]] = {}

    def add(self, prefix: str, folder: Seen | list[Stat]) -> None:
        """Take in the files of one folder; `prefix` is its path with a slash behind."""
        self._folders[prefix] = folder

    def find(self, path: str) -> Stat | None:
        """What `files` has of one path, at the price of its folder."""
        prefix = path[: path.rfind("/") + 1]
        if prefix not in self._opened:
            self._opened[prefix] = {one.path: one for one in _stats(self._folders.get(prefix, []))}
        return self._opened[prefix].get(path)

    @cached_property
    def files(self) -> dict[str, Stat]:
        """Path → what it was when the walk passed."""
        found: dict[str, Stat] = {}
        for folder in self._folders.values():
            found.update((one.path, one) for one in _stats(folder))
        return found

    def unknown(self, path: str) -> bool:
        """Whether the walk cannot say if the file is still there."""
        if not self.hidden:
            return False
        return path in self.hidden or any(f"{above}/" in self.hidden for above in paths.parents(path))


def _stats(folder: Seen | list[Stat]) -> list[Stat]:
    return folder.stats() if isinstance(folder, Seen) else folder


class News(NamedTuple):
    """What a walk found that the records did not know. `folders`: those to record, None to forget, by their
    path with a slash behind; `fresh`: files that are new or changed; `gone`: paths without a file."""

    folders: dict[str, Seen | None]
    fresh: list[Stat]
    gone: list[str]


class Tracked(Protocol):
    """Which paths the copy knows: they are looked at even where a rule would ignore them."""

    def tracks(self, path: str) -> bool:
        """Whether the file is known."""

    def tracks_below(self, folder: str) -> bool:
        """Whether any file below the directory is known."""


def scan(
    files: Files, seen: Mapping[str, Seen], tracked: Tracked, lists: CutLists | None = None
) -> tuple[Scan, News]:
    """Walk the working copy. `seen`: what earlier walks recorded, by folder. `lists` is given the chunks of
    the large files that are hashed."""
    walker = _Walker(files, seen, tracked, lists)
    walker.run()
    files.forget()
    return walker.scan, walker.news()


class _Listed(NamedTuple):
    """A file as its folder lists it: what tells whether it changed. Times are nanoseconds."""

    name: str
    mode: int
    size: int
    mtime: int
    ctime: int
    inode: int


class _Walker:
    """Most folders are as the last walk left them. Their listing, with the rules in effect, then has the mark
    that was recorded, and no file of theirs is looked at further."""

    def __init__(
        self, files: Files, seen: Mapping[str, Seen], tracked: Tracked, lists: CutLists | None
    ) -> None:
        self._files, self._seen, self._tracked, self._lists = files, seen, tracked, lists
        self._passed: set[str] = set()
        self._news = News({}, [], [])
        self.scan = Scan()

    def run(self) -> None:
        fd = os.open(self._files.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._folder(fd, "", None, _BUILT_IN)
        finally:
            os.close(fd)

    def news(self) -> News:
        """What to record; folders that were not met count as gone."""
        for prefix in self._seen.keys() - self._passed:
            self._news.folders[prefix] = None
            self._news.gone.extend(one.path for one in self._seen[prefix].stats())
        return self._news

    def _folder(self, fd: int, prefix: str, above: Scope | None, ruled: bytes) -> None:
        """One open directory; `prefix` is its path with a slash behind, empty for the root. `ruled` stands
        for the rules of the folders above."""
        try:
            with os.scandir(fd) as found:
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
        rules = {} if names.isdisjoint(SOURCES) else self._rules(fd, prefix, names)
        if rules:
            ruled = _digest((ruled, prefix, [(name, octets(text)) for name, text in sorted(rules.items())]))
        scope = above.enter(prefix[:-1].rpartition("/")[2], rules) if above else ignore.root(rules)
        folders, files = _told_apart(listed)
        if files:
            self._listing(prefix, files, scope, ruled)
        for name in folders:
            self._directory(fd, name, prefix + name, scope, ruled)

    def _listing(self, prefix: str, files: list[tuple[Any, ...]], scope: Scope, ruled: bytes) -> None:
        """The files of one folder."""
        self._passed.add(prefix)
        seen = self._seen.get(prefix)
        mark = _mark(ruled, files)
        if seen is not None and mark and seen.mark == mark:
            self.scan.add(prefix, seen)
        else:
            self._compare(prefix, map(_Listed._make, files), scope, mark, seen)

    def _compare(
        self, prefix: str, files: Iterable[_Listed], scope: Scope, mark: bytes, seen: Seen | None
    ) -> None:
        """A folder that is new, changed, or holds what must be looked at each time."""
        known = {one.path: one for one in seen.stats()} if seen else {}
        stats: list[Stat] = []
        plain = True
        for listed in files:
            path = prefix + listed.name
            if scope.ignored(listed.name, False):
                plain = False  # whether it is tracked may change, and no listing tells
                if not self._tracked.tracks(path):
                    self.scan.ignored += 1
                    continue
            cached = known.get(path)
            stat = cached if cached and _same(cached, listed) else self._read(path, listed)
            if stat is None:
                plain = False
                continue
            stats.append(stat)
            plain = plain and trusted(stat)
            if stat is not cached:
                self._news.fresh.append(stat)
        self.scan.add(prefix, stats)
        self._news.gone.extend(known.keys() - {stat.path for stat in stats})
        self._record(prefix, Seen.of(stats, mark if plain else b""), seen)

    def _record(self, prefix: str, now: Seen, before: Seen | None) -> None:
        if now != before:
            self._news.folders[prefix] = now

    def _directory(self, above: int, name: str, path: str, scope: Scope, ruled: bytes) -> None:
        if scope.prune(name) and not self._tracked.tracks_below(path):
            self.scan.ignored += 1
            return
        if path + "/" not in self._seen and not self._nameable(path):
            return
        try:
            fd = os.open(name, LISTED, dir_fd=above)
        except FileNotFoundError:
            return
        except OSError as error:
            self._skip(path, "unreadable", folder=True, detail=error.strerror or "")
            return
        try:
            self._folder(fd, path + "/", scope, ruled)
        finally:
            os.close(fd)

    def _read(self, path: str, listed: _Listed) -> Stat | None:
        """A file that is not recorded as it is, read; None if it cannot be taken."""
        if not self._nameable(path):
            return None
        if not stat.S_ISREG(listed.mode):
            self._skip(path, "symlink" if stat.S_ISLNK(listed.mode) else "special")
            return None
        try:
            found = hashed(self._files, path, self._lists)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._skip(path, "unreadable", detail=error.strerror or "")
            return None
        self.scan.bytes_hashed += found.size
        return found

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

    def _rules(self, folder: int, prefix: str, names: Collection[str]) -> dict[str, str]:
        texts = {}
        for source in [one for one in SOURCES if one in names]:
            path = prefix + source
            try:
                fd = os.open(
                    source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
                )
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


def _mark(ruled: bytes, files: list[tuple[Any, ...]]) -> bytes:
    """Stands for these files under these rules; empty where a name is not UTF-8."""
    try:
        return _digest((ruled, files))
    except UnicodeEncodeError:
        return b""


def _digest(value: object) -> bytes:
    return blake3(_ENCODE(value))


_ENCODE = msgspec.msgpack.Encoder().encode
_BUILT_IN = _digest(ignore.DEFAULTS)


def _told_apart(listed: list[os.DirEntry[str]]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The names of the directories, and the rest as members of `_Listed`: plain tuples, because there are
    many. What vanished meanwhile is in neither."""
    folders: list[str] = []
    files: list[tuple[Any, ...]] = []
    for entry in listed:
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.name)
            continue
        try:
            info = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        files.append(
            (entry.name, info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)
        )
    return folders, files


def _same(cached: Stat, listed: _Listed) -> bool:
    """Whether the listed file is surely the one that was hashed."""
    known = (cached.size, cached.mtime, cached.ctime, cached.inode)
    return listed[2:] == known and stat.S_ISREG(listed.mode) and trusted(cached)
