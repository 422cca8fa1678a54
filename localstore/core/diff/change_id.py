r"""Computes the id of a change from the lines that it removes and adds and the lines around them. Their
position in the files does not matter.

    change_id([file_id(FileChange("a.txt", "a.txt", b"1\n", b"2\n"))])  # 64 hex digits

A change that is repeated on another base keeps its id, unless the changed lines or lines near them differ
there. As for git's patch id, two changes that add the same line between different lines are different
changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from blake3 import blake3

from localstore.core.diff.line_diff import is_binary, lines, opcodes

CONTEXT = 3  # lines on each side of a hunk that count


class FileChange(NamedTuple):
    """One file before and after a change: its path and bytes on each side, None on a side where it does not
    exist. `whole`: the file is not compared by lines, and `old` and `new` are the digests of its bytes."""

    old_path: str | None
    new_path: str | None
    old: bytes | None
    new: bytes | None
    whole: bool = False


def change_id(files: Iterable[bytes]) -> str:
    """The id of a change of several files: 64 hex digits. `files`: the `file_id` of each file, in any
    order."""
    return _digest(b"change", sorted(files))


def file_id(change: FileChange) -> bytes:
    """The id of the change of one file; 32 bytes."""
    names = [_side(change.old_path), _side(change.new_path)]
    before, after = change.old or b"", change.new or b""
    if change.whole or is_binary(before) or is_binary(after):
        return bytes.fromhex(_digest(b"whole", [*names, _side(change.new)]))
    old, new = lines(before), lines(after)
    parts: list[bytes] = []
    for hunk in opcodes(old, new):
        parts += map(
            b"".join,
            (
                old[max(hunk.old_start - CONTEXT, 0) : hunk.old_start],
                old[hunk.old_start : hunk.old_end],
                new[hunk.new_start : hunk.new_end],
                old[hunk.old_end : hunk.old_end + CONTEXT],
            ),
        )
    return bytes.fromhex(_digest(b"lines", [*names, *parts]))


def _side(value: str | bytes | None) -> bytes:
    if value is None:
        return b"-"
    return b"+" + (value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value)


def _digest(kind: bytes, parts: Iterable[bytes]) -> str:
    """The BLAKE3 (hex) of `kind` and all `parts`, each after its length."""
    hashed = blake3(kind)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "big") + part)
    return hashed.hexdigest()
