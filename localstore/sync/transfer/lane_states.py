"""Fetches the states of lanes in as many requests as are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from localstore.core.errors import ServerMisbehaved
from localstore.core.model.live import LaneName, LanesRequest, LaneState
from localstore.sync.transfer.transport import Transport

LANES_PER_REQUEST = 200


def lane_states(transport: Transport, names: Sequence[LaneName]) -> Iterator[LaneState]:
    """Yields the states of the requested lanes. Lanes that the relay no longer has are left out. Raises
    ServerMisbehaved if an answer leaves out every lane."""
    start = 0
    while start < len(names):
        batch = list(names[start : start + LANES_PER_REQUEST])
        answer = transport.lanes(LanesRequest(lanes=batch))
        if answer.left >= len(batch):
            raise ServerMisbehaved("the server left out every lane that was asked for; try again")
        yield from answer.lanes
        start += len(batch) - answer.left
