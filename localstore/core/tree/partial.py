"""Partial trees: trees in which a repository has some entries only as digests. For example, a fork has such
trees if its owner does not see all paths of the parent repository.

Each directory with hidden entries is stored as a separate *partial* object. It contains the names and salts
of the visible children, and the entry digests of the others. This is enough to compute the digest of the
directory that was signed (`find_signed_digest`), but reveals no hidden name. A partial directory is stored
under the digest of its own bytes, because the signed digest already names the whole directory. Directories
without hidden entries are stored unchanged."""

from __future__ import annotations

from typing import Protocol

import msgspec
from blake3 import blake3

from localstore.core.tree.directory import (
    EMPTY_ROOT,
    FORMAT,
    Child,
    Directory,
    child_digest,
    digest_of,
    directory_digest,
    encode,
    join,
    path_salt,
)
from localstore.core.tree.drive import Known, Steps, fetch

_TAG = b"svc-tree-partial-v1\n"


class Sight(Protocol):
    """Decides which paths are visible to a reader; `localstore.core.tree.policy.Policy` implements it."""

    def sees(self, path: str) -> bool: ...
    def may_see_below(self, path: str) -> bool: ...
    def sees_all_below(self, path: str) -> bool: ...


class VisiblePart(msgspec.Struct, frozen=True, gc=False):
    """The visible part of a directory: its digest, and the total bytes of the visible files below it."""

    digest: bytes
    size: int


class Parting(msgspec.Struct):
    """Collects the partial trees that are made of several seals, so that directories which they share are
    made once. `sight`: decides what is visible. `written`: the partial directories made so far, bytes by
    digest. `visible_parts`, `signed`: results to be used again."""

    sight: Sight
    written: dict[bytes, bytes] = msgspec.field(default_factory=dict)
    visible_parts: dict[tuple[str, bytes], VisiblePart | None] = msgspec.field(default_factory=dict)
    signed: dict[bytes, bytes] = msgspec.field(default_factory=dict)


def name_of(raw: bytes) -> bytes:
    """The digest (32 bytes) under which a partial directory with these bytes is stored."""
    return blake3(_TAG + raw).digest()


def is_partial(directory: Directory) -> bool:
    """Whether the directory is a partial one. Partial directories have salts."""
    return any(child.salt is not None for child in directory.children)


def part(root: bytes, key: bytes, parting: Parting) -> Steps[bytes]:
    """The root digest of the part of a tree that a reader may see. If everything is visible, this is `root`
    itself. `root`: a whole or a partial tree; `key`: its tree key; `parting`: decides what is visible, and
    collects the new directories."""
    if root == EMPTY_ROOT:
        return root
    visible_part = yield from _part("", root, key, parting)
    if visible_part is not None:
        return visible_part.digest
    (top,) = (yield from fetch({root})).values()
    hidden = yield from _entry_digests("", top, key, parting)
    return _write(Directory(FORMAT, [], sorted(hidden)), parting)


def _part(path: str, digest: bytes, key: bytes, parting: Parting) -> Steps[VisiblePart | None]:
    """The visible part of the directory at `path`, which has the digest `digest`; None if nothing in it is
    visible."""
    at = (path, digest)
    if at in parting.visible_parts:
        return parting.visible_parts[at]
    directory = (yield from fetch({digest}))[digest]
    visible: list[Child] = []
    gone: list[Child] = []
    for child in directory.children:
        seen = yield from _seen(join(path, child.name), child, key, parting)
        if seen is None:
            gone.append(child)
        else:
            visible.append(seen)
    visible_part: VisiblePart | None = None
    if visible == directory.children and visible:
        visible_part = VisiblePart(digest, sum(child.size for child in visible))
    elif visible:
        hidden = yield from _entry_digests(path, Directory(FORMAT, gone, []), key, parting)
        salted = [_salt(child, path, key) for child in visible]
        partial = Directory(FORMAT, salted, sorted(directory.hidden + hidden))
        visible_part = VisiblePart(_write(partial, parting), sum(child.size for child in visible))
    parting.visible_parts[at] = visible_part
    return visible_part


def _seen(full: str, child: Child, key: bytes, parting: Parting) -> Steps[Child | None]:
    sight = parting.sight
    if child.kind != "dir":
        return child if sight.sees(full) else None
    if sight.sees_all_below(full):
        return child
    if not sight.may_see_below(full):
        return None
    visible_part = yield from _part(full, child.digest, key, parting)
    if visible_part is None or visible_part.digest == child.digest:
        return None if visible_part is None else child
    return Child(child.name, "dir", visible_part.digest, visible_part.size, child.salt)


def _entry_digests(path: str, directory: Directory, key: bytes, parting: Parting) -> Steps[list[bytes]]:
    """The entry digests of all children of the directory, as they are in the signed tree. Those of hidden
    children come first."""
    digests = list(directory.hidden)
    for child in directory.children:
        as_signed = yield from _as_signed(child, parting.signed)
        digests.append(child_digest(as_signed, path, key))
    return digests


def _salt(child: Child, path: str, key: bytes) -> Child:
    salt = path_salt(join(path, child.name), key) if child.salt is None else child.salt
    return Child(child.name, child.kind, child.digest, child.size, salt)


def _write(directory: Directory, parting: Parting) -> bytes:
    raw = encode(directory)
    name = name_of(raw)
    parting.written[name] = raw
    return name


def find_signed_digest(
    digest: bytes, signed_digests: dict[bytes, bytes], read: Known | None = None
) -> Steps[bytes]:
    """The digest that a directory has in the signed tree. It differs from the `digest` under which the
    directory is stored, if some of its entries are stored only as digests. `signed_digests`: signed digests
    that are already known, by stored digest; those that are found here are added. `read`: a cache of
    directories."""
    if digest == EMPTY_ROOT:
        return digest
    if digest not in signed_digests:
        directory = (yield from fetch({digest}, read))[digest]
        signed_digests[digest] = digest
        if not directory.children:
            signed_digests[digest] = digest_of(directory.hidden)
        elif is_partial(directory):
            as_signed = yield from signed_children(directory, signed_digests, read)
            signed_digests[digest] = directory_digest(as_signed, "")
    return signed_digests[digest]


def signed_children(
    directory: Directory, signed_digests: dict[bytes, bytes], read: Known | None = None
) -> Steps[Directory]:
    """The directory as it was signed: the directories in it have the digests that they have in the signed
    tree. For `signed_digests` and `read` see `find_signed_digest`."""
    if not is_partial(directory):
        return directory
    children: list[Child] = []
    for child in directory.children:
        signed_child = yield from _as_signed(child, signed_digests, read)
        children.append(signed_child)
    return Directory(directory.version, children, directory.hidden)


def _as_signed(child: Child, signed_digests: dict[bytes, bytes], read: Known | None = None) -> Steps[Child]:
    if child.kind != "dir":
        return child
    digest = yield from find_signed_digest(child.digest, signed_digests, read)
    return Child(child.name, "dir", digest, child.size, child.salt)
