"""Three-way merge of texts.

The rules (docs/design/011):

- Line endings are merged separately from the text.
- A line that one side changed is taken; the same change of both sides is taken once.
- Changes that overlap or touch are merged by words (`word_merge`).
- Lines that both sides added at one place are taken if they continue one list (`list_merge`).
- Everything else is a conflict.

If there is a conflict, `merge` returns theirs unchanged, while `mark_conflicts` returns the merged text with
the conflicts between markers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from localstore.core.diff.git_alignment import as_git, common_ends
from localstore.core.diff.line_diff import lines
from localstore.core.diff.list_merge import both_added
from localstore.core.diff.stretches import Stretch, span, stretches
from localstore.core.diff.word_merge import both_changed

# At the start of a line. The words behind the signs set our markers apart from those of other tools.
OPENING, PARTING, CLOSING = b"<<<<<<< svc conflict: ", b"=======", b">>>>>>> svc conflict: "
MARKER = rb"^(?:%b|%b)" % (re.escape(OPENING), re.escape(CLOSING))


class TextConflict(NamedTuple):
    """The place of a conflict: a range of lines [start, end) in each of the three texts, counted from 0. An
    empty range is a position between lines. `theirs` and `mine` are the lines that differ. `base` is all
    lines that one of the sides changed there."""

    base: tuple[int, int]
    theirs: tuple[int, int]
    mine: tuple[int, int]


class MergedText(NamedTuple):
    """The result of a merge. `text`: the merged text; if there are conflicts, the unchanged text of the other
    side (theirs)."""

    text: bytes
    conflicts: list[TextConflict]


class _Resolved(NamedTuple):
    """A merge of texts, before its parts are joined. `pieces`: merged text and conflicts, in order. `sides`:
    the lines of theirs and of mine. Every line here ends with a line feed, which is replaced by `ending` in
    the result. `unended`: the last line of the result has no line ending."""

    pieces: list[bytes | TextConflict]
    sides: tuple[list[bytes], list[bytes]]
    ending: bytes
    unended: bool

    @property
    def conflicts(self) -> list[TextConflict]:
        return [piece for piece in self.pieces if isinstance(piece, TextConflict)]

    def text(self, parts: Iterable[bytes]) -> bytes:
        """Joins `parts` and sets the line endings of the result. `parts`: the pieces, with a text in the
        place of each conflict."""
        whole = b"".join(parts)
        if self.unended and isinstance(self.pieces[-1], bytes):
            whole = whole.removesuffix(b"\n")
        return whole if self.ending == b"\n" else whole.replace(b"\n", self.ending)


def merge(base: bytes, theirs: bytes, mine: bytes) -> MergedText:
    """Merge two changed versions of the text `base`: `theirs` and `mine`. All three texts are UTF-8.

    Swapping the sides swaps the conflicts and changes nothing else, except the order of lines that both added
    to one list.
    """
    if mine in (base, theirs):
        return MergedText(theirs, [])
    if theirs == base:
        return MergedText(mine, [])
    resolved = _resolve(base, theirs, mine)
    if resolved.conflicts:
        return MergedText(theirs, resolved.conflicts)
    return MergedText(resolved.text(piece for piece in resolved.pieces if isinstance(piece, bytes)), [])


def mark_conflicts(base: bytes, theirs: bytes, mine: bytes, their_label: str, my_label: str) -> bytes:
    """The merged text. Each conflict shows the lines of `theirs` and of `mine` between marker lines with the
    labels. Without conflicts, the text is that of `merge`."""
    if mine in (base, theirs) or theirs == base:
        return merge(base, theirs, mine).text
    resolved = _resolve(base, theirs, mine)
    labels = [label.split("\n")[0].strip().encode() for label in (their_label, my_label)]
    mark_end = b"\r\n" if resolved.ending == b"\n" and b"\r\n" in theirs else b"\n"
    return resolved.text(
        piece if isinstance(piece, bytes) else _between_markers(piece, resolved.sides, labels, mark_end)
        for piece in resolved.pieces
    )


def has_markers(text: bytes) -> bool:
    """Whether a line of the text begins with a conflict marker as `mark_conflicts` writes it. Markers of
    other tools do not count."""
    if OPENING not in text and CLOSING not in text:
        return False
    return re.search(MARKER, text, re.MULTILINE) is not None


# --- line endings


def _resolve(base: bytes, theirs: bytes, mine: bytes) -> _Resolved:
    """Merges `theirs` and `mine`, two changed versions of `base`. Line endings are merged separately from the
    text. A line break that is missing at the end of a text is merged separately too, if this leads to fewer
    conflicts."""
    texts = [base, theirs, mine]
    ending = _merged_ending(*map(_ending, texts))
    if ending is not None:
        texts = [text.replace(b"\r\n", b"\n") for text in texts]
    resolved = _by_lines(texts, ending or b"\n", False)
    ended = [text.endswith(b"\n") for text in texts]
    if len(set(ended)) == 1 or not all(texts) or not resolved.conflicts:
        return resolved
    merged_ended = ended[1] if ended[1] != ended[0] else ended[2]
    texts = [text if text.endswith(b"\n") else text + b"\n" for text in texts]
    return _by_lines(texts, resolved.ending, not merged_ended)


def _ending(text: bytes) -> bytes | None:
    r"""The line ending that all lines of the text have: b"\n" or b"\r\n". Returns b"" for a single line
    without ending, None if the lines have different endings."""
    feeds, pairs = text.count(b"\n"), text.count(b"\r\n")
    if pairs not in (0, feeds) or b"\r\r\n" in text:
        return None
    return b"\r\n" if pairs else b"\n" if feeds else b""


def _merged_ending(base: bytes | None, theirs: bytes | None, mine: bytes | None) -> bytes | None:
    """The line ending of the merged text: the one that a side changed to, else that of the base. None if one
    of the texts mixes endings; then endings are merged as part of the lines."""
    if base is None or theirs is None or mine is None:
        return None
    sides = {side for side in (theirs, mine) if side}
    if not base and len(sides) == 2:
        return None
    return max(sides - {base}, default=base) or b"\n"


# --- lines


def _by_lines(texts: list[bytes], ending: bytes, unended: bool) -> _Resolved:
    base, theirs, mine = map(lines, texts)
    pieces: list[bytes | TextConflict] = []
    done = 0
    for stretch in stretches(as_git(base, theirs), as_git(base, mine)):
        pieces += base[done : stretch.start]
        pieces += _join(stretch, base, theirs, mine)
        done = stretch.end
    pieces += base[done:]
    return _Resolved(pieces, (theirs, mine), ending, unended)


def _join(
    stretch: Stretch, base: list[bytes], theirs: list[bytes], mine: list[bytes]
) -> list[bytes | TextConflict]:
    """Merges one changed region of the base (`stretch`). Returns the merged lines, and in their order the
    conflicts that remain."""
    start, end = stretch.start, stretch.end
    if not stretch.mine:
        return [*theirs[slice(*span(stretch, stretch.theirs))]]
    if not stretch.theirs:
        return [*mine[slice(*span(stretch, stretch.mine))]]
    conflict = TextConflict((start, end), span(stretch, stretch.theirs), span(stretch, stretch.mine))
    their_lines, my_lines = theirs[slice(*conflict.theirs)], mine[slice(*conflict.mine)]
    if their_lines == my_lines:
        return [*their_lines]
    if start == end:
        text = both_added(their_lines, my_lines, base[max(start - 1, 0) : start] + base[end : end + 1])
    else:
        text = both_changed(b"".join(base[start:end]), b"".join(their_lines), b"".join(my_lines))
    return _narrow(conflict, their_lines, my_lines) if text is None else [text]


def _narrow(conflict: TextConflict, theirs: list[bytes], mine: list[bytes]) -> list[bytes | TextConflict]:
    """Splits a conflict into parts: the equal lines at its start, the conflict without any equal lines at its
    ends, the equal lines at its end."""
    head, tail = common_ends(theirs, mine)
    (t1, t2), (m1, m2) = conflict.theirs, conflict.mine
    cut = conflict._replace(theirs=(t1 + head, t2 - tail), mine=(m1 + head, m2 - tail))
    return [*theirs[:head], cut, *theirs[len(theirs) - tail :]]


# --- conflicts, for people


def _between_markers(
    conflict: TextConflict, sides: tuple[list[bytes], list[bytes]], labels: list[bytes], end: bytes
) -> bytes:
    their_lines, my_lines = sides[0][slice(*conflict.theirs)], sides[1][slice(*conflict.mine)]
    return b"".join(
        [
            OPENING + labels[0] + end,
            *_whole(their_lines, end),
            PARTING + end,
            *_whole(my_lines, end),
            CLOSING + labels[1] + end,
        ]
    )


def _whole(some: list[bytes], end: bytes) -> list[bytes]:
    """The lines, with the line ending `end` added to the last one if it lacks a line feed."""
    return [*some[:-1], some[-1] if some[-1].endswith(b"\n") else some[-1] + end] if some else some
