"""Directories in git's form (trees), and how the changes of a seal are applied to them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import NamedTuple

from localstore.core.errors import Invalid
from localstore.core.git.objects import EMPTY_TREE, ID_BYTES, object_id

FILE, DIRECTORY = b"100644", b"40000"
REMEMBERED = 100_000  # entries of trees that were read or made last
Path = tuple[bytes, ...]
"""A path by its segments."""


class Entry(NamedTuple):
    """A file or directory inside a directory. `id`: its git id, 20 bytes."""

    directory: bool
    id: bytes


Tree = dict[bytes, Entry]


def encode(tree: Mapping[bytes, Entry]) -> bytes:
    """The bytes of a git tree: its entries in git's order, in which a directory is compared as if its name
    ended with a slash."""
    ordered = sorted((name + b"/" if entry.directory else name, name, entry) for name, entry in tree.items())
    return b"".join(
        b"%s %s\0%s" % (DIRECTORY if entry.directory else FILE, name, entry.id) for _, name, entry in ordered
    )


def decode(raw: bytes) -> Tree:
    """Inverse of `encode`. Raises Invalid for bytes that `encode` does not write."""
    entries: Tree = {}
    at = 0
    while at < len(raw):
        end = raw.find(b"\0", at)
        mode, _, name = raw[at:end].partition(b" ")
        at = end + 1 + ID_BYTES
        if end < 0 or at > len(raw) or not name or mode not in (FILE, DIRECTORY):
            raise Invalid("this is no tree of plain files and directories")
        entries[name] = Entry(mode == DIRECTORY, raw[end + 1 : at])
    return entries


class Trees:
    """Makes the git trees of one seal from the trees of another seal. `load`: returns the bytes of a tree by
    its id; `keep`: called with the id and bytes of each new tree."""

    def __init__(self, load: Callable[[bytes], bytes], keep: Callable[[bytes, bytes], None]) -> None:
        self._load, self._keep = load, keep
        self._remembered: OrderedDict[bytes, Tree] = OrderedDict()
        self._entries = 0

    def update(self, tree: bytes, changes: Mapping[str, bytes | None]) -> bytes:
        """Apply `changes` to the directory `tree`. Returns the id of the new tree. `changes`: path → id of
        its new blob, None removes the file."""
        split = {tuple(path.encode("utf-8").split(b"/")): blob for path, blob in changes.items()}
        if not split:
            if tree == EMPTY_TREE:
                self._keep(EMPTY_TREE, b"")
            return tree
        return self._update(tree, split) or self._store({})

    def _update(self, tree: bytes | None, changes: Mapping[Path, bytes | None]) -> bytes | None:
        """The id of the directory after the changes. None if the directory has become empty."""
        entries = dict(self._read(tree)) if tree is not None else {}
        files: dict[bytes, bytes] = {}
        below: dict[bytes, dict[Path, bytes | None]] = {}
        for path, blob in changes.items():
            if len(path) > 1:
                below.setdefault(path[0], {})[path[1:]] = blob
            elif blob is not None:
                files[path[0]] = blob
            elif (old := entries.get(path[0])) is not None and not old.directory:
                del entries[path[0]]
        for name, inner in below.items():
            old = entries.pop(name, None)
            directory_id = self._update(old.id if old is not None and old.directory else None, inner)
            if directory_id is not None:
                entries[name] = Entry(True, directory_id)
        for name, blob in files.items():  # last: a directory that became a file was emptied above
            entries[name] = Entry(False, blob)
        return self._store(entries) if entries else None

    def _store(self, entries: Tree) -> bytes:
        raw = encode(entries)
        tree = object_id("tree", raw)
        self._keep(tree, raw)
        self._remember(tree, entries)
        return tree

    def _read(self, tree: bytes) -> Tree:
        if tree == EMPTY_TREE:
            return {}
        entries = self._remembered.get(tree)
        if entries is None:
            entries = decode(self._load(tree))
            self._remember(tree, entries)
        else:
            self._remembered.move_to_end(tree)
        return entries

    def _remember(self, tree: bytes, entries: Tree) -> None:
        if tree in self._remembered:
            return
        self._remembered[tree] = entries
        self._entries += len(entries)
        while self._entries > REMEMBERED and len(self._remembered) > 1:
            _, dropped = self._remembered.popitem(last=False)
            self._entries -= len(dropped)
