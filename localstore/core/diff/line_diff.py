"""Line differences of byte strings, as patches for `git apply` and `patch`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO

from localstore.core.diff.alignment import Hunk, hunks, intern_elements
from localstore.core.diff.few_edits import few_edits
from localstore.core.diff.sliding import slid

CELLS = 64_000_000  # largest rows × columns of lines solved exactly: 8 MiB of memory, tens of milliseconds
LONG = 1_000_000  # rows × columns from which on it pays to try first whether little differs
BINARY_PROBE = 8000  # bytes searched for a NUL, as git does
NO_NEWLINE = b"\\ No newline at end of file\n"
ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def lines(data: bytes) -> list[bytes]:
    """`data` split after every line feed; joined, the lines are `data` again."""
    return BytesIO(data).readlines()


def opcodes(
    old: Sequence[bytes], new: Sequence[bytes], by_indent: bool = True, space: bool = True
) -> list[Hunk]:
    """The changed runs of lines from `old` to `new`, ascending, with an equal line between any two.

    Runs are placed as in git. `by_indent=False` disables the indentation heuristic, as in git's merge.
    `space=False`: lines that differ only in white space are equal."""
    texts = (old, new) if by_indent else None
    if not space:
        old, new = ([b"".join(line.split()) for line in side] for side in (old, new))
    if len(old) * len(new) > LONG and (edits := few_edits(old, new)) is not None:
        return slid(old, new, edits, texts)
    a, b = intern_elements(old, new)
    return slid(a, b, hunks(a, b, CELLS), texts)


def is_binary(data: bytes) -> bool:
    """Whether the file counts as binary in patches, because one of its first bytes is NUL."""
    return b"\0" in data[:BINARY_PROBE]


def stat(old: bytes | None, new: bytes | None, space: bool = True) -> tuple[int, int]:
    """(lines added, lines deleted); (0, 0) if either side is binary. `old`, `new`: the bytes of each side,
    None if it has no file. `space=False`: lines that differ only in white space are equal."""
    before, after = old or b"", new or b""
    if is_binary(before) or is_binary(after):
        return 0, 0
    return _counts(opcodes(lines(before), lines(after), space=space))


def _counts(changed: Iterable[Hunk]) -> tuple[int, int]:
    added = deleted = 0
    for hunk in changed:
        added += hunk.new_end - hunk.new_start
        deleted += hunk.old_end - hunk.old_start
    return added, deleted


def unified_diff(
    old: bytes | None,
    new: bytes | None,
    old_path: str | None,
    new_path: str | None,
    context: int = 3,
    similarity: int | None = None,
    space: bool = True,
) -> bytes:
    """The patch from `old` to `new`; see `compare_texts`."""
    return compare_texts(old, new, old_path, new_path, context, similarity, space)[2]


def compare_texts(
    old: bytes | None,
    new: bytes | None,
    old_path: str | None,
    new_path: str | None,
    context: int = 3,
    similarity: int | None = None,
    space: bool = True,
) -> tuple[int, int, bytes]:
    """(lines added, lines deleted, patch from `old` to `new` in git's unified format, b"" if they are equal).
    `old_path`, `new_path`: the names to write into the patch. A side whose bytes and path are None does not
    exist. `context`: unchanged lines around each change. `similarity`: percent, for a moved file.
    `space=False`: white space is ignored, and equal lines are shown as in `new`. Bytes and names are written
    unchanged."""
    if old == new and old_path == new_path:
        return 0, 0, b""
    header = _header(old is None, new is None, old_path, new_path, similarity)
    before, after = old or b"", new or b""
    if before == after:
        return 0, 0, header
    names = [
        _name("a/", old_path if old is not None else None),
        _name("b/", new_path if new is not None else None),
    ]
    if is_binary(before) or is_binary(after):
        return 0, 0, header + f"Binary files {names[0]} and {names[1]} differ\n".encode()
    tabs = ["\t" if " " in name else "" for name in names]
    marks = f"--- {names[0]}{tabs[0]}\n+++ {names[1]}{tabs[1]}\n".encode()
    was, now = lines(before), lines(after)
    changed = opcodes(was, now, space=space)
    body = b"".join(_body(was, now, changed, context))
    if not body and old_path == new_path and old is not None and new is not None:
        return 0, 0, b""
    return *_counts(changed), header + marks + body if body else header


def _header(
    added: bool, removed: bool, old_path: str | None, new_path: str | None, similarity: int | None
) -> bytes:
    source, target = old_path or new_path, new_path or old_path
    head = f"diff --git {_name('a/', source)} {_name('b/', target)}\n"
    if added:
        head += "new file mode 100644\n"
    elif removed:
        head += "deleted file mode 100644\n"
    elif source != target:
        head += f"similarity index {similarity}%\n" if similarity is not None else ""
        head += f"rename from {_name('', source)}\nrename to {_name('', target)}\n"
    return head.encode()


def _name(prefix: str, path: str | None) -> str:
    """A path as git writes it in a patch, after `prefix` (`a/`, `b/` or nothing); `/dev/null` for None. It is
    quoted if it contains control characters, quotes or backslashes."""
    if path is None:
        return "/dev/null"
    if not any(ord(char) < 0x20 or char in '"\\\x7f' for char in path):
        return prefix + path
    escaped = "".join(
        ESCAPES.get(ord(char)) or (f"\\{ord(char):03o}" if ord(char) < 0x20 or char == "\x7f" else char)
        for char in path
    )
    return f'"{prefix}{escaped}"'


def _body(old: list[bytes], new: list[bytes], changed: list[Hunk], context: int) -> Iterable[bytes]:
    for group in _group_hunks(changed, context):
        first, last = group[0], group[-1]
        lead = min(context, first.old_start)
        trail = min(context, len(old) - last.old_end)
        yield b"@@ -%b +%b @@\n" % (
            _range(first.old_start - lead, last.old_end + trail),
            _range(first.new_start - lead, last.new_end + trail),
        )
        at = first.new_start - lead
        for i1, i2, j1, j2 in group:
            yield from _mark_lines(b" ", new[at:j1])
            yield from _mark_lines(b"-", old[i1:i2])
            yield from _mark_lines(b"+", new[j1:j2])
            at = j2
        yield from _mark_lines(b" ", new[at : at + trail])


def _group_hunks(changed: list[Hunk], context: int) -> list[list[Hunk]]:
    """The hunks in groups. Hunks whose context lines touch are in one group, which gets one heading in the
    patch."""
    groups: list[list[Hunk]] = []
    for hunk in changed:
        if groups and hunk.old_start - groups[-1][-1].old_end <= 2 * context:
            groups[-1].append(hunk)
        else:
            groups.append([hunk])
    return groups


def _range(start: int, end: int) -> bytes:
    """The lines `start` to `end` as the heading of a hunk names them, such as `3,2`: the number of the first
    line (from 1), and how many lines there are. For an empty range, the first number is that of the line
    before it."""
    count = end - start
    if count == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + (count > 0), count)


def _mark_lines(mark: bytes, some: Sequence[bytes]) -> Iterable[bytes]:
    for line in some:
        yield mark + line
        if not line.endswith(b"\n"):
            yield b"\n" + NO_NEWLINE
