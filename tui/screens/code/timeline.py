"""The line that shows where in a replay one is: a sign for each step, the oldest at the left."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from tui.text import Part

SEAL, EDIT, HERE = "●", "•", "◉"
GAP = 12  # columns between two steps at most


def draw_timeline(edits: Sequence[bool], at: int, width: int, whole: bool = True) -> list[Part]:
    """Returns a time line of at most `width` columns, as parts. `edits`: for each step whether it is a live
    edit. Other steps are seals. `at`: index of the shown step, -1 if there is none. `whole`: all steps are
    known. If the steps have no room, they are one bar up to the shown one."""
    count, ends = len(edits), [] if whole else [(" …", "dim")]
    room = width - sum(cell_len(text) for text, _ in ends)
    if count < 1 or room < 1:
        return []
    if 2 * count - 1 > room:
        passed = max(0, min(room - 1, at * (room - 1) // max(1, count - 1)))
        return [("━" * passed, "accent"), (HERE, "title"), ("─" * (room - 1 - passed), "line"), *ends]
    gap = min(GAP, (room - count) // max(1, count - 1))
    parts: list[Part] = []
    for place, edit in enumerate(edits):
        if place:
            parts.append(("━" * gap, "accent") if place <= at else ("─" * gap, "line"))
        sign = HERE if place == at else EDIT if edit else SEAL
        parts.append((sign, "title" if place == at else "accent" if place < at else "dim"))
    return [*parts, *ends]
