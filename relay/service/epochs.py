"""Epochs: a sealed text becomes the genesis of a new, short log; the last states of older ones are kept."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec

from localstore.core.errors import UpdateInvalid
from localstore.core.limits import EPOCHS_RETAINED, MIB
from relay.db import lane as rows
from relay.db.database import Tx
from relay.db.lane import LaneRow
from relay.lanes import LaneKey, Lanes, Source
from relay.node import Node
from relay.objects.store import FrameAt
from relay.portions import portions
from relay.service import content, frontier

PORTION = 32 * MIB
_size = attrgetter("size")
Wanted = list[tuple[LaneKey, LaneRow, Source]]


class Texts(NamedTuple):
    """Texts that a repository is to reach, by digest, and where those lie that nobody had stored before."""

    digests: Sequence[bytes] = ()
    placed: Sequence[FrameAt] = ()


async def place(tx: Tx, node: Node, repo_id: str, branch_id: str, changed: list[LaneRow]) -> Texts:
    """Write the current texts of edited lanes whose text the repository does not hold as bytes yet. One
    portion of them is in memory: a few bytes of an edit make a whole new text."""
    edited = {row.digest: row for row in changed if row.kind == "text" and row.edited}
    held = await content.held(tx, repo_id, edited.keys())
    placed: list[FrameAt] = []
    lacking = {digest: row for digest, row in edited.items() if digest not in held}
    for part in portions(lacking.values(), PORTION, _size):
        wanted = await _wanted(tx, node, repo_id, branch_id, part)
        placed += await node.objects.place(await node.lanes.run(_texts, node.lanes, wanted), tx)
    return Texts([*lacking], placed)


async def begin(tx: Tx, node: Node, repo_id: str, branch_id: str, at: int) -> None:
    """Start a new epoch of every edited lane that was not touched after `at`: its text is in the seal."""
    found = await tx.all(rows.EDITED, branch_id=branch_id, at=at)
    edited = [rows.row(one) for one in found]
    if not edited:
        return
    for part in portions(edited, PORTION, _size):
        await _keep_finals(tx, node, repo_id, branch_id, part)
    await tx.many(
        rows.DROP_LOG, [{"branch_id": branch_id, "gen": row.gen, "epoch": row.epoch} for row in edited]
    )
    await tx.many(
        rows.DROP_FINALS,
        [
            {"branch_id": branch_id, "gen": row.gen, "oldest": row.epoch + 1 - EPOCHS_RETAINED}
            for row in edited
        ],
    )
    await tx.many(rows.UPDATE, [_next(branch_id, row) for row in edited])


async def _keep_finals(tx: Tx, node: Node, repo_id: str, branch_id: str, part: list[LaneRow]) -> None:
    wanted = await _wanted(tx, node, repo_id, branch_id, part)
    states = await node.lanes.run(_states, node.lanes, wanted)
    await tx.many(
        rows.KEEP_FINAL,
        [
            {
                "branch_id": branch_id,
                "gen": row.gen,
                "epoch": row.epoch,
                "genesis": row.genesis,
                "state": states[frontier.key_of(branch_id, row)],
            }
            for row in part
        ],
    )


def _next(branch_id: str, row: LaneRow) -> dict[str, object]:
    fresh = msgspec.structs.replace(row, epoch=row.epoch + 1, genesis=row.digest, edited=False)
    return {**frontier.values(branch_id, fresh), "at_branch": branch_id, "at_path": row.path}


async def _wanted(tx: Tx, node: Node, repo_id: str, branch_id: str, edited: list[LaneRow]) -> Wanted:
    found = await frontier.sources(node, tx, repo_id, branch_id, edited)
    return [(key := frontier.key_of(branch_id, row), row, found[key]) for row in edited]


def _texts(lanes: Lanes, wanted: Wanted) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for key, row, source in wanted:
        lane = lanes.open(key, row.stand) or source.build(key)
        if lane.digest() != row.digest:
            raise UpdateInvalid(f"the log of {row.path} does not give its recorded text")
        found[row.digest] = lane.text()
    return found


def _states(lanes: Lanes, wanted: Wanted) -> dict[LaneKey, bytes]:
    states: dict[LaneKey, bytes] = {}
    for key, row, source in wanted:
        states[key] = (lanes.open(key, row.stand) or source.build(key)).state()
        lanes.drop([key])
    return states
