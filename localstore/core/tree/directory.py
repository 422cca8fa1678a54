"""One directory of a tree: its children, encoding, digest and filtered form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from operator import lt
from struct import Struct as Packer
from typing import Literal

import msgspec
from blake3 import blake3

from localstore.core.encoding import DIGEST_SIZE
from localstore.core.errors import DigestMismatch, Invalid
from localstore.core.model import limits

FileKind = Literal["text", "blob", "chunked"]
Kind = Literal["text", "blob", "chunked", "dir"]

FORMAT = 1
SIZE_MAX = (1 << 53) - 1

_KIND_BYTE: dict[str, bytes] = {"text": b"t", "blob": b"b", "chunked": b"c", "dir": b"d"}
_ENTRY_TAG, _DIRECTORY_TAG = b"svc-tree-entry-v1\n", b"svc-tree-dir-v1\n"
_NAME_LENGTH, _SIZE = Packer(">I"), Packer(">Q")
_UNSAFE_NAME = re.compile(r"[/\\\x00-\x1f\x7f]|^\.{0,2}$")
_NOT_PLAIN = re.compile(r"[^ -.0-\[\]-~\n]")  # of names joined by line feeds: not printable ASCII, or / or \
_NO_KEY = "a tree without its salts can only be verified with the tree key"
_DOTS = frozenset(("", ".", ".."))

EMPTY_ROOT = blake3(_DIRECTORY_TAG).digest()
"""Digest of the tree without files. It is never stored and never asked for."""


class TreeEntry(msgspec.Struct, frozen=True, gc=False):
    """A file in a tree. `digest`: BLAKE3 (32 bytes) of its content; `size`: bytes."""

    kind: FileKind
    digest: bytes
    size: int


class Child(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A named child of a directory. `digest` and `size` of a directory are its directory digest and the total
    size of the files below it. In the filtered form, for readers who do not see all paths, `salt` is set, and
    the `size` of a directory is 0."""

    name: str
    kind: Kind
    digest: bytes
    size: int
    salt: bytes | None = None

    @property
    def entry(self) -> TreeEntry:
        """The child as a file. Raises Invalid if it is a directory."""
        if self.kind == "dir":
            raise Invalid(f"{self.name} is a directory")
        return TreeEntry(self.kind, self.digest, self.size)


class Directory(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A directory. `children`: sorted by name (UTF-8 order). `hidden`: sorted entry digests of children whose
    names are not visible."""

    version: int
    children: list[Child]
    hidden: list[bytes]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Directory)


def path_salt(path: str, key: bytes) -> bytes:
    """The salt (32 bytes) of a full path. `key`: the repository's tree key (32 bytes)."""
    return blake3(path.encode(), key=key).digest()


def entry_digest(salt: bytes, kind: Kind, name: str, digest: bytes, size: int) -> bytes:
    """The entry digest (32 bytes) of a child, in the layout that the docstring of `localstore.core.tree`
    describes. The `size` of a directory is ignored."""
    raw = name.encode()
    return blake3(
        b"".join(
            (
                _ENTRY_TAG,
                salt,
                _KIND_BYTE[kind],
                _NAME_LENGTH.pack(len(raw)),
                raw,
                digest,
                _SIZE.pack(0 if kind == "dir" else size),
            )
        )
    ).digest()


def digest_of(entry_digests: Iterable[bytes]) -> bytes:
    """The directory digest of a directory whose children have these entry digests, given in any order."""
    return blake3(_DIRECTORY_TAG + b"".join(sorted(entry_digests))).digest()


def child_digest(child: Child, directory: str, key: bytes | None) -> bytes:
    """The entry digest of `child` in the directory at path `directory` ("" is the root). Uses the child's
    salt if it has one, else computes it with `key`."""
    salt = child.salt
    if salt is None:
        if key is None:
            raise Invalid(_NO_KEY)
        salt = path_salt(join(directory, child.name), key)
    return entry_digest(salt, child.kind, child.name, child.digest, child.size)


def directory_digest(directory: Directory, path: str, key: bytes | None = None) -> bytes:
    """The digest (32 bytes) of a directory whose path is `path` ("" is the root). Without `key` every child
    must have its salt."""
    above = f"{path}/".encode() if path else b""
    own: list[bytes] = []
    for child in directory.children:  # `child_digest` in one loop: a merge hashes thousands of children
        name, kind = child.name.encode(), child.kind
        salt = child.salt
        if salt is None:
            if key is None:
                raise Invalid(_NO_KEY)
            salt = blake3(above + name, key=key).digest()
        length, size = _NAME_LENGTH.pack(len(name)), _SIZE.pack(0 if kind == "dir" else child.size)
        raw = b"%b%b%b%b%b%b%b" % (_ENTRY_TAG, salt, _KIND_BYTE[kind], length, name, child.digest, size)
        own.append(blake3(raw).digest())
    return digest_of(own + directory.hidden)


def verify(directory: Directory, digest: bytes, path: str, key: bytes | None = None) -> None:
    """Raises DigestMismatch unless the directory at `path` has the digest `digest`. `key`: the tree key, None
    if all children have their salts."""
    if directory_digest(directory, path, key) != digest:
        raise DigestMismatch(f"the listing of {path or 'the root'} is not the one that was sealed")


def filter_directory(
    directory: Directory, path: str, key: bytes, visible: Callable[[str, Kind], bool]
) -> Directory:
    """The form of a directory for a reader who may see only some of its children. Hidden children are
    replaced by their entry digests. The directory digest stays the same.

    `visible(full path, kind)` decides. It must be False for a directory whose files are all hidden, because a
    visible directory shows its name."""
    children: list[Child] = []
    hidden = list(directory.hidden)
    for child in directory.children:
        full = join(path, child.name)
        if visible(full, child.kind):
            size = 0 if child.kind == "dir" else child.size
            salt = path_salt(full, key) if child.salt is None else child.salt
            children.append(Child(child.name, child.kind, child.digest, size, salt))
        else:
            hidden.append(child_digest(child, path, key))
    return Directory(FORMAT, children, sorted(hidden))


def encode(directory: Directory) -> bytes:
    """The canonical bytes (msgpack) of a directory. The caller has sorted children and hidden digests."""
    return _encoder.encode(directory)


def decode(raw: bytes) -> Directory:
    """Inverse of `encode`. Raises Invalid unless `raw` is exactly what `encode` writes: safe names, strict
    order, known kinds, 32-byte digests, sizes of 0 to 2**53−1, not empty."""
    try:
        directory = _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise Invalid("not a directory object") from None
    if directory.version != FORMAT:
        raise Invalid(f"directory object of version {directory.version}, expected {FORMAT}")
    _check_children(directory.children)
    hidden = directory.hidden
    if any(len(digest) != DIGEST_SIZE for digest in hidden) or not _ascending(hidden):
        raise Invalid("hidden entries of a directory must be sorted, unique digests")
    if not directory.children and not hidden:
        raise Invalid("an empty directory has no object")
    if encode(directory) != raw:
        raise Invalid("directory object is not in canonical form")
    return directory


def join(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name


def unsafe_name(name: str) -> bool:
    """Whether a directory must not contain this name: it is empty, `.` or `..`, has separators or control
    characters, is too long, or is not valid Unicode."""
    if _UNSAFE_NAME.search(name):
        return True
    if name.isascii():
        return len(name) > limits.PATH_SEGMENT_BYTES
    try:
        return len(name.encode()) > limits.PATH_SEGMENT_BYTES
    except UnicodeEncodeError:
        return True


def _check_children(children: list[Child]) -> None:
    names = [child.name for child in children]
    if not _all_plain(names):
        for name in names:
            if unsafe_name(name):
                raise Invalid(f"directory holds the unsafe name {name!r}")
    for child in children:
        if len(child.digest) != DIGEST_SIZE or (child.salt is not None and len(child.salt) != DIGEST_SIZE):
            raise Invalid(f"{child.name}: a digest has {DIGEST_SIZE} bytes")
        if not 0 <= child.size <= SIZE_MAX:
            raise Invalid(f"{child.name}: size out of range")
    if not _ascending(names):
        raise Invalid("children of a directory must be sorted by name and unique")


def _all_plain(names: list[str]) -> bool:
    """Whether a quick test proves that all names are safe, as in most directories. If the result is False,
    they may still be safe."""
    joined = "\n".join(names)
    return (
        _NOT_PLAIN.search(joined) is None
        and joined.count("\n") == len(names) - 1
        and _DOTS.isdisjoint(names)
        and len(max(names, key=len)) <= limits.PATH_SEGMENT_BYTES
    )


def _ascending(values: list[str] | list[bytes]) -> bool:
    # Code point order of Unicode text is the order of its UTF-8 bytes.
    return all(map(lt, values, values[1:]))
