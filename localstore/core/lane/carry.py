"""Moves typed edits from one epoch of a lane (the CRDT text of a path) to the next epoch, which begins with
the same text."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core.errors import Invalid
from localstore.core.lane.lane import Lane
from localstore.core.model.live import UpdateInvalid


def carry(source: Lane, extra: Sequence[bytes], replica: int, target: Lane) -> bytes | None:
    """Repeat edits of the lane `source` in the lane `target`, which has the same text. `extra`: the edits to
    repeat, as updates that `source` does not have yet. `replica`: the id under which `target` is edited.

    The changes are made at the offsets that the CRDT library reports. To compare the texts would be wrong: it
    would also replace short unchanged runs between changes, and if two devices did that, the merged text
    would contain these runs twice. `source` stays unchanged. Returns the update of `target`, None if the text
    did not change. Raises Invalid if the texts of the lanes differ, UpdateInvalid for a bad update."""
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
