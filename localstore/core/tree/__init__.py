r"""The tree of a seal: a Merkle tree of directories with salted digests. Its root digest is the seal's
`content_digest`.

Byte layout (BLAKE3-256 throughout, numbers big-endian):

    salt(path)       = BLAKE3 keyed with the repository's 32-byte tree key, over the full path in UTF-8
    entry digest     = BLAKE3("svc-tree-entry-v1\n" ‖ salt ‖ kind ‖ u32 len(name) ‖ name ‖ digest ‖ u64 size)
    directory digest = BLAKE3("svc-tree-dir-v1\n" ‖ entry digests of all children, sorted)

`kind` is one ASCII byte: t text, b blob, c chunked, d directory. A directory is a child of its parent. In its
entry digest, `digest` is its directory digest and `size` is 0: a real sum would reveal the sizes of hidden
files. Children are sorted by entry digest, which reveals nothing about names. A hidden child appears only as
its entry digest, and the parent's digest can still be recomputed.

Reading and changing trees are generators without I/O: they yield lists of directory digests, are sent a
mapping digest → raw directory object, and return their result. `run` drives them."""

from localstore.core.tree.build import Built, Hidden, build, check_path, root_digest
from localstore.core.tree.change import rebuild, salted_with, update
from localstore.core.tree.directory import (
    EMPTY_ROOT,
    Child,
    Directory,
    FileKind,
    Kind,
    TreeEntry,
    decode,
    directory_digest,
    encode,
    entry_digest,
    filter_directory,
    path_salt,
    verify,
)
from localstore.core.tree.drive import Known, Steps, run
from localstore.core.tree.partial import Parting, find_signed_digest, is_partial, part, signed_children
from localstore.core.tree.read import (
    Difference,
    Verification,
    count,
    diff,
    diffs,
    directories,
    find,
    hidden_entries,
    list_directory,
    lookup,
    walk,
)

__all__ = [
    "EMPTY_ROOT",
    "Built",
    "Child",
    "Difference",
    "Directory",
    "FileKind",
    "Hidden",
    "Kind",
    "Known",
    "Parting",
    "Steps",
    "TreeEntry",
    "Verification",
    "build",
    "check_path",
    "count",
    "decode",
    "diff",
    "diffs",
    "directories",
    "directory_digest",
    "encode",
    "entry_digest",
    "filter_directory",
    "find",
    "find_signed_digest",
    "hidden_entries",
    "is_partial",
    "list_directory",
    "lookup",
    "part",
    "path_salt",
    "rebuild",
    "root_digest",
    "run",
    "salted_with",
    "signed_children",
    "update",
    "verify",
    "walk",
]
