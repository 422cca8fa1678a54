"""Moves typed edits from one epoch of a lane to the next one, which begins with the same text."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core.errors import Invalid
from localstore.core.lane.lane import Lane
from localstore.core.model.live import UpdateInvalid


def carry(source: Lane, extra: Sequence[bytes], replica: int, target: Lane) -> bytes | None:
    """Repeat in `target` the text change that the updates `extra` make in `source`; both lanes must have the
    same text before. `replica`: who edits `target`.

    The CRDT's own deltas are applied at the same offsets. A comparison of texts would rewrite short unchanged
    runs, and two devices would duplicate them. `source` stays unchanged. Returns the update of `target`, None
    if the text did not change. Raises Invalid if the texts differ, UpdateInvalid for a bad update."""
    if source.text() != target.text():
        raise Invalid("a change can only be carried between lanes of equal text")
    after = source.copy()
    deltas = after._deltas(extra)
    if not any(deltas) or after.text() == target.text():
        return None
    update = target._write(replica, lambda: target._replay(deltas))
    if target.text() != after.text():
        raise UpdateInvalid("the carried change did not give the same text; load the lane again from its log")
    return update
