"""Epochs: the numbered sections of the updates of a lane (the CRDT text of one path on one branch).

A seal ends the epoch of each edited lane. The sealed text becomes the genesis (first state) of a new epoch,
which has a new, short log. The final states of older epochs are kept for a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple, TypeVar

from localstore.core.model.limits import EPOCHS_RETAINED, MIB
from localstore.core.model.live import UpdateInvalid
from relay.base.batches import split_batches
from relay.caller import View
from relay.db.engine.database import Tx
from relay.db.live import lane as rows
from relay.db.live.lane import LaneRow
from relay.domain.history import content
from relay.domain.live import frontier
from relay.memory.lanes import Desk, LaneKey, Source, Stand
from relay.node import Node
from relay.objects.store import FrameAt

R = TypeVar("R")
PORTION = 32 * MIB
STATES_AT_ONCE = 64 * MIB  # of texts, for one seal: their states are in memory
ENDS_AT_ONCE = 64 * MIB  # of older epochs, for one request
LOG_ROW = 256  # bytes that a row of a log takes besides its operation
Behind = tuple[int, int]  # a lane, and the epoch that a device knows
Finals = dict[LaneKey, tuple[bytes, bytes]]  # digest of the genesis, and the final state
_size = attrgetter("size")
Wanted = list[tuple[LaneKey, LaneRow]]


class LaneTexts(NamedTuple):
    """Current texts of edited lanes (live texts of files) that a repository does not hold yet. `digests`:
    their digests. `placed`: where the texts that were newly written are stored."""

    digests: Sequence[bytes] = ()
    placed: Sequence[FrameAt] = ()


async def place(tx: Tx, node: Node, repo_id: str, branch_id: str, changed: list[LaneRow]) -> LaneTexts:
    """Store the current texts of edited lanes (live texts of files) that the repository does not hold yet,
    and return them. Only some of the texts are in memory at a time, because a few edited bytes make a whole
    new text."""
    edited = {row.digest: row for row in changed if row.kind == "text" and row.edited}
    held = await content.find_sizes(tx, repo_id, edited.keys())
    placed: list[FrameAt] = []
    lacking = {digest: row for digest, row in edited.items() if digest not in held}
    for part in split_batches(lacking.values(), PORTION, _size):
        texts = await _work_on_lanes(tx, node, repo_id, branch_id, part, _read_texts)
        placed += await node.objects.place(texts, repo_id, tx)
    return LaneTexts([*lacking], placed)


class Ending(NamedTuple):
    """The epochs (sections of a lane's updates) that a seal ends. `edited`: rows of the lanes of these
    epochs. `states`: the final states to store in place of long logs. A lane has none if its log is short, or
    if memory is too small for its state."""

    edited: list[LaneRow]
    states: Mapping[LaneKey, bytes]


class StatesNeeded(Exception):
    """Raised if the final states of the lanes `rows` must first be computed outside of the transaction. The
    transaction has changed nothing."""

    def __init__(self, branch_id: str, rows: list[LaneRow]) -> None:
        super().__init__()
        self.branch_id, self.rows = branch_id, rows


States = dict[LaneKey, tuple[Stand, bytes]]
"""States, each with where its lane stood then."""


async def find_ending(tx: Tx, branch_id: str, at: int, computed: States) -> Ending:
    """Find the epochs (sections of a lane's updates) that a new seal ends: one of each edited lane. `at`: the
    number up to which the seal contains the live updates; a lane that changed later keeps its epoch.
    `computed`: final states that were computed before. Raises StatesNeeded if some are missing."""
    edited = [rows.to_row(row) for row in await tx.all(rows.EDITED, branch_id=branch_id, at=at)]
    if not edited:
        return Ending([], {})
    short = await _short_logs(tx, branch_id, edited)
    long = {frontier.key_of(branch_id, row): row for row in _select_fitting(edited) if row.path not in short}
    if any(key not in computed or computed[key][0] != row.stand for key, row in long.items()):
        raise StatesNeeded(branch_id, list(long.values()))
    return Ending(edited, {key: computed[key][1] for key in long})


def _select_fitting(edited: list[LaneRow]) -> Iterable[LaneRow]:
    """Select the lanes whose final states fit into memory together, the smallest first. The other lanes keep
    their log instead of a final state."""
    room = STATES_AT_ONCE
    for row in sorted(edited, key=_size):
        room -= row.size
        if room < 0:
            return
        yield row


async def compute_states(view: View, lacking: StatesNeeded) -> States:
    """Compute the states of the `lacking` lanes. Computes some of them in each turn that the account gets.
    Raises RateLimited if the account's budget for work on texts is used up."""
    computed: States = {}
    for part in split_batches(lacking.rows, PORTION, _size):
        async with view.read(snapshot=True) as tx:
            desk = await frontier.open_desk(view.node, tx, view.repo.id, lacking.branch_id, part)
        pending = [(frontier.key_of(lacking.branch_id, row), row) for row in part]
        await view.node.share.finish(view.me.account_id, partial(_compute_states, pending, desk, computed))
        for row in part:
            key = frontier.key_of(lacking.branch_id, row)
            if (lane := desk.lanes.get(key)) is not None:
                view.node.lanes.give_back(key, row.stand, lane, row.size)
    return computed


async def begin(tx: Tx, node: Node, branch_id: str, ends: Ending) -> None:
    """Begin a new epoch of each lane in `ends`. A lane with a final state gets it stored in place of its log.
    Final states and logs of epochs that are too old are deleted."""
    edited = ends.edited
    if not edited:
        return
    await _keep_finals(tx, branch_id, edited, ends.states)
    await tx.many(
        rows.DROP_LOG,
        [{"branch_id": branch_id, "gen": key.gen, "epoch": key.epoch} for key in ends.states],
    )
    dropped = [
        {"branch_id": branch_id, "gen": row.gen, "oldest": row.epoch + 1 - EPOCHS_RETAINED}
        for row in edited
        if row.epoch >= EPOCHS_RETAINED
    ]
    await tx.many(rows.DROP_FINALS, dropped)
    await tx.many(rows.DROP_LOGS, dropped)
    await tx.many(
        rows.NEXT_EPOCH,
        [{"at_branch": branch_id, "at_path": row.path, "epoch": row.epoch + 1} for row in edited],
    )
    node.lanes.forget([frontier.key_of(branch_id, row) for row in edited])  # their epoch is over


class Ends(NamedTuple):
    """The final states of older epochs (sections of a lane's updates), by lane and epoch. `known`: final
    states that are stored. `logs`: for the other epochs, the first text and the updates, from which the final
    state is computed."""

    known: Finals
    logs: dict[LaneKey, tuple[bytes, Source]]  # digest of the genesis, and the source


async def find_ends(tx: Tx, node: Node, repo_id: str, branch_id: str, behind: Iterable[Behind]) -> Ends:
    """Find the final states of older epochs, or the logs to compute them from. `behind`: pairs of a lane
    number and the first epoch that is wanted of this lane. Later epochs are returned too.

    If there are more than ENDS_AT_ONCE bytes, some epochs are left out. A device that needs one of these
    merges its typed edits as texts, which is less exact.
    """
    finals = [
        (LaneKey(branch_id, gen, old), bytes(genesis), state)
        for gen, epoch in sorted(behind)
        for old, genesis, state in await tx.all(rows.FINALS, branch_id=branch_id, gen=gen, epoch=epoch)
    ]
    sizes = await content.find_sizes(tx, repo_id, {genesis for _, genesis, _ in finals})
    final_states: Finals = {}
    logs: dict[LaneKey, tuple[bytes, list[bytes]]] = {}
    room = ENDS_AT_ONCE
    for key, genesis, state in finals:
        room -= sizes.get(genesis, 0) if state is None else len(state)
        if room < 0 or genesis not in sizes:
            continue
        if state is not None:
            final_states[key] = (genesis, bytes(state))
            continue
        log = await tx.all(rows.LOG, branch_id=branch_id, gen=key.gen, epoch=key.epoch)
        logs[key] = (genesis, [bytes(row[0]) for row in log])
    texts = await content.read(node, tx, repo_id, {genesis for genesis, _ in logs.values()})
    return Ends(
        final_states, {key: (genesis, Source(texts[genesis], log)) for key, (genesis, log) in logs.items()}
    )


async def _short_logs(tx: Tx, branch_id: str, edited: list[LaneRow]) -> set[str]:
    """Find the edited lanes whose log is at most as large as their text. Returns their paths."""
    sizes = {row.path: row.size for row in edited}
    counted = await tx.all(rows.LOG_SIZES, branch_id=branch_id, paths=[*sizes])
    return {path for path, many, size in counted if many * LOG_ROW + size <= sizes[path]}


async def _keep_finals(tx: Tx, branch_id: str, part: list[LaneRow], states: Mapping[LaneKey, bytes]) -> None:
    await tx.many(
        rows.KEEP_FINAL,
        [
            {
                "branch_id": branch_id,
                "gen": row.gen,
                "epoch": row.epoch,
                "genesis": row.genesis,
                "state": states.get(frontier.key_of(branch_id, row)),
            }
            for row in part
        ],
    )


async def _work_on_lanes(
    tx: Tx,
    node: Node,
    repo_id: str,
    branch_id: str,
    edited: list[LaneRow],
    work: Callable[[Wanted, Desk], R],
) -> R:
    keyed = [(frontier.key_of(branch_id, row), row) for row in edited]
    return await frontier.with_lanes(node, tx, repo_id, branch_id, edited, lambda desk: work(keyed, desk))


def _read_texts(lanes: Wanted, desk: Desk) -> dict[bytes, bytes]:
    """Read the current texts of these lanes. Returns them by digest. Raises UpdateInvalid if a lane's log
    gives another text than the one whose digest its row records."""
    texts: dict[bytes, bytes] = {}
    for key, row in lanes:
        lane = desk.find(key)
        if lane.digest() != row.digest:
            raise UpdateInvalid(f"the log of {row.path} does not give its recorded text")
        texts[row.digest] = lane.text()
    return texts


def _compute_states(pending: Wanted, desk: Desk, computed: States, seconds: float) -> bool:
    """Compute the states of lanes for at most `seconds`. Takes the lanes from `pending`, and adds their
    states to `computed`. Returns whether all are computed."""
    until = time.monotonic() + seconds
    while pending:
        key, row = pending.pop()
        computed[key] = row.stand, desk.find(key).state()
        if time.monotonic() > until:
            break
    return not pending
