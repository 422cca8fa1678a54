"""Moving a change from one lane to another of equal text: a new epoch, a merged seal, a file found again."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core.errors import Invalid, UpdateInvalid
from localstore.core.lane import Lane

SCRATCH_MINE, SCRATCH_THEIRS = 2, 3  # replica ids on lanes that live inside one function


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


def onto(base: bytes, mine: bytes, theirs: bytes, replica: int, target: Lane) -> bytes | None:
    """The change `base` → `mine` as an update of `target`, whose text is `theirs`: another change of `base`.

    As `carry`: `target` is changed, None if nothing is left to change. Raises NotText unless all are UTF-8.
    """
    here = Lane.genesis("", 0, 0, base)
    there = here.copy()
    ours = here.edit(SCRATCH_MINE, mine)
    there.edit(SCRATCH_THEIRS, theirs)
    return carry(there, [ours] if ours else [], replica, target)
