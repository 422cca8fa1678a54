"""Reads trees level by level: finds paths, walks, compares, lists directories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from localstore.core.errors import NotFound
from localstore.core.tree.build import parent_of, with_ancestors
from localstore.core.tree.directory import EMPTY_ROOT, Child, TreeEntry, join, verify
from localstore.core.tree.drive import Known, Steps, fetch

Change = tuple[TreeEntry | None, TreeEntry | None]


class Verification(msgspec.Struct, frozen=True):
    """Makes `walk` verify the digest of every directory. `key`: the tree key from which salts are computed,
    None if the children have their salts."""

    key: bytes | None = None


def lookup(
    root: bytes | None, paths: Iterable[str], cached: Known | None = None
) -> Steps[dict[str, TreeEntry]]:
    """The files at the given paths, by path; paths without a visible file are left out. `cached`: directories
    by digest."""
    places = yield from find(root, paths, cached)
    return {path: child.entry for path, (_, child) in places.items() if child.kind != "dir"}


def find(
    root: bytes | None, paths: Iterable[str], cached: Known | None = None
) -> Steps[dict[str, tuple[int, Child]]]:
    """The files and directories at the given paths, as path → (place, child). Paths at which nothing is
    visible are left out. `place`: the index of the child in its directory, from 0. `cached`: directories
    by digest."""
    targets = set(paths)
    directories = with_ancestors(parent_of(path) for path in targets)
    places: dict[str, tuple[int, Child]] = {}
    level = _top(root)
    while level:
        objects = yield from fetch(set(level.values()), cached)
        below: dict[str, bytes] = {}
        for path, digest in level.items():
            for place, child in enumerate(objects[digest].children):
                full = join(path, child.name)
                if full in targets:
                    places[full] = place, child
                if child.kind == "dir" and full in directories:
                    below[full] = child.digest
        level = below
    return places


def directories(root: bytes | None) -> Steps[dict[str, list[Child]]]:
    """The visible children of every directory of the tree, by the path of the directory. They are sorted by
    name."""
    children: dict[str, list[Child]] = {}
    level = _top(root)
    while level:
        objects = yield from fetch(set(level.values()))
        below: dict[str, bytes] = {}
        for path, digest in level.items():
            children[path] = objects[digest].children
            below.update(
                {join(path, child.name): child.digest for child in children[path] if child.kind == "dir"}
            )
        level = below
    return children


def count(roots: Iterable[bytes], counted: Mapping[bytes, int]) -> Steps[dict[bytes, int]]:
    """How many visible files are below each directory, by directory digest. The result has `roots` and every
    directory that was read for them. `counted`: numbers that are already known, by digest; these
    directories are not read."""
    own: dict[bytes, tuple[int, list[bytes]]] = {}
    level = set(roots) - {EMPTY_ROOT}
    while level := level - counted.keys() - own.keys():
        objects = yield from fetch(level)
        deeper: set[bytes] = set()
        for digest in level:
            children = objects[digest].children
            below = [child.digest for child in children if child.kind == "dir"]
            own[digest] = len(children) - len(below), below
            deeper.update(below)
        level = deeper
    counts: dict[bytes, int] = {}
    waiting = list(own)
    while waiting:
        files, below = own[waiting[-1]]
        open_ = [digest for digest in below if digest not in counts and digest not in counted]
        if open_:
            waiting += open_
        else:
            at = waiting.pop()
            counts[at] = files + sum(
                counts[digest] if digest in counts else counted[digest] for digest in below
            )
    return counts


def walk(
    root: bytes | None, prefix: str = "", verification: Verification | None = None
) -> Steps[dict[str, TreeEntry]]:
    """Every visible file at or below `prefix` ("" is the root), sorted by path.

    With `verification`, each directory must have the digest under which it was read; otherwise DigestMismatch
    is raised."""
    above = with_ancestors([prefix])
    entries: dict[str, TreeEntry] = {}
    level = _top(root)
    while level:
        objects = yield from fetch(set(level.values()))
        below: dict[str, bytes] = {}
        for path, digest in level.items():
            if verification is not None:
                verify(objects[digest], digest, path, verification.key)
            inside = not prefix or path == prefix or path.startswith(prefix + "/")
            for child in objects[digest].children:
                full = join(path, child.name)
                if not inside and full not in above:
                    continue
                if child.kind == "dir":
                    below[full] = child.digest
                elif inside or full == prefix:
                    entries[full] = child.entry
        level = below
    return dict(sorted(entries.items()))


def hidden_entries(root: bytes | None) -> Steps[dict[str, list[bytes]]]:
    """The entry digests of all hidden entries, by the path of their directory, in the form that `build`
    takes. The paths are sorted."""
    hidden: dict[str, list[bytes]] = {}
    level = _top(root)
    while level:
        objects = yield from fetch(set(level.values()))
        hidden.update({path: objects[digest].hidden for path, digest in level.items()})
        level = {
            join(path, child.name): child.digest
            for path, digest in level.items()
            for child in objects[digest].children
            if child.kind == "dir"
        }
    return {path: hidden[path] for path in sorted(hidden) if hidden[path]}


def list_directory(root: bytes | None, path: str = "") -> Steps[list[Child]]:
    """The visible children of the directory at `path` ("" is the root), sorted by name.

    Raises NotFound unless it is a directory of this tree.
    """
    children = yield from _children(None if root == EMPTY_ROOT else root)
    prefix = ""
    for name in path.split("/") if path else ():
        prefix = join(prefix, name)
        digests = [child.digest for child in children if child.name == name and child.kind == "dir"]
        if not digests:
            raise NotFound(f"{prefix} is not a directory of this tree")
        children = yield from _children(digests[0])
    return children


def _children(digest: bytes | None) -> Steps[list[Child]]:
    if digest is None:
        return []
    objects = yield from fetch({digest})
    return objects[digest].children


class Difference(msgspec.Struct, frozen=True):
    """How a tree differs from another one. `changes`: path → (file in the other tree, file in this tree),
    sorted by path; None where a tree has no file. `directories`: path → digest of each directory of this
    tree that differs."""

    changes: dict[str, Change]
    directories: dict[str, bytes]


def diff(root_a: bytes | None, root_b: bytes | None) -> Steps[dict[str, Change]]:
    """Every file that differs between two trees, as path → (file in a, file in b), sorted by path. None
    stands for no file.

    Equal subtrees are not read. Hidden children are not compared."""
    (difference,) = yield from diffs(root_a, [root_b])
    return difference.changes


def diffs(
    base: bytes | None, sides: Sequence[bytes | None], cached: Known | None = None
) -> Steps[list[Difference]]:
    """How each of `sides` differs from `base`, as `diff` computes it. All are compared in one walk, so that
    directories which several trees share are read once. `cached`: directories by digest."""
    differences = [Difference({}, {}) for _ in sides]
    level = {"": [base or EMPTY_ROOT, *(side or EMPTY_ROOT for side in sides)]}
    while level := {path: all_ for path, all_ in level.items() if all_.count(all_[0]) < len(all_)}:
        objects = yield from fetch({root for all_ in level.values() for root in all_} - {EMPTY_ROOT}, cached)
        below: dict[str, list[bytes]] = {}
        for path, (own, *others) in level.items():
            before = {child.name: child for child in objects[own].children} if own in objects else {}
            for place, digest in enumerate(others):
                if digest == own:
                    continue
                difference = differences[place]
                difference.directories[path] = digest
                after = objects[digest].children if digest in objects else []
                for name, old, new in _unequal_children(before, after):
                    full = join(path, name)
                    _note(difference.changes, full, old, new)
                    old_digest, new_digest = _directory(old), _directory(new)
                    if old_digest != new_digest:
                        below.setdefault(full, [old_digest] * (1 + len(others)))[1 + place] = new_digest
        level = below
    return [
        Difference(dict(sorted(difference.changes.items())), difference.directories)
        for difference in differences
    ]


def _unequal_children(
    before: Mapping[str, Child], after: Sequence[Child]
) -> Iterator[tuple[str, Child | None, Child | None]]:
    """Yields (name, old child, new child) for each child that differs. None stands for a child that is
    missing on that side."""
    unmatched = len(before)
    for child in after:
        old = before.get(child.name)
        unmatched -= old is not None
        if old != child:
            yield child.name, old, child
    if unmatched:
        for name in before.keys() - {child.name for child in after}:
            yield name, before[name], None


def _note(changes: dict[str, Change], path: str, old: Child | None, new: Child | None) -> None:
    before = None if old is None or old.kind == "dir" else old.entry
    after = None if new is None or new.kind == "dir" else new.entry
    if before != after:
        changes[path] = (before, after)


def _directory(child: Child | None) -> bytes:
    """The digest of the child if it is a directory; else the digest of an empty directory."""
    return child.digest if child is not None and child.kind == "dir" else EMPTY_ROOT


def _top(root: bytes | None) -> dict[str, bytes]:
    return {} if root is None or root == EMPTY_ROOT else {"": root}
