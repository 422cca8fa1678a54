"""Computes the edits in a batch of live updates. Which updates are accepted is decided in
`relay.domain.live.rules`.

A small computation is done in the transaction that answers the batch. A larger one is done before, outside of
any transaction, in slices in which accounts take turns (`relay.memory.fair`). The transaction then uses its
results if the lanes are unchanged; else they are computed again. So no request waits for another's
computation while the database is locked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from localstore.core.encoding import b64u, digest
from localstore.core.errors import SvcError, TooLarge
from localstore.core.lane.lane import Lane
from localstore.core.model import limits
from localstore.core.model.live import UpdateInvalid
from localstore.core.names import MANIFEST
from relay.db.live.lane import LaneRow
from relay.memory.lanes import LaneKey, Lanes, Source, Stand

BYTES_PER_STEP = 80  # of a text: read and hashed in the time of one step of `UPDATE_WORK`
BYTES_PER_PART = 4  # of operations: the least for one item or deletion
EACH = 500  # steps of the smallest edit
BUILT_BYTES_PER_STEP = 40  # of the text of a lane that is rebuilt
SMALL = 50_000  # steps of a batch that is computed in the transaction: about 5 ms


class OtherEdit(Exception):
    """Raised if the computed edits do not fit, because a lane has changed since the work on it began."""


class EditResult(NamedTuple):
    """The result of an edit: digest and size of the new text, and the lane's CRDT state vector in base64url.
    `text` is set only for a manifest (`.svc.yaml`)."""

    digest: bytes
    size: int
    vector: str
    text: bytes | None


class Workbench(Protocol):
    """Applies the edits of a batch to their lanes, in the order of the batch."""

    def edit(
        self, key: LaneKey, row: LaneRow, n: int, operations: Sequence[bytes], replica: int
    ) -> EditResult:
        """Apply update `n` of `replica` to the lane `key`, whose current state is recorded in `row`. Raises
        SvcError if the update is refused."""


@dataclass(slots=True)
class Bench:
    """Computes edits on lanes (live texts) and remembers the results. `lanes`: lanes that were borrowed from
    the cache or built here. `sources`: the data from which other lanes are built. `began`: the version of
    each lane before its first edit. `steps`: the results for each lane, in order, each with the number of its
    update."""

    lanes: dict[LaneKey, Lane]
    sources: Mapping[LaneKey, Source]
    began: dict[LaneKey, Stand] = field(default_factory=dict)
    steps: dict[LaneKey, list[tuple[int, EditResult | SvcError]]] = field(default_factory=dict)
    _accepted: dict[LaneKey, list[bytes]] = field(default_factory=dict)
    _worked: dict[LaneKey, int] = field(default_factory=dict)

    def edit(
        self, key: LaneKey, row: LaneRow, n: int, operations: Sequence[bytes], replica: int
    ) -> EditResult:
        self.began.setdefault(key, row.stand)
        steps = self.steps.setdefault(key, [])
        try:
            edited = self._edit(key, row, operations, replica)
        except SvcError as error:
            steps.append((n, error))
            raise
        steps.append((n, edited))
        self._accepted.setdefault(key, []).extend(operations)
        return edited

    def _edit(self, key: LaneKey, row: LaneRow, operations: Sequence[bytes], replica: int) -> EditResult:
        lane = self._lane(key)
        work_left = self._count_reading(key, row)
        if row.size + sum(map(len, operations)) > limits.TEXT_FILE:
            lane = lane.copy()  # if the text becomes too long the copy is dropped
        try:
            self._worked[key] += lane.accept(operations, replica, work_left, reading=True)
        except SvcError:
            if not lane.sound:  # the library failed; the lane may be half changed
                self.lanes[key] = self._build(key)
            raise
        finally:
            self._worked[key] += lane.looked
        text = lane.text()
        if len(text) > limits.TEXT_FILE:
            raise TooLarge(f"a text file holds at most {limits.in_words(limits.TEXT_FILE)}")
        self.lanes[key] = lane
        return EditResult(
            digest(text), len(text), b64u(lane.state_vector()), text if row.path == MANIFEST else None
        )

    def _lane(self, key: LaneKey) -> Lane:
        lane = self.lanes.get(key)
        if lane is None:
            lane = self.lanes[key] = self._build(key)
        return lane

    def _count_reading(self, key: LaneKey, row: LaneRow) -> int:
        """Add the reading of the whole text once to the work on this lane. Returns how much work is left for
        an edit. Raises TooLarge if the batch has no work left for this lane."""
        self._worked[key] = self._worked.get(key, 0) + row.size // BYTES_PER_STEP
        work_left = limits.EDITS_AT_ONCE * limits.UPDATE_WORK - self._worked[key]
        if work_left < 0:
            raise TooLarge("these are too many edits of one long text at once; send fewer")
        return work_left

    def _build(self, key: LaneKey) -> Lane:
        source = self.sources.get(key)
        if source is None:
            raise UpdateInvalid("the file began in the same batch; edit it in the next one")
        return Source(source.genesis, [*source.operations, *self._accepted.get(key, ())]).build(key)


@dataclass(slots=True)
class Replay:
    """Returns the results of edits that a `Bench` computed before, instead of computing them again. Raises
    OtherEdit if an edit is not the one that was computed."""

    bench: Bench
    _used: dict[LaneKey, int] = field(default_factory=dict)

    def edit(
        self, key: LaneKey, row: LaneRow, n: int, operations: Sequence[bytes], replica: int
    ) -> EditResult:
        at = self._used.get(key, 0)
        steps = self.bench.steps.get(key, ())
        if at >= len(steps) or steps[at][0] != n or (at == 0 and self.bench.began[key] != row.stand):
            raise OtherEdit
        self._used[key] = at + 1
        step = steps[at][1]
        if isinstance(step, SvcError):
            raise step
        return step

    def complete(self, key: LaneKey) -> bool:
        """Whether every result that was computed for the lane has been returned. Only then does the computed
        lane have the text that the lane's row describes."""
        return self._used.get(key, 0) == len(self.bench.steps.get(key, ()))


def keep(lanes: Lanes, bench: Workbench, rows: Mapping[LaneKey, LaneRow]) -> None:
    """Return the lanes of a batch to the cache in memory. Each gets the version in its row of `rows`, which
    the transaction has just committed."""
    replay = bench if isinstance(bench, Replay) else None
    worked = replay.bench if replay else bench
    if not isinstance(worked, Bench):
        return
    for key, lane in worked.lanes.items():
        row = rows.get(key)
        if row is not None and lane.sound and (replay is None or replay.complete(key)):
            lanes.keep(key, row.stand, lane, row.size)


def is_small(lanes: Lanes, branch_id: str, edits: Iterable[tuple[LaneRow, Sequence[bytes]]]) -> bool:
    """Whether these edits are little work even in the worst case, so that the transaction that decides on
    them may compute them."""
    steps, seen = 0, set()
    for row, operations in edits:
        key = LaneKey(branch_id, row.gen, row.epoch)
        lane = lanes.peek(key, row.stand)
        if lane is None and key not in seen:
            if row.edited:
                return False  # the log may have any length
            steps += row.size // BUILT_BYTES_PER_STEP
        seen.add(key)
        parts = 1 + sum(map(len, operations)) // BYTES_PER_PART
        items = row.size // limits.GENESIS_PIECE + 1
        steps += EACH + row.size // BYTES_PER_STEP
        steps += lane.most_work(parts) if lane else parts * (items + parts)
        if steps > SMALL:
            return False
    return True
