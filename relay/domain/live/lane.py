"""Reads states of lanes (the merged edits of one text), for devices that carry their edits over to new
epochs.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field

from localstore.core.encoding import b64u
from localstore.core.errors import TooLarge
from localstore.core.lane.lane import Lane
from localstore.core.model import limits
from localstore.core.model.limits import EPOCHS_RETAINED, MIB
from localstore.core.model.live import FinalState, LanesRequest, LaneState, LaneStates, UpdateInvalid
from localstore.core.model.live import LaneName as LaneAsked
from relay.caller import View
from relay.db.live.lane import LaneRow
from relay.db.ref import RefRow
from relay.domain.live import epochs, frontier
from relay.domain.live.branch_base import Base
from relay.domain.live.epochs import Finals
from relay.memory.lanes import Desk, LaneKey, Lanes, Source

LANES_PER_REQUEST = 1000
ANSWERED = 32 * MIB  # of texts whose states one answer holds; a longer text has an answer of its own
HELD = 4  # bytes in memory for each of them: the state, its text for the wire, and what is being sent
READS = 3  # tries, if others change the lanes meanwhile


async def read(view: View, branch: str, body: LanesRequest) -> LaneStates:
    """Full states of lanes, and the last states of older epochs

    If a lane changes while it is read, everything is read again.
    """
    if len(body.lanes) > LANES_PER_REQUEST:
        raise TooLarge(f"ask for at most {LANES_PER_REQUEST} lanes at once")
    view.require_whole()
    for _ in range(READS - 1):
        with suppress(UpdateInvalid):
            return await _read(view, branch, body)
    return await _read(view, branch, body)


async def _read(view: View, branch: str, body: LanesRequest) -> LaneStates:
    node = view.node
    node.share.require(view.me.account_id)
    async with view.read(snapshot=True) as tx:
        ref = await frontier.find_branch(tx.one, view.repo.id, branch)
        named = {lane.path for lane in body.lanes if _is_sane(lane)}
        loaded = await frontier.load_with_base(node, tx, ref, ref.seq, (), Base(), staying=named)
        by_path = {path: row for path, row in loaded.rows.items() if row.living}
        fit, size = _select_fitting(body.lanes, by_path)
        current = [(lane, row) for lane in fit if (row := by_path.get(lane.path)) and row.gen == lane.gen]
        edited = {row.path: row for _, row in current if row.kind == "text" and row.edited}
        desk = await frontier.open_desk(node, tx, view.repo.id, ref.id, edited.values())
        behind = {
            (row.gen, lane.epoch)
            for lane, row in current
            if lane.epoch is not None and lane.epoch < row.epoch
        }
        older = await epochs.find_ends(tx, node, view.repo.id, ref.id, behind)
    await view.lease.wait(HELD * size)
    reading = _Reading(ref.id, list(edited.values()), desk, list(older.logs.items()))
    try:
        await node.share.finish(view.me.account_id, reading.go_on)
    finally:
        reading.give_back(node.lanes)
    states, ends = reading.states, older.known | reading.ends
    replica = body.replica or 0
    return LaneStates(
        lanes=[
            _to_state(row, states.get(row.path), _find_end_states(ends, ref, row, lane.epoch), replica)
            for lane, row in current
        ],
        missing=[lane.path for lane in fit if (row := by_path.get(lane.path)) is None or row.gen != lane.gen],
        left=len(body.lanes) - len(fit),
    )


def _select_fitting(lanes: list[LaneAsked], by_path: dict[str, LaneRow]) -> tuple[list[LaneAsked], int]:
    """Select the first lanes that fit into one answer, at least one. Returns (lanes, bytes of their
    texts)."""
    held = 0
    for number, lane in enumerate(lanes):
        row = by_path.get(lane.path)
        size = 0
        if row is not None and row.gen == lane.gen and row.kind == "text":
            older = 0 if lane.epoch is None else min(max(row.epoch - lane.epoch, 0), EPOCHS_RETAINED)
            size = row.size * (row.edited + older)
        if number and held + size > ANSWERED:
            return lanes[:number], held
        held += size
    return lanes, held


def _to_state(row: LaneRow, state: bytes | None, ends: dict[str, FinalState], asker: int) -> LaneState:
    return LaneState(
        path=row.path,
        kind=row.kind,  # type: ignore[arg-type]
        gen=row.gen,
        epoch=row.epoch,
        ver=row.ver,
        other=row.other(asker),
        digest=row.digest.hex(),
        size=row.size,
        genesis=row.genesis.hex(),
        state=None if state is None else b64u(state),
        finals=ends,
    )


def _find_end_states(ends: Finals, ref: RefRow, row: LaneRow, epoch: int | None) -> dict[str, FinalState]:
    """Select from `ends` the final states of the lane's older epochs, beginning with `epoch`. Returns them by
    epoch; {} if `epoch` is None."""
    if epoch is None:
        return {}
    keys = (
        LaneKey(ref.id, row.gen, old) for old in range(max(epoch, row.epoch - EPOCHS_RETAINED), row.epoch)
    )
    return {
        str(key.epoch): FinalState(genesis=ends[key][0].hex(), state=b64u(ends[key][1]))
        for key in keys
        if key in ends
    }


@dataclass(slots=True)
class _Reading:
    """Computes CRDT states of lanes one by one. `lanes`: rows of the lanes that still have to be read.
    `logs`: older epochs whose final state still has to be computed, each with its first text and its
    updates."""

    branch_id: str
    lanes: list[LaneRow]
    desk: Desk
    logs: list[tuple[LaneKey, tuple[bytes, Source]]]
    states: dict[str, bytes] = field(default_factory=dict)  # by path
    ends: Finals = field(default_factory=dict)
    _read: list[tuple[LaneRow, Lane]] = field(default_factory=list)

    def go_on(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while self.lanes or self.logs:
            if self.lanes:
                self._state(self.lanes.pop())
            else:
                key, (genesis, source) = self.logs.pop()
                self.ends[key] = (genesis, source.build(key).state())
            if time.monotonic() > until:
                break
        return not (self.lanes or self.logs)

    def _state(self, row: LaneRow) -> None:
        lane = self.desk.find(frontier.key_of(self.branch_id, row))
        if lane.digest() != row.digest:
            raise UpdateInvalid(f"the log of {row.path} does not give its recorded text")
        self.states[row.path] = lane.state()
        self._read.append((row, lane))

    def give_back(self, lanes: Lanes) -> None:
        """Return the lanes to the cache in memory, each with the version that its row records."""
        for row, lane in self._read:
            lanes.give_back(frontier.key_of(self.branch_id, row), row.stand, lane, row.size)


def _is_sane(lane: LaneAsked) -> bool:
    return len(lane.path) <= limits.PATH_BYTES and "\0" not in lane.path and lane.path.isprintable()
