"""Finds the files that git tracks in a working copy. As in git, `.gitignore` and the built-in defaults do not
exclude a tracked file; `.svcignore` and `.stignore` do."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from localstore.core.encoding import digest as blake3
from localstore.core.ignore import matcher
from localstore.core.ignore.matcher import OVER_GIT, Reason, Scope
from localstore.folder.git_index import IndexUnreadable, find_index, fingerprint, read_index
from localstore.folder.rule_files import rules_of
from localstore.folder.walk_rules import fault_of

CACHE = "git-index"  # in the record: the names of the index that was read last


class _Names(msgspec.Struct, frozen=True, array_like=True):
    """The names in git's index. `names`: sorted, each followed by NUL. `fingerprint`: fingerprint of the
    index file. `identity`: digest of the names. `fault`: why the index could not be read, "" if it could."""

    fingerprint: str
    identity: bytes
    names: bytes
    fault: str = ""


class GitTracked:
    """The files that git tracks in the folder `root`. There are none if `root` is not the top of a git work
    tree. `record`: a folder in which the names are cached between commands, because reading an index takes
    ten times as long."""

    def __init__(self, root: Path, record: Path) -> None:
        self._root, self._record = root, record
        self._read = _Names("", b"", b"")
        self._names: list[bytes] | None = None
        self._scopes: dict[str, Scope] = {}

    def refresh(self) -> None:
        """Read the index again if git has written a new one, and forget cached ignore files."""
        self._scopes = {}
        index = find_index(self._root)
        now = fingerprint(index) if index else ""
        if now == self._read.fingerprint:
            return
        self._names = None
        self._read = self._load(index, now) if index and now else _Names("", b"", b"")

    @property
    def identity(self) -> bytes:
        """Digest of the tracked names; b"" if there are none."""
        return self._read.identity

    @property
    def fault(self) -> str:
        """Why the index could not be read. "" if it was read, or if there is no index."""
        return self._read.fault

    def keeps(self, path: str) -> bool:
        """Whether git tracks this file and neither `.svcignore` nor `.stignore` excludes it."""
        if not self._read.names or not self._has(os.fsencode(path)):
            return False
        folder, _, name = path.rpartition("/")
        return not self._scope(folder).is_ignored(name, False)

    def keeps_below(self, folder: str) -> bool:
        """Whether git tracks a file below this folder that neither `.svcignore` nor `.stignore` excludes."""
        if not self._read.names:
            return False
        below = self._below(os.fsencode(folder + "/"))
        if next(below, None) is None:
            return False
        above, _, name = folder.rpartition("/")
        if self._scope(above).prune(name):
            return False
        return any(self.keeps(os.fsdecode(raw)) for raw in self._below(os.fsencode(folder + "/")))

    def left_out(self) -> Iterator[tuple[str, Reason]]:
        """Yields (path, rule) for each file that git tracks and that a rule of `.svcignore` or `.stignore`
        excludes."""
        for raw in self._all():
            folder, _, name = (path := os.fsdecode(raw)).rpartition("/")
            if fault_of(path) is not None:
                continue
            scope = self._scope(folder)
            if scope.is_ignored(name, False) and (reason := scope.explain(name, False)) is not None:
                yield path, reason

    def has_below(self, folder: str) -> bool:
        """Whether git tracks a file below this folder, even one that `.svcignore` or `.stignore` excludes."""
        prefix, names = os.fsencode(folder + "/"), self._read.names
        return names.startswith(prefix) or b"\0" + prefix in names  # without a list of all names

    def _has(self, name: bytes) -> bool:
        names = self._all()
        at = bisect_left(names, name)
        return at < len(names) and names[at] == name

    def _below(self, prefix: bytes) -> Iterator[bytes]:
        names = self._all()
        for at in range(bisect_left(names, prefix), len(names)):
            if not names[at].startswith(prefix):
                return
            yield names[at]

    def _all(self) -> list[bytes]:
        if self._names is None:
            self._names = self._read.names.split(b"\0")[:-1]
        return self._names

    def _scope(self, folder: str) -> Scope:
        """The rules of `.svcignore` and `.stignore` for a folder, even if other rules ignore that folder."""
        scope = self._scopes.get(folder)
        if scope is None:
            above, _, name = folder.rpartition("/")
            rules = rules_of(self._root, folder, OVER_GIT)
            scope = self._scope(above).enter(name, rules) if folder else matcher.root(rules, built_in=False)
            self._scopes[folder] = scope
        return scope

    def _load(self, index: Path, now: str) -> _Names:
        """The names in the index. They come from the cache if it was made from the same index, otherwise from
        the index itself. `now`: the present fingerprint of the index."""
        place = self._record / CACHE
        with suppress(OSError, msgspec.MsgspecError):
            cached = msgspec.msgpack.decode(place.read_bytes(), type=_Names)
            if cached.fingerprint == now and cached.identity == blake3(cached.names):
                return cached
        try:
            names = b"".join(name + b"\0" for name in read_index(index))
            read = _Names(now, blake3(names), names)
        except IndexUnreadable as error:
            read = _Names(now, blake3(b""), b"", str(error))
        if fingerprint(index) == now:  # else git wrote meanwhile, and these may be the names of either
            unfinished = self._record / f"{CACHE}.{os.urandom(4).hex()}"
            with suppress(OSError):
                unfinished.write_bytes(msgspec.msgpack.encode(read))
                unfinished.replace(place)
        return read


class RecordedPaths(Protocol):
    """Tells which paths the record (the client's database of the working copy) contains."""

    def tracks(self, path: str) -> bool: ...

    def tracks_below(self, folder: str) -> bool: ...


class TrackedPaths(NamedTuple):
    """Tells which files a scan includes even if an ignore rule matches them: files in the record, and files
    that git tracks."""

    known: RecordedPaths
    git: GitTracked

    def tracks(self, path: str) -> bool:
        return self.known.tracks(path) or self.git.keeps(path)

    def tracks_below(self, folder: str) -> bool:
        return self.known.tracks_below(folder) or self.git.keeps_below(folder)
