"""Live frames: the changes of a branch, in the form in which its listeners receive them. A frame is written
in the transaction of the change.

A frame contains updates as they were signed, so that every receiver can verify their authors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from localstore.core.encoding import b64u
from localstore.core.model import limits
from localstore.core.model.live import Row, UpdateAnswer, UpdateBatch
from localstore.core.model.sync import Signed
from relay.base.clock import now_ms
from relay.caller import View
from relay.db.engine.database import Author, Tx
from relay.db.live import frame as rows
from relay.db.live.lane import LaneRow
from relay.db.live.replica import KeyRow
from relay.db.ref import RefRow
from relay.domain.history.live_update_format import Asked
from relay.domain.live.branch_base import row_to_wire
from relay.domain.live.rules import Frontier
from relay.events.peers import Frame


class _Body(msgspec.Struct):
    """The fields of the message `Live` (a live frame), except the channel."""

    after: int
    seq: int
    replica: int
    rows: list[Row]
    updates: list[Signed]


_encode = msgspec.json.Encoder().encode


async def write_frame(
    tx: Tx,
    view: View,
    ref: RefRow,
    before: int,
    after: Frontier,
    updates: Sequence[Signed] = (),
    author: Author | None = None,
    replica: int = 0,
) -> None:
    """Store the frame that brings the branch from the number `before` to the frontier `after`, and write the
    event that announces it. `replica`: the replica that sent the updates, 0 for the relay itself."""
    frame = Frame(ref.id, before, after.seq, body := _encode_body(before, after, replica, updates))
    values = {
        "branch_id": ref.id,
        "seq": frame.seq,
        "after": frame.after,
        "body": body,
        "created_at": now_ms(),
    }
    await tx.many(rows.INSERT, [values])
    tx.after_commit(partial(view.node.hub.channels.remember, frame))  # before listeners are woken
    await view.node.hub.announce(
        tx,
        view.repo.id,
        "live",
        author=author,
        branch=ref.name,
        branch_id=ref.id,
        seq=after.seq,
        replica=replica,
    )


def to_signed(
    batch: UpdateBatch,
    requested: Sequence[Asked],
    answers: Sequence[UpdateAnswer],
    before: int,
    key: KeyRow,
    who: str | None,
    turn: str | None,
) -> list[Signed]:
    """Convert those updates of a batch that changed something to the form that frames have. They got a number
    above `before`. A path whose operations are too long for a frame is left out."""
    sent: list[Signed] = []
    public, last = b64u(key.ed25519), before
    left_out: set[str] = set()
    for (update, operations), answer in zip(requested, answers, strict=True):
        if answer.result != "ok" or answer.seq <= last:
            continue
        last = answer.seq
        if sum(map(len, operations)) > limits.LIVE_OPERATIONS:
            left_out.add(update.path)
        sent.append(
            Signed(
                seq=last,
                replica=batch.replica,
                device_key_id=key.id,
                public_key=public,
                update=update,
                who=who or "",
                turn=turn,
            )
        )
    return [item for item in sent if item.update.path not in left_out]


def _encode_body(before: int, after: Frontier, replica: int, updates: Sequence[Signed]) -> bytes | None:
    """Encode the frame that leads from the number `before` to the frontier `after`. The updates are left out
    if they are too large. Returns None if there are too many rows, or if the rows alone are too large."""
    changed = sorted((after.rows[path] for path in after.changed), key=lambda row: row.ver)
    if len(changed) > limits.LIVE_FRAME_PATHS:
        return None
    changed_rows = [_to_all(row) for row in changed]
    for included in (list(updates), []):
        body = _encode(_Body(before, after.seq, replica, changed_rows, included))
        if len(body) <= limits.LIVE_FRAME:
            return body
    return None


def _to_all(row: LaneRow) -> Row:
    """Convert a row to the form that all listeners receive. Its field `other` is the number of the path's
    newest change by another replica than the one that changed the path last."""
    return row_to_wire(row, row.last_replica)
