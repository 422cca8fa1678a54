"""The tree of the folder's last seal, stored as directory objects. With them the digest of the next tree can
be computed from the changes alone."""

from __future__ import annotations

from collections.abc import Mapping

from localstore.core import tree
from localstore.core.encoding import unb64u
from localstore.core.errors import Invalid
from localstore.core.model.seal import PayloadMissing
from localstore.core.tree import TreeEntry
from localstore.core.tree.build import NONE_HIDDEN
from localstore.core.tree.read import Change
from localstore.record.database import SealedFile, SealedTree
from localstore.sync.working_copy import WorkingCopy

Changes = Mapping[str, SealedFile | None]


def tree_after(
    copy: WorkingCopy, changes: Changes, expected: bytes, opaque: tree.Hidden = NONE_HIDDEN
) -> SealedTree | None:
    """The last seal's tree with `changes` (path → file, None to remove it). Returns None if its root digest
    is not `expected`. `opaque`: entries of the last seal's tree that are known only as digests."""
    candidate = _update_tree(copy, changes)
    if candidate is None or candidate.root != expected:  # the record is only a shortcut: the files decide
        candidate = _rebuild_tree(copy, changes, opaque)
    return candidate if candidate.root == expected else None


def _update_tree(copy: WorkingCopy, changes: Changes) -> SealedTree | None:
    """The last seal's tree with the changes, computed from its stored directories. None if some directories
    are missing or damaged."""
    root = copy.db.sealed_root()
    if root is None:
        return None
    read: dict[bytes, bytes] = {}

    def load(digests: list[bytes]) -> dict[bytes, bytes]:
        raws = copy.db.directories(digests)
        read.update(raws)
        return raws

    steps = tree.update(root, {path: entry_of(file) for path, file in changes.items()}, _key(copy))
    try:
        built = tree.run(steps, load)
    except (PayloadMissing, Invalid):
        return None
    return SealedTree(built.root, built.directories, read.keys())


def _rebuild_tree(copy: WorkingCopy, changes: Changes, opaque: tree.Hidden) -> SealedTree:
    """The last seal's tree with the changes, built anew from all files of that seal. `opaque`: entries that
    are known only as digests."""
    files = copy.db.read_sealed()
    for path, file in changes.items():
        if file is None:
            files.pop(path, None)
        else:
            files[path] = file
    built = tree.build({path: TreeEntry(*file) for path, file in files.items()}, _key(copy), opaque)
    return SealedTree(built.root, built.directories, None)


def changes_between(base: Mapping[str, SealedFile], side: Mapping[str, SealedFile]) -> dict[str, Change]:
    """The changes, by path, from the files of one seal to those of another."""
    return {
        path: (entry_of(base.get(path)), entry_of(side.get(path)))
        for path in base.keys() | side.keys()
        if base.get(path) != side.get(path)
    }


def entry_of(file: SealedFile | None) -> TreeEntry | None:
    """The file as an entry of a tree; None if there is no file."""
    return None if file is None else TreeEntry(*file)


def _key(copy: WorkingCopy) -> bytes:
    return unb64u(copy.db.text("tree_key") or "", 32)
