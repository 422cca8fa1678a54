"""Channels carry the live frames of a branch (messages with its changes) to its listeners, in the order of
the event log.

A live frame is written together with its event, in the transaction that moves the live frontier. The hub
delivers the event after all earlier events. If the earlier events changed rights, the rights are read again
first. Then the frame is delivered to the channels of the branch. The process that accepted an update still
has its frame in memory; other processes read it from the database.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable

from localstore.core.errors import Forbidden, NotFound, SvcError
from localstore.core.model.sync import Refused
from relay.db.engine.database import Database, Tx
from relay.db.live import frame as rows
from relay.events.log import LEVEL
from relay.events.peers import Channel, Frame, Peer
from relay.events.people import People

FRESH = 100  # frames of this process that wait for delivery
CAUGHT_UP, CAUGHT_UP_BYTES = 200, 512 * 1024  # frames that a listener who was away is sent
LIVE = LEVEL["writer"]  # the level needed for unsealed edits


def refusal(level: int) -> SvcError:
    """The error for a listener who may not see the live edits of a branch. `level`: the level of events that
    the listener may see in the repository; 0 for none."""
    return Forbidden("live edits are for those who may write") if level else NotFound()


class Channels:
    """The channels that are open in one process, with their listeners."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._rooms: dict[str, set[Channel]] = {}
        self._of_repo: dict[str, set[Channel]] = {}
        self._fresh: OrderedDict[tuple[str, int], Frame] = OrderedDict()
        self.people = People(self._listening, db.tell)

    def begin(self, channel: Channel) -> None:
        """Start to collect live frames (changes of the branch) for a new channel. `settle` returns them."""
        room = self._rooms.setdefault(channel.branch_id, set())
        if not room:
            self.people.begin(channel.branch_id)
        room.add(channel)
        self._of_repo.setdefault(channel.repo_id, set()).add(channel)
        channel.peer.channels[channel.number] = channel

    def settle(self, channel: Channel, seq: int) -> list[Frame]:
        """Open the channel for live frames (changes of the branch). `seq`: the number of the last update that
        the listener already has. Returns the frames collected since `begin` that come after this update."""
        channel.seq, waiting, channel.waiting = seq, channel.waiting or [], None
        return [frame for frame in waiting if frame.seq > seq]

    def end(self, channel: Channel, error: SvcError | None = None) -> None:
        """End the channel. `error`: the reason that is sent to its listener."""
        room = self._rooms.get(channel.branch_id, set())
        if channel not in room:
            return
        room.discard(channel)
        self._of_repo[channel.repo_id].discard(channel)
        if not self._of_repo[channel.repo_id]:
            del self._of_repo[channel.repo_id]
        channel.peer.leave(channel)
        self.people.leave(channel)
        if not room:
            del self._rooms[channel.branch_id]
            self.people.end(channel.branch_id)
        if error is not None:
            channel.ended = Refused(channel=channel.number, code=error.code, detail=error.detail)
            if channel.waiting is None:
                channel.peer.ended.append(channel.ended)
                channel.peer.ready.set()

    # --- rights

    @property
    def repos(self) -> Collection[str]:
        """The ids of the repositories for whose branches channels are open."""
        return self._of_repo.keys()

    def peers(self, repo_id: str) -> set[Peer]:
        """The peers that have channels for branches of this repository."""
        return {channel.peer for channel in self._of_repo.get(repo_id, ())}

    def allow(self, peer: Peer, repo_id: str, level: int) -> None:
        """End the peer's channels in the repository if it may no longer see live edits there. `level`: the
        level of events that it may now see (`relay.events.log.LEVEL`); 0 for none."""
        if level < LIVE:
            for channel in [
                open_channel for open_channel in self._of_repo.get(repo_id, ()) if open_channel.peer is peer
            ]:
                self.end(channel, refusal(level))

    def end_branch(self, repo_id: str, name: str) -> None:
        """End the channels of a deleted branch."""
        for channel in [
            open_channel for open_channel in self._of_repo.get(repo_id, ()) if open_channel.branch == name
        ]:
            self.end(channel, NotFound())

    # --- frames

    def remember(self, frame: Frame) -> None:
        """Keep a live frame that this process committed, until its event is delivered."""
        if frame.branch_id in self._rooms:
            self._fresh[frame.branch_id, frame.seq] = frame
            if len(self._fresh) > FRESH:
                self._fresh.popitem(last=False)

    async def hand_out(self, branch_id: str, seq: int) -> None:
        """Deliver the live frame that ends with the update number `seq` to the channels of the branch."""
        frame = self._fresh.pop((branch_id, seq), None)
        if all(channel.waiting is None and channel.seq >= seq for channel in self._listening(branch_id)):
            return
        if frame is None:
            async with self._db.read() as tx:
                row = await tx.one(rows.ONE, branch_id=branch_id, seq=seq)
            frame = Frame(branch_id, *row) if row else Frame(branch_id, seq, seq, None)
        for channel in self._listening(branch_id):
            channel.offer(frame)

    async def since(self, tx: Tx, branch_id: str, since: int, seq: int) -> list[Frame] | None:
        """Read the live frames from the update number `since` to `seq`, the current one. Returns None if some
        of them were deleted or there are too many."""
        if since == seq:
            return []
        count, weight = await tx.one(rows.WEIGHT, branch_id=branch_id, since=since) or (0, 0)
        if count > CAUGHT_UP or weight > CAUGHT_UP_BYTES:
            return None
        frames = [
            Frame(branch_id, *row) for row in await tx.all(rows.SINCE, branch_id=branch_id, since=since)
        ]
        for frame in frames:
            if frame.after != since or frame.message is None:
                return None
            since = frame.seq
        return frames if since == seq else None

    def _listening(self, branch_id: str) -> Iterable[Channel]:
        return tuple(self._rooms.get(branch_id, ()))
