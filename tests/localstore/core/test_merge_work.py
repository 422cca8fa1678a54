"""Merging takes no more steps than in proportion to the texts, whatever they are."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import pytest

from localstore.core.diff import alignment
from localstore.core.diff.alignment import Hunk
from localstore.core.diff.text_merge import MergedText, TextConflict, merge
from localstore.core.model import limits
from tests.depth import rounds


class Work:
    """Counts the lines of Python that run, and the cells of the tables that are filled outside of Python."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines = self.cells = 0
        self._monkeypatch, self._exact = monkeypatch, alignment._exact

    def of(self, base: bytes, theirs: bytes, mine: bytes) -> None:
        """Merge and count."""
        before = sys.gettrace()
        with self._monkeypatch.context() as patch:
            patch.setattr(alignment, "_exact", self._counted)
            sys.settrace(self._trace)
            try:
                merge(base, theirs, mine)
            finally:
                sys.settrace(before)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.lines += event == "line"
        return self._trace

    def _counted(self, old: Sequence[int], new: Sequence[int], hunk: Hunk) -> list[Hunk]:
        self.cells += (hunk.old_end - hunk.old_start) * (hunk.new_end - hunk.new_start)
        return self._exact(old, new, hunk)


def hostile(size: int) -> dict[str, tuple[bytes, bytes, bytes]]:
    """Texts of about `size` bytes that lead to much comparing."""
    rng = random.Random(size)

    def repetitive() -> bytes:
        return b"".join(rng.choices([b"a\n", b"b\n", b"\n"], k=size // 2))

    def digits() -> bytes:
        return b" ".join(b"%d" % rng.randrange(10) for _ in range(size // 2)) + b"\n"

    word = b"word " * (size // 5)
    pairs = b"a\nb\n" * (size // 4)
    return {
        "repetitive": (repetitive(), repetitive(), repetitive()),
        "periodic": (pairs, b"b\n" + pairs, b"a\n" + pairs),
        "shifted": (pairs, b"b\na\n" * (size // 4), b"a\na\nb\n" * (size // 6)),
        "one line": (word, b"x" + word, word + b"y"),
        "digits": (digits(), digits(), digits()),
        "one word": (b"a1" * (size // 2), b"a1" * (size // 2) + b"-", b"b1" * (size // 2)),
        "brackets": (b"(" * size, b"(" * size + b")", b"[" + b"(" * size),
        "blank": (b"\n" * size, b" \n" * (size // 2), b"\n" * (size // 2)),
    }


@pytest.mark.parametrize("kind", hostile(10))
def test_the_work_grows_no_faster_than_the_text(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the bytes cost four times the steps, or less where a bound bites, and not sixteen."""
    small, large = Work(monkeypatch), Work(monkeypatch)
    times = rounds(4, 10)
    small.of(*hostile(6_000)[kind])
    large.of(*hostile(6_000 * times)[kind])
    assert large.lines <= 1.1 * times * max(small.lines, 300_000)
    assert large.cells <= 1.1 * times * max(small.cells, 300_000)


def test_one_line_as_long_as_a_text_may_be() -> None:
    long = b"word " * (limits.TEXT_FILE // 5 - 1)
    merged = merge(long, b"x" + long, long + b"y")
    assert merged == MergedText(b"x" + long, [TextConflict((0, 1), (0, 1), (0, 1))])


def test_a_million_lines() -> None:
    text = b"".join(b"%d\n" % n for n in range(1_000_000))
    theirs, mine = text.replace(b"\n500\n", b"\nfive\n", 1), text.replace(b"\n900000\n", b"\nnine\n", 1)
    assert merge(text, theirs, mine).text == theirs.replace(b"\n900000\n", b"\nnine\n", 1)
