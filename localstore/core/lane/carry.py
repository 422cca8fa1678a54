"""Moving typed changes from one lane to another of equal text: a new epoch."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core.errors import Invalid
from localstore.core.lane.lane import Lane
from localstore.core.model.live import UpdateInvalid


def carry(source: Lane, extra: Sequence[bytes], replica: int, target: Lane) -> bytes | None:
    """Give `target`, which shows the text of `source`, the change that the updates `extra` make on `source`.

    Replays the CRDT's own deltas at the same offsets; comparing texts instead would write short unchanged
    runs again, and two devices doing so would write them twice. `source` stays as it is; `target` is changed,
    and the update that changed it is returned (None if the text did not change). Raises UpdateInvalid.
    """
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
