"""The watched folders of a working copy, and when each of them last changed.

Every folder that the ignore rules allow is watched. There are two kinds of changes: the folder's own files
changed, or anything below the folder may have changed, because the folder appeared, vanished, or got other
rules. One running number (serial) counts all changes. A change of the second kind is recorded only when
everything below the folder is watched, so that no later change is missed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from localstore.core.errors import TooLarge
from localstore.core.ignore import matcher
from localstore.core.ignore.matcher import SOURCES, Scope
from localstore.core.paths import parents
from localstore.errors import NotLinked
from localstore.folder.identity import Identity, identify
from localstore.folder.link import FOLDER
from localstore.folder.walk_rules import LISTED, NESTED, fault_of, rules_in
from localstore.watch.inotify import (
    ATTRIB,
    CREATE,
    IGNORED,
    IS_DIRECTORY,
    ITSELF,
    OVERFLOW,
    UNMOUNT,
    Inotify,
    InotifyEvent,
)

_CLOSED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM)  # a scan reports these
REMEMBERED = 10_000  # folders whose last change is remembered; a question about older ones gets `known` False


class Hears(Protocol):
    """Receives saves in watched folders, by path."""

    def file(self, path: str, mask: int) -> None:
        """Called when a file, or anything else that is not a folder, has changed in a watched folder. `mask`:
        the mask of the inotify event."""

    def below(self, prefix: str) -> None:
        """Called when anything below this folder may have changed. `prefix`: its path with a trailing slash,
        "" for the root."""


class EventsLost(Exception):
    """The queue of events overflowed, so it is unknown what changed."""


class WatcherEnded(Exception):
    """The watcher must end; the message is the reason."""


class _Node:
    """A watched folder. `prefix`: its path with a trailing slash. `scope`: the ignore rules inside it.
    `below`: the watched folders in it. `foreign`: it is a nested repository. Changes in a nested
    repository are ignored, except when it ceases to be one."""

    __slots__ = ("below", "foreign", "prefix", "scope", "watch")

    def __init__(self, prefix: str, watch: int, scope: Scope) -> None:
        self.prefix, self.watch, self.scope = prefix, watch, scope
        self.below: dict[str, _Node] = {}
        self.foreign = False


class WatchedTree:
    """The watched folders of the linked `folder`. No descriptor of the folder stays open, so that its file
    system can be unmounted. `tracked_below`: returns whether an ignored folder contains tracked files.
    Such a folder is watched too."""

    def __init__(
        self,
        folder: Path,
        inotify: Inotify,
        hears: Hears | None = None,
        tracked_below: Callable[[str], bool] = lambda folder: False,
    ) -> None:
        self._folder, self._inotify, self._hears = folder, inotify, hears
        self._tracked_below = tracked_below
        self._by_watch: dict[int, _Node] = {}
        self._itself, self._link = _identity(folder), _link_of(folder)
        self.serial = 0
        self._floor = 0
        self._stale: set[str] = set()
        self._files = _ChangeLog()
        self._all = _ChangeLog()
        self._top = self._watch_top()

    def __len__(self) -> int:
        return len(self._by_watch)

    def process_events(self) -> None:
        """Handle the queued events. Raises EventsLost, WatcherEnded, NotWatchable."""
        for event in self._inotify.events():
            self._process(event)
        stale, self._stale = self._stale, set()
        for prefix in sorted(stale):
            if not (prefix and "" in stale) and not any(
                f"{above}/" in stale for above in parents(prefix[:-1])
            ):
                self._reload(prefix)

    def since(self, serial: int) -> tuple[list[str], list[str]] | None:
        """The folders that changed after the change with the number `serial`, as paths with a trailing slash:
        (folders whose own files changed, folders to scan with everything below). None if changes of that time
        are not recorded any more."""
        if not self._floor <= serial <= self.serial:
            return None
        return list(self._files.since(serial)), list(self._all.since(serial))

    def still_there(self) -> None:
        """Raises WatcherEnded if the folder is no longer at its path."""
        if self._itself is None or _identity(self._folder) != self._itself:
            raise WatcherEnded("the folder was moved or deleted")

    # --- events

    def _process(self, event: InotifyEvent) -> None:
        if event.mask & OVERFLOW:
            raise EventsLost
        node = self._by_watch.get(event.watch)
        if node is None:
            return  # the folder vanished, which was noted
        if event.mask & UNMOUNT:
            raise WatcherEnded("its file system was unmounted")
        if event.mask & IGNORED:
            del self._by_watch[event.watch]
        if event.name:
            self._entry(node, os.fsdecode(event.name), event.mask)
        elif event.mask & (ITSELF | IGNORED):
            if node is self._top:
                raise WatcherEnded("the folder was moved or deleted")
            self._stale.add(node.prefix)  # the event has no name, and another one may spell it in other case
        elif node is self._top and event.mask & ATTRIB:
            self._stale.add("")

    def _entry(self, node: _Node, name: str, mask: int) -> None:
        lower = name.lower()  # a case-insensitive file system may report either case
        if node is self._top and lower == FOLDER and _link_of(self._folder) != self._link:
            raise WatcherEnded("the folder is not linked any more")
        if lower in NESTED and node is not self._top:
            self._stale.add(node.prefix)
        elif node.foreign:
            return
        elif lower in SOURCES:
            self._stale.add(node.prefix)  # one save is several events
        elif not mask & IS_DIRECTORY:
            self._note_change(self._files, node.prefix)
            if self._hears is not None:
                self._hears.file(node.prefix + name, mask)
        elif not (mask & CREATE and name in node.below):  # otherwise it was found before its event
            self._rewatch(node, name)

    def _note_change(self, log: _ChangeLog, prefix: str) -> None:
        self.serial += 1
        log.note(prefix, self.serial)
        if log is self._all and self._hears is not None:
            self._hears.below(prefix)
        if len(log) > REMEMBERED:
            self._floor = max(self._floor, log.forget_older_half())

    # --- which folders are watched

    def _watch_top(self) -> _Node:
        opened = self._open_top()
        watch = self._inotify.add(opened)
        if watch is None:
            os.close(opened)
            raise WatcherEnded("the folder cannot be read")
        top = self._by_watch[watch] = _Node("", watch, matcher.root(self._rules(opened, "")))
        self._descend(top, opened)
        return top

    def _reload(self, prefix: str) -> None:
        """Watch a folder anew, because its ignore rules changed, or because it became or ceased to be a
        nested repository."""
        if not prefix:
            self._drop(self._top)
            self._top = self._watch_top()
            self._note_change(self._all, "")
            return
        above: _Node | None = self._top
        *names, last = prefix[:-1].split("/")
        for name in names:
            above = above.below.get(name) if above else None
        if above is not None:  # otherwise it vanished meanwhile, which was noted
            self._rewatch(above, last)

    def _rewatch(self, above: _Node, name: str) -> None:
        """Watch the folder `name` in the folder `above` anew, because it appeared, vanished or got other
        rules. Record that anything below it may have changed."""
        removed = above.below.pop(name, None)
        if removed is not None:
            self._drop(removed)
        prefix = f"{above.prefix}{name}/"
        if self._is_allowed(above, name) and fault_of(prefix[:-1]) is None:
            opened = self._open(prefix)
            if opened is not None:
                self._enter(above, name, opened)
        self._note_change(self._all, prefix)

    def _enter(self, above: _Node, name: str, opened: int) -> None:
        """Watch the folder `name` in the folder `above`, and everything below it. `opened`: a descriptor of
        the folder, which this method closes."""
        watch = self._inotify.add(opened)
        if watch is None:
            os.close(opened)
            return
        prefix = f"{above.prefix}{name}/"
        scope = above.scope.enter(name, self._rules(opened, prefix))
        node = above.below[name] = self._by_watch[watch] = _Node(prefix, watch, scope)
        self._descend(node, opened)

    def _descend(self, node: _Node, opened: int) -> None:
        """Watch the folders below `node`. `node` itself is already watched, so that no folder can appear in
        it unnoticed."""
        try:
            with os.scandir(opened) as listed:
                entries = list(listed)
            if node.prefix and any(entry.name in NESTED for entry in entries):
                node.foreign = True
                return
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False) or not self._is_allowed(node, entry.name):
                    continue
                if fault_of(node.prefix + entry.name) is None:
                    below = _open_below(entry.name, opened)
                    if below is not None:
                        self._enter(node, entry.name, below)
        except OSError as error:
            if error.errno not in _CLOSED:
                raise
        finally:
            os.close(opened)

    def _is_allowed(self, above: _Node, name: str) -> bool:
        return not above.scope.prune(name) or self._tracked_below(above.prefix + name)

    def _drop(self, node: _Node) -> None:
        for below in node.below.values():
            self._drop(below)
        if self._by_watch.get(node.watch) is node:  # otherwise it was found elsewhere since, or is gone
            del self._by_watch[node.watch]
            self._inotify.remove(node.watch)

    def _open_top(self) -> int:
        try:
            opened = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise WatcherEnded(f"the folder cannot be read: {error.strerror}") from None
        status = os.fstat(opened)
        if (status.st_dev, status.st_ino) != self._itself:
            os.close(opened)
            raise WatcherEnded("the folder was moved or deleted")
        return opened

    def _open(self, prefix: str) -> int | None:
        """Open a folder without following links, and return the descriptor. None if this fails."""
        opened: int | None = self._open_top()
        for name in prefix[:-1].split("/"):
            above, opened = opened, None if opened is None else _open_below(name, opened)
            if above is not None:
                os.close(above)
        return opened

    def _rules(self, opened: int, prefix: str) -> dict[str, str]:
        try:
            return rules_in(opened, prefix, SOURCES)
        except TooLarge:
            return {}  # a scan fails until the file is shortened


class _ChangeLog:
    """The folders that changed, in the order of their last changes. For each folder, the number (serial) of
    that change is stored."""

    def __init__(self) -> None:
        self._serials: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._serials)

    def note(self, prefix: str, serial: int) -> None:
        self._serials.pop(prefix, None)
        self._serials[prefix] = serial

    def since(self, serial: int) -> Iterator[str]:
        for prefix, changed_at in reversed(self._serials.items()):
            if changed_at <= serial:
                return
            yield prefix

    def forget_older_half(self) -> int:
        """Drop the older half of the recorded changes. Returns the number (serial) of the newest one that was
        dropped."""
        entries = list(self._serials.items())
        half = len(entries) // 2
        self._serials = dict(entries[half:])
        return entries[half - 1][1]


def _open_below(name: str, above: int) -> int | None:
    try:
        return os.open(name, LISTED, dir_fd=above)
    except OSError as error:
        if error.errno not in _CLOSED:
            raise
        return None


def _identity(path: Path) -> tuple[int, int] | None:
    """(device, inode) of the file or folder at the path. None if nothing is there."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _link_of(folder: Path) -> Identity | None:
    """The identity of the linked folder; None if the folder is not linked to a repository."""
    try:
        return identify(folder)
    except (NotLinked, OSError):
        return None
