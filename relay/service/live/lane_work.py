"""What is worked out on lanes for a batch of live updates, apart from the decisions about them.

Small work is done in the transaction that decides. What may take longer is done beside it: on the rows as a
first look found them, outside of any transaction, in slices, each account in its turn (`relay.memory.fair`).
Then a transaction decides anew and takes what was worked out, if the lane still stands where that began; else
it is worked out again. So nobody waits for another one's work with the database in hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from localstore.core import limits
from localstore.core.encoding import b64u, digest
from localstore.core.errors import SvcError, TooLarge
from localstore.core.lane.lane import Lane
from localstore.core.model.live import UpdateInvalid
from localstore.core.names import MANIFEST
from relay.db.live.lane import LaneRow
from relay.memory.lanes import LaneKey, Lanes, Source, Stand

BYTES_PER_STEP = 80  # of a text, which are read and hashed in the time of one step of `UPDATE_WORK`
BYTES_PER_PART = 4  # of operations, for each item or deletion that they may hold
EACH = 500  # steps that an edit takes however small it is
BUILT_BYTES_PER_STEP = 40  # of the text of a lane that is made anew
SMALL = 50_000  # steps of a batch that are worked out in the transaction: about 5 ms


class NotWorkedOut(Exception):
    """A lane does not stand where the work on it began."""


class Edit(NamedTuple):
    """What an edit makes of its lane: the text, and the state vector, encoded. The text itself is there of a
    manifest alone."""

    digest: bytes
    size: int
    vector: str
    text: bytes | None


class Workbench(Protocol):
    """Where the edits of a batch are worked out, in the order of the batch."""

    def edit(self, key: LaneKey, row: LaneRow, n: int, operations: Sequence[bytes], replica: int) -> Edit:
        """What update `n` of `replica` makes of the lane `key`, which stands at `row`. Raises SvcError."""


@dataclass(slots=True)
class Bench:
    """Works on lanes that nobody else has meanwhile. `lanes`: those in memory; `sources`: what the others are
    made of; `began`: where each stood first; `steps`: what came of each update, by lane and in order."""

    lanes: dict[LaneKey, Lane]
    sources: Mapping[LaneKey, Source]
    began: dict[LaneKey, Stand] = field(default_factory=dict)
    steps: dict[LaneKey, list[tuple[int, Edit | SvcError]]] = field(default_factory=dict)
    _accepted: dict[LaneKey, list[bytes]] = field(default_factory=dict)
    _worked: dict[LaneKey, int] = field(default_factory=dict)

    def edit(self, key: LaneKey, row: LaneRow, n: int, operations: Sequence[bytes], replica: int) -> Edit:
        self.began.setdefault(key, row.stand)
        steps = self.steps.setdefault(key, [])
        try:
            made = self._edit(key, row, operations, replica)
        except SvcError as error:
            steps.append((n, error))
            raise
        steps.append((n, made))
        self._accepted.setdefault(key, []).extend(operations)
        return made

    def _edit(self, key: LaneKey, row: LaneRow, operations: Sequence[bytes], replica: int) -> Edit:
        lane = self._lane(key)
        left = self._afford(key, row)
        if row.size + sum(map(len, operations)) > limits.TEXT_FILE:
            lane = lane.copy()  # what becomes too long is given up; the lane stays as it was
        try:
            self._worked[key] += lane.accept(operations, replica, left, reading=True)
        except SvcError:
            if not lane.sound:  # the library failed in it, and it may be half changed
                self.lanes[key] = self._build(key)
            raise
        finally:
            self._worked[key] += lane.looked
        text = lane.text()
        if len(text) > limits.TEXT_FILE:
            raise TooLarge(f"a text file holds at most {limits.TEXT_FILE} bytes")
        self.lanes[key] = lane
        return Edit(
            digest(text), len(text), b64u(lane.state_vector()), text if row.path == MANIFEST else None
        )

    def _lane(self, key: LaneKey) -> Lane:
        lane = self.lanes.get(key)
        if lane is None:
            lane = self.lanes[key] = self._build(key)
        return lane

    def _afford(self, key: LaneKey, row: LaneRow) -> int:
        """Count in what it takes to read the text once more; the work that is left for an edit."""
        self._worked[key] = self._worked.get(key, 0) + row.size // BYTES_PER_STEP
        left = limits.EDITS_AT_ONCE * limits.UPDATE_WORK - self._worked[key]
        if left < 0:
            raise TooLarge("these are too many edits of one long text at once; send fewer")
        return left

    def _build(self, key: LaneKey) -> Lane:
        source = self.sources.get(key)
        if source is None:
            raise UpdateInvalid("the file began in the same batch; edit it in the next one")
        return Source(source.genesis, [*source.operations, *self._accepted.get(key, ())]).build(key)


@dataclass(slots=True)
class Replay:
    """Tells again what a bench worked out. Raises NotWorkedOut where that was another question."""

    bench: Bench
    _told: dict[LaneKey, int] = field(default_factory=dict)

    def edit(self, key: LaneKey, row: LaneRow, n: int, operations: Sequence[bytes], replica: int) -> Edit:
        at = self._told.get(key, 0)
        steps = self.bench.steps.get(key, ())
        if at >= len(steps) or steps[at][0] != n or (at == 0 and self.bench.began[key] != row.stand):
            raise NotWorkedOut
        self._told[key] = at + 1
        made = steps[at][1]
        if isinstance(made, SvcError):
            raise made
        return made

    def complete(self, key: LaneKey) -> bool:
        """Whether all that was worked out on the lane was asked for, so that it stands where its row does."""
        return self._told.get(key, 0) == len(self.bench.steps.get(key, ()))


def keep(lanes: Lanes, bench: Workbench, rows: Mapping[LaneKey, LaneRow]) -> None:
    """Put the lanes of a bench into memory, where the transaction that has just committed left them."""
    replay = bench if isinstance(bench, Replay) else None
    worked = replay.bench if replay else bench
    if not isinstance(worked, Bench):
        return
    for key, lane in worked.lanes.items():
        row = rows.get(key)
        if row is not None and lane.sound and (replay is None or replay.complete(key)):
            lanes.keep(key, row.stand, lane, row.size)


def is_small(lanes: Lanes, branch_id: str, edits: Iterable[tuple[LaneRow, Sequence[bytes]]]) -> bool:
    """Whether the work on these edits, at worst, is small enough for the transaction that decides."""
    steps, seen = 0, set()
    for row, operations in edits:
        key = LaneKey(branch_id, row.gen, row.epoch)
        lane = lanes.peek(key, row.stand)
        if lane is None and key not in seen:
            if row.edited:
                return False  # a log of any length
            steps += row.size // BUILT_BYTES_PER_STEP
        seen.add(key)
        parts = 1 + sum(map(len, operations)) // BYTES_PER_PART
        items = row.size // limits.GENESIS_PIECE + 1
        steps += EACH + row.size // BYTES_PER_STEP
        steps += lane.most_work(parts) if lane else parts * (items + parts)
        if steps > SMALL:
            return False
    return True
