"""Which folders of a working copy are watched, and when each changed last.

Watched is each folder that the rules alone let a look enter. Two words are said of a folder: its files
changed; or all below it may have, because it appeared, went, or its rules changed. Words are numbered by one
serial. "All" is said once every watch below stands: what happened before was not heard of, what happens later
is.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from localstore.core.errors import TooLarge
from localstore.core.ignore import matcher
from localstore.core.ignore.matcher import SOURCES, Scope
from localstore.core.paths import parents
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
    Event,
    Inotify,
)

_CLOSED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM)  # a look says so
REMEMBERED = 10_000  # folders whose last change is remembered; who asks about older ones is sent everywhere


class EventsLost(Exception):
    """Events were lost: nothing is known any more."""


class WatcherEnded(Exception):
    """There is nothing to watch any more; the reason, for people."""


class _Node:
    """A watched folder: `prefix` is its path with a slash behind, `scope` the rules inside it. `foreign`: it
    is a repository of its own, of which nothing counts but that it ceases to be one."""

    __slots__ = ("below", "foreign", "prefix", "scope", "watch")

    def __init__(self, prefix: str, watch: int, scope: Scope) -> None:
        self.prefix, self.watch, self.scope = prefix, watch, scope
        self.below: dict[str, _Node] = {}
        self.foreign = False


class Tree:
    """The linked `folder`, which `inotify` watches from now on. No descriptor of it stays open, so that its
    file system can be unmounted."""

    def __init__(self, folder: Path, inotify: Inotify) -> None:
        self._folder, self._inotify = folder, inotify
        self._by_watch: dict[int, _Node] = {}
        self._itself, self._link = _identity(folder), _identity(folder / FOLDER)
        self.serial = 0
        self._floor = 0
        self._stale: set[str] = set()
        self._files = _ChangeLog()
        self._all = _ChangeLog()
        self._top = self._watch_top()

    def __len__(self) -> int:
        return len(self._by_watch)

    def process_events(self) -> None:
        """Work through the queue of events. Overrun, Ended, NotWatchable."""
        for event in self._inotify.events():
            self._process(event)
        stale, self._stale = self._stale, set()
        for prefix in sorted(stale):
            if not (prefix and "" in stale) and not any(
                f"{above}/" in stale for above in parents(prefix[:-1])
            ):
                self._reload(prefix)

    def since(self, serial: int) -> tuple[list[str], list[str]] | None:
        """Folders, as paths with a slash behind, of which a word was said after `serial`: their files
        changed, or all below. None: what was said is not remembered."""
        if not self._floor <= serial <= self.serial:
            return None
        return list(self._files.since(serial)), list(self._all.since(serial))

    def still_there(self) -> None:
        """Ended unless the folder has its path as before."""
        if self._itself is None or _identity(self._folder) != self._itself:
            raise WatcherEnded("the folder was moved or deleted")

    # --- events

    def _process(self, event: Event) -> None:
        if event.mask & OVERFLOW:
            raise EventsLost
        node = self._by_watch.get(event.watch)
        if node is None:
            return  # of a folder that went, which was said
        if event.mask & UNMOUNT:
            raise WatcherEnded("its file system was unmounted")
        if event.mask & IGNORED:
            del self._by_watch[event.watch]
        if event.name:
            self._entry(node, os.fsdecode(event.name), event.mask)
        elif event.mask & (ITSELF | IGNORED):
            if node is self._top:
                raise WatcherEnded("the folder was moved or deleted")
            self._stale.add(node.prefix)  # not told by its name: that may have been spelt in other letters
        elif node is self._top and event.mask & ATTRIB:
            self._stale.add("")

    def _entry(self, node: _Node, name: str, mask: int) -> None:
        lower = name.lower()  # where letters of both cases are one, either may be told
        if node is self._top and lower == FOLDER and _identity(self._folder / FOLDER) != self._link:
            raise WatcherEnded("the folder is not linked any more")
        if lower in NESTED and node is not self._top:
            self._stale.add(node.prefix)
        elif node.foreign:
            return
        elif lower in SOURCES:
            self._stale.add(node.prefix)  # one save is several events
        elif not mask & IS_DIRECTORY:
            self._note_change(self._files, node.prefix)
        elif not (mask & CREATE and name in node.below):  # else it was met before its event
            self._rewatch(node, name)

    def _note_change(self, said: _ChangeLog, prefix: str) -> None:
        self.serial += 1
        said.note(prefix, self.serial)
        if len(said) > REMEMBERED:
            self._floor = max(self._floor, said.forget_older_half())

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
        """The rules of a folder changed, or whether it is a repository of its own."""
        if not prefix:
            self._drop(self._top)
            self._top = self._watch_top()
            self._note_change(self._all, "")
            return
        above: _Node | None = self._top
        *names, last = prefix[:-1].split("/")
        for name in names:
            above = above.below.get(name) if above else None
        if above is not None:  # else it went meanwhile, which was said
            self._rewatch(above, last)

    def _rewatch(self, above: _Node, name: str) -> None:
        """A folder came, went, or is to be watched anew; all below it is said to have changed."""
        former = above.below.pop(name, None)
        if former is not None:
            self._drop(former)
        prefix = f"{above.prefix}{name}/"
        if not above.scope.prune(name) and fault_of(prefix[:-1]) is None:
            opened = self._open(prefix)
            if opened is not None:
                self._enter(above, name, opened)
        self._note_change(self._all, prefix)

    def _enter(self, above: _Node, name: str, opened: int) -> None:
        """Watch an open folder and what is below; the descriptor is closed."""
        watch = self._inotify.add(opened)
        if watch is None:
            os.close(opened)
            return
        prefix = f"{above.prefix}{name}/"
        scope = above.scope.enter(name, self._rules(opened, prefix))
        node = above.below[name] = self._by_watch[watch] = _Node(prefix, watch, scope)
        self._descend(node, opened)

    def _descend(self, node: _Node, opened: int) -> None:
        """Go on below a folder whose watch stands, so that nothing appears unheard of."""
        try:
            with os.scandir(opened) as listed:
                entries = list(listed)
            if node.prefix and any(entry.name in NESTED for entry in entries):
                node.foreign = True
                return
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False) or node.scope.prune(entry.name):
                    continue
                if fault_of(node.prefix + entry.name) is None:
                    below = _opened(entry.name, opened)
                    if below is not None:
                        self._enter(node, entry.name, below)
        except OSError as error:
            if error.errno not in _CLOSED:
                raise
        finally:
            os.close(opened)

    def _drop(self, node: _Node) -> None:
        for below in node.below.values():
            self._drop(below)
        if self._by_watch.get(node.watch) is node:  # else it was met again elsewhere, or is gone
            del self._by_watch[node.watch]
            self._inotify.remove(node.watch)

    def _open_top(self) -> int:
        try:
            opened = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise WatcherEnded(f"the folder cannot be read: {error.strerror}") from None
        found = os.fstat(opened)
        if (found.st_dev, found.st_ino) != self._itself:
            os.close(opened)
            raise WatcherEnded("the folder was moved or deleted")
        return opened

    def _open(self, prefix: str) -> int | None:
        """The folder itself, opened without following a link on the way."""
        opened: int | None = self._open_top()
        for name in prefix[:-1].split("/"):
            above, opened = opened, None if opened is None else _opened(name, opened)
            if above is not None:
                os.close(above)
        return opened

    def _rules(self, opened: int, prefix: str) -> dict[str, str]:
        try:
            return rules_in(opened, prefix, SOURCES)
        except TooLarge:
            return {}  # a look fails at it, until it changes


class _ChangeLog:
    """What was said of folders last, the oldest first."""

    def __init__(self) -> None:
        self._serials: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._serials)

    def note(self, prefix: str, serial: int) -> None:
        self._serials.pop(prefix, None)
        self._serials[prefix] = serial

    def since(self, serial: int) -> Iterator[str]:
        for prefix, said in reversed(self._serials.items()):
            if said <= serial:
                return
            yield prefix

    def forget_older_half(self) -> int:
        """Forget the older half; up to which serial."""
        kept = list(self._serials.items())
        half = len(kept) // 2
        self._serials = dict(kept[half:])
        return kept[half - 1][1]


def _opened(name: str, above: int) -> int | None:
    try:
        return os.open(name, LISTED, dir_fd=above)
    except OSError as error:
        if error.errno not in _CLOSED:
            raise
        return None


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode; None where nothing is."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
