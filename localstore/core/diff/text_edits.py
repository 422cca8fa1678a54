"""The change from one text to another as few small edits at UTF-8 offsets, in bounded time (docs/design/003).

Equal text at both ends is left out. The rest is compared by lines, or by tokens if lines are long. A changed
run of which at least half stays equal is then compared by characters. Fewer than `SHORT_RUN` equal characters
between two changes are replaced with them, because scattered edits merge badly."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from localstore.core.diff.alignment import Hunk, hunks, intern_elements
from localstore.core.errors import NotText

CELLS = 4_000_000  # largest rows × columns solved exactly: half a MiB of memory
UNITS = 1_000_000  # lines or tokens on one side above which the changed stretch is replaced whole
LINE_BYTES = 1024  # mean line length above which tokens are aligned instead of lines
SHORT_RUN = 4
BLOCK = 1 << 16
TOKEN = re.compile(rb"[^\n;,{} ]{0,255}[\n;,{} ]|[^\n;,{} ]{1,252}[\x80-\xbf]{0,3}")


class Edit(NamedTuple):
    """At byte `offset` of the old text, `deleted` bytes are replaced by `inserted`."""

    offset: int
    deleted: int
    inserted: bytes


def edits(old: bytes, new: bytes) -> list[Edit]:
    """The edits that turn `old` into `new`, ascending, disjoint, on character boundaries.

    Raises NotText unless both are UTF-8.
    """
    require_utf8(old)
    require_utf8(new)
    start, end = _common_ends(old, new)
    a, b = old[start : len(old) - end], new[start : len(new) - end]
    if not a and not b:
        return []
    if not a or not b or len(a) * len(b) <= CELLS:
        return _refine(a, b, start)
    units = _units(a, b)
    if units is None:
        return [Edit(start, len(a), b)]
    return _by_units(*units, start)


def apply(old: bytes, changes: list[Edit]) -> bytes:
    """`old` with these edits applied."""
    copied = 0
    parts = []
    for offset, deleted, inserted in changes:
        parts += [old[copied:offset], inserted]
        copied = offset + deleted
    return b"".join([*parts, old[copied:]])


def coarser(old: bytes, changes: list[Edit], most: int) -> list[Edit]:
    """The same change in at most `most` edits. If there are more, those that are closest together are
    joined."""
    if len(changes) <= most:
        return changes
    gaps = [after.offset - before.offset - before.deleted for before, after in pairwise(changes)]
    widest_joined = sorted(gaps)[len(changes) - most - 1]
    joined = changes[:1]
    for gap, (offset, deleted, inserted) in zip(gaps, changes[1:], strict=True):
        if gap > widest_joined:
            joined.append(Edit(offset, deleted, inserted))
        else:
            first = joined[-1]
            between = old[offset - gap : offset]
            joined[-1] = Edit(
                first.offset, first.deleted + gap + deleted, first.inserted + between + inserted
            )
    return joined


def require_utf8(data: bytes) -> None:
    """Raises NotText unless `data` is UTF-8."""
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise NotText(f"not UTF-8 text: byte {error.start} does not belong to a character") from None


def inside_character(byte: int) -> bool:
    """Whether this byte of UTF-8 text continues a character."""
    return byte & 0xC0 == 0x80


def _common_ends(a: bytes, b: bytes) -> tuple[int, int]:
    """(length of the common prefix, length of the common suffix after it), both at character boundaries."""
    shorter = min(len(a), len(b))
    start = _common_prefix(a, b, shorter)
    while start and any(start < len(side) and inside_character(side[start]) for side in (a, b)):
        start -= 1
    end = _common_suffix(a, b, shorter - start)
    while end and inside_character(a[len(a) - end]):
        end -= 1
    return start, end


def _common_prefix(a: bytes, b: bytes, limit: int) -> int:
    low = 0
    while low + BLOCK <= limit and a[low : low + BLOCK] == b[low : low + BLOCK]:
        low += BLOCK
    high = min(limit, low + BLOCK)
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(a: bytes, b: bytes, limit: int) -> int:
    n, m, low = len(a), len(b), 0
    while low + BLOCK <= limit and a[n - low - BLOCK : n - low] == b[m - low - BLOCK : m - low]:
        low += BLOCK
    high = min(limit, low + BLOCK)
    while low < high:
        middle = (low + high + 1) // 2
        if a[n - middle : n - low] == b[m - middle : m - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _units(a: bytes, b: bytes) -> tuple[list[bytes], list[bytes]] | None:
    """Splits both texts into the units that are compared: lines, or tokens (such as words) if lines are long.
    Returns (units of `a`, units of `b`), None if a text has too many."""
    if all(side.count(b"\n") * LINE_BYTES >= len(side) for side in (a, b)):
        if max(a.count(b"\n"), b.count(b"\n")) > UNITS:
            return None
        return _lines(a), _lines(b)
    units = TOKEN.findall(a), TOKEN.findall(b)
    return units if max(map(len, units)) <= UNITS else None


def _lines(text: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in text.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines


def _by_units(a: list[bytes], b: list[bytes], offset: int) -> list[Edit]:
    changes: list[Edit] = []
    done = 0
    old, new = intern_elements(a, b)
    for hunk in hunks(old, new, CELLS):
        offset += sum(map(len, a[done : hunk.old_start]))
        before = b"".join(a[hunk.old_start : hunk.old_end])
        changes += _refine(before, b"".join(b[hunk.new_start : hunk.new_end]), offset)
        offset += len(before)
        done = hunk.old_end
    return changes


def _refine(a: bytes, b: bytes, offset: int) -> list[Edit]:
    """The edits for one changed run, whose old bytes `a` begin at `offset` and become `b`: single characters
    if both are similar, else the whole run."""
    start, end = _common_ends(a, b)
    a, b, offset = a[start : len(a) - end], b[start : len(b) - end], offset + start
    if not a and not b:
        return []
    whole = [Edit(offset, len(a), b)]
    if not a or not b:
        return whole
    old, new = a.decode(), b.decode()
    if len(old) * len(new) > CELLS:
        return whole
    from rapidfuzz.distance import Indel  # loads for 7 ms, and most commands compare no texts

    opcodes = Indel.opcodes(old, new)
    alike = sum(op.src_end - op.src_start for op in opcodes if op.tag == "equal")
    if 2 * alike < min(len(old), len(new)):
        return whole
    changed = [
        Hunk(op.src_start, op.src_end, op.dest_start, op.dest_end) for op in opcodes if op.tag != "equal"
    ]
    return _as_bytes(old, new, _without_short_runs(changed), offset)


def _without_short_runs(changed: list[Hunk]) -> list[Hunk]:
    joined: list[Hunk] = []
    for hunk in changed:
        if joined and hunk.old_start - joined[-1].old_end < SHORT_RUN:
            joined[-1] = Hunk(joined[-1].old_start, hunk.old_end, joined[-1].new_start, hunk.new_end)
        else:
            joined.append(hunk)
    return joined


def _as_bytes(old: str, new: str, changed: list[Hunk], offset: int) -> list[Edit]:
    changes = []
    done = 0
    for i1, i2, j1, j2 in changed:
        offset += len(old[done:i1].encode())
        deleted = len(old[i1:i2].encode())
        changes.append(Edit(offset, deleted, new[j1:j2].encode()))
        offset, done = offset + deleted, i2
    return changes


def keeps(old: bytes, arrived: bytes, data: bytes) -> bool:
    """Whether the text `data` contains all text that was added by the change from `old` to `arrived`."""
    news, at = [], 0
    for offset, deleted, inserted in edits(old, arrived):
        news.append((offset + at, offset + at + len(inserted)))
        at += len(inserted) - deleted
    taken = [(edit.offset, edit.offset + edit.deleted) for edit in edits(arrived, data) if edit.deleted]
    return not any(start < end_ and begin < end for start, end in news for begin, end_ in taken)
