"""Changes a tree. Only the directories above the changed paths are read and written."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from localstore.core.errors import PathInvalid
from localstore.core.tree.build import (
    Built,
    build,
    check_path,
    deepest_first,
    parent_of,
    size_of,
    with_ancestors,
)
from localstore.core.tree.directory import (
    EMPTY_ROOT,
    FORMAT,
    Child,
    Directory,
    TreeEntry,
    directory_digest,
    encode,
    join,
)
from localstore.core.tree.drive import Known, Steps, fetch
from localstore.core.tree.read import hidden_entries, walk

_NOTHING = Directory(FORMAT, [], [])
_NONE: Mapping[str, bytes] = MappingProxyType({})


def salted_with(root: Directory, digest: bytes, key: bytes) -> bool:
    """Whether a tree was made with this tree key. `root`: its root directory; `digest`: its root digest. All
    directories of a tree have the same key."""
    return directory_digest(root, "", key) == digest


def rebuild(root: bytes, changes: Mapping[str, TreeEntry | None], key: bytes) -> Steps[Built]:
    """Make a new tree from the tree at `root` and `changes` (by path, None to remove), salted with another
    tree key. Since digests depend on the key, every directory is made again. Hidden entry digests are copied
    unchanged."""
    files = yield from walk(root)
    hidden = yield from hidden_entries(root)
    for path, entry in changes.items():
        if entry is None:
            files.pop(check_path(path), None)
        else:
            files[path] = entry
    return build(files, key, hidden)


def update(
    root: bytes | None,
    changes: Mapping[str, TreeEntry | None],
    key: bytes,
    cached: Known | None = None,
    alike: Mapping[str, bytes] = _NONE,
) -> Steps[Built]:
    """Apply `changes` (by path, None to remove) to the tree at `root` (None: an empty tree). Returns the new
    tree.

    Removing a missing file changes nothing. Hidden entries stay. `key` must be the tree's own key. `cached`:
    the directories of the tree, by digest. Raises PathInvalid for an invalid path, or if a file and a
    directory in the result have the same name.

    `alike` saves work: it maps paths to the digests of directories in another tree with the same key. The
    directories must be in `cached`. If a new directory equals the one that `alike` names for its path, its
    digest need not be computed."""
    files: dict[str, dict[str, TreeEntry | None]] = {}
    for path, entry in changes.items():
        parent, _, name = check_path(path).rpartition("/")
        files.setdefault(parent, {})[name] = entry
    touched = with_ancestors(files)
    before = yield from _load(root or EMPTY_ROOT, touched, cached)
    written: dict[bytes, bytes] = {}
    subdirectories: dict[str, dict[str, Child | None]] = {}
    top = EMPTY_ROOT
    for path in deepest_first(touched):
        old = before.get(path, _NOTHING)
        new = _apply_changes(path, old, files.get(path, {}), subdirectories.pop(path, {}))
        digest = alike.get(path, EMPTY_ROOT)
        if cached is None or cached.get(digest) != new:
            digest = directory_digest(new, path, key)
        empty = not new.children and not new.hidden
        if not empty and new != old:
            written[digest] = encode(new)
        if path:
            name = path.rpartition("/")[2]
            child = None if empty else Child(name, "dir", digest, size_of(new))
            subdirectories.setdefault(parent_of(path), {})[name] = child
        else:
            top = digest
    return Built(top, written)


def _load(root: bytes, touched: set[str], cached: Known | None) -> Steps[dict[str, Directory]]:
    """Loads the directories at the paths `touched`, by path; paths without a directory under `root` are left
    out."""
    below: dict[str, list[str]] = {}
    for path in touched - {""}:
        below.setdefault(parent_of(path), []).append(path)
    directories: dict[str, Directory] = {}
    level = {} if root == EMPTY_ROOT else {"": root}
    while level:
        objects = yield from fetch(set(level.values()), cached)
        directories.update({path: objects[digest] for path, digest in level.items()})
        level = {
            join(path, child.name): child.digest
            for path in level
            if path in below
            for child in directories[path].children
            if child.kind == "dir" and join(path, child.name) in touched
        }
    return directories


def _apply_changes(
    path: str,
    old: Directory,
    files: Mapping[str, TreeEntry | None],
    subdirectories: Mapping[str, Child | None],
) -> Directory:
    children = {child.name: child for child in old.children}
    for name, entry in files.items():
        if entry is None and name in children and children[name].kind != "dir":
            del children[name]
    for name, directory in subdirectories.items():
        present = children.get(name)
        if directory is not None:
            if present is not None and present.kind != "dir":
                raise _clash(path, name)
            children[name] = directory
        elif present is not None and present.kind == "dir":
            del children[name]
    for name, entry in files.items():
        if entry is None:
            continue
        if name in children and children[name].kind == "dir":
            raise _clash(path, name)
        children[name] = Child(name, entry.kind, entry.digest, entry.size)
    return Directory(FORMAT, [children[name] for name in sorted(children)], old.hidden)


def _clash(path: str, name: str) -> PathInvalid:
    return PathInvalid(f"{join(path, name)} is a file and a directory at once")
