"""Proofs: the part of a tree that a reader with hidden paths may see, in a form that can be verified against
the root digest.

A proof consists of the filtered objects of all visible directories, each after its length (u32, big-endian).
Visible children have salts, and hidden children are entry digests. So the digest of every object can be
computed and compared with the digest in its parent or the seal."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from localstore.core.errors import DigestMismatch, Invalid, SvcError
from localstore.core.tree.directory import EMPTY_ROOT, TreeEntry, decode, directory_digest
from localstore.core.tree.drive import run
from localstore.core.tree.read import Verification, hidden_entries, walk

LENGTH = 4  # bytes in front of an object


def frame_directory(raw: bytes) -> bytes:
    """A directory object as proofs contain it, with its length before it."""
    return len(raw).to_bytes(LENGTH, "big") + raw


class Proven(msgspec.Struct, frozen=True):
    """The content of a proof. `files`: the visible files, by path. `opaque`: the entry digests of hidden
    files, by directory. `build` takes both as parameters."""

    files: dict[str, TreeEntry]
    opaque: dict[str, list[bytes]]


def proven(proof: bytes, root: bytes) -> Proven:
    """Check a proof of the tree with the root digest `root`, and return its content. Raises Invalid or
    DigestMismatch unless the proof has all directories that it refers to and no others."""
    objects: dict[bytes, bytes] = {}
    for raw in _split(proof):
        directory = decode(raw)
        if any(child.salt is None or (child.kind == "dir" and child.size) for child in directory.children):
            raise Invalid("a child in the proof of a tree has no salt, or a size that nothing proves")
        objects[directory_digest(directory, "")] = raw
    used: set[bytes] = set()

    def load(digests: list[bytes]) -> dict[bytes, bytes]:
        used.update(digests)
        return {digest: objects[digest] for digest in digests if digest in objects}

    try:
        top = None if root == EMPTY_ROOT else root
        files = run(walk(top, "", Verification()), load)
        opaque = run(hidden_entries(top), load)
    except DigestMismatch:
        raise
    except SvcError:
        raise DigestMismatch("a directory in the proof of a tree is not the one that was sealed") from None
    if used != objects.keys():
        raise Invalid("the proof of a tree has directories that the tree does not name")
    return Proven(files, opaque)


def _split(proof: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(proof):
        start = at + LENGTH
        end = start + int.from_bytes(proof[at:start], "big")
        if end > len(proof) or end == start:
            raise Invalid("the proof of a tree is cut short")
        yield proof[start:end]
        at = end
