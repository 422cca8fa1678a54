"""Handles a client's requests on a channel: open it, send updates, report in which file the user is.

Channels need the role write, like the live frontier; writers see all paths.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from localstore.core import names, paths
from localstore.core.errors import Invalid, NotFound, SvcError, Unauthorized
from localstore.core.model.limits import CHANNELS
from localstore.core.model.live import UpdateAnswers, UpdateBatch
from localstore.core.model.sync import (
    Answers,
    ChannelUnknown,
    Gap,
    Here,
    Open,
    Opened,
    People,
    PollChannel,
    Refused,
    Updates,
    UserPlace,
)
from relay.caller import View
from relay.domain.live import frontier, live
from relay.domain.live import replica as replicas
from relay.events import people as presence
from relay.events.channels import LIVE, Channels, refusal
from relay.events.peers import Channel, Frame, Peer

FLAG = "TR_REPO_LIVE_TEXT"
T = TypeVar("T")
_encode = msgspec.json.Encoder().encode


class RunOnRepository(Protocol):
    """A function that runs `work` on a repository. It first checks everything that the gate checks for a
    request of the operation `operation`."""

    async def __call__(self, operation: str, repo_id: str, work: Callable[[View], Awaitable[T]]) -> T: ...


async def open_channel(door: RunOnRepository, peer: Peer, body: Open) -> list[bytes]:
    """Open a channel. Returns its first messages, or the message that refuses it. Later messages are queued
    for the client `peer`. `door`: the function that checks the client's rights and runs work on a
    repository."""
    try:
        if body.channel not in peer.channels and len(peer.channels) >= CHANNELS:
            raise Invalid(f"one socket has at most {CHANNELS} channels; close one first")
        return await door("live.bootstrap", body.repo_id, partial(_begin_channel, peer=peer, body=body))
    except Unauthorized:
        raise  # ends the socket
    except SvcError as error:
        return [to_refusal(body.channel, error)]


async def _begin_channel(view: View, peer: Peer, body: Open) -> list[bytes]:
    view.require_whole()
    if not view.node.config.flags.on(FLAG):
        raise NotFound
    channels = view.node.hub.channels
    if body.channel in peer.channels:
        channels.end(peer.channels[body.channel])
    ref = await frontier.find_branch(view.node.db.lookup, view.repo.id, body.branch)
    key = await live.my_key(view.node.db.lookup, view, body.device_key_id)
    channel = Channel(
        number=body.channel,
        peer=peer,
        repo_id=view.repo.id,
        branch_id=ref.id,
        branch=ref.name,
        replica=body.replica,
        device_key_id=key.id,
        conn=presence.conn_of(ref.id, body.replica),
        who=view.me.handle or "",
        device=key.name,
    )
    channels.begin(channel)  # first, so that no later frame is missed
    try:
        opened, frames = await _catch_up(view, channels, channel, body.since)
        level = await view.node.hub.may_hear(peer, view.repo.id)  # later changes are delivered in order
        if level < LIVE:
            raise refusal(level)
    except BaseException:
        channels.end(channel)
        raise
    if channel.ended is not None:
        return [_encode(channel.ended)]
    messages = [_encode(opened)]
    if frames is None:
        messages.append(_encode(Gap(channel=channel.number, seq=opened.seq)))
    else:
        messages += [frame.message.text(channel.number) for frame in frames if frame.message]
    if isinstance(body, PollChannel) and body.here is not None:
        channels.people.set_place_of_poll(channel, _check_place(body.here))
    everybody = channels.people.everybody(channel)
    messages.append(_encode(People(channel=channel.number, here=everybody, gone=[])))
    for frame in channels.settle(channel, opened.seq):
        channel.offer(frame)
    return messages


async def _catch_up(
    view: View, channels: Channels, channel: Channel, since: int | None
) -> tuple[Opened, list[Frame] | None]:
    async with view.read(snapshot=True) as tx:
        ref = await frontier.find_branch(tx.one, view.repo.id, channel.branch)
        if ref.id != channel.branch_id:
            raise NotFound
        key = await live.my_key(tx.one, view, channel.device_key_id)
        await replicas.find_own(tx, view, ref, key, channel.replica)
        frames = await channels.since(tx, ref.id, ref.seq if since is None else since, ref.seq)
    return Opened(channel=channel.number, branch_id=ref.id, seq=ref.seq, head=ref.head), frames


async def answer_updates(door: RunOnRepository, peer: Peer, body: Updates) -> bytes:
    """Apply a batch of updates. Returns the message with the answers to them, or the message that refuses the
    batch."""
    try:
        channel = _channel(peer, body.channel)
        if (body.batch.replica, body.batch.device_key_id) != (channel.replica, channel.device_key_id):
            raise Invalid("the updates of a channel are those of its replica and device", "/batch/replica")
        answers = await door("live.updates", channel.repo_id, partial(_accept, channel, body.batch))
        return _encode(Answers(channel=body.channel, id=body.id, answers=answers))
    except Unauthorized:
        raise  # ends the socket
    except SvcError as error:
        return to_refusal(body.channel, error, body.id)


async def _accept(channel: Channel, batch: UpdateBatch, view: View) -> UpdateAnswers:
    return await live.accept(view, channel.branch, batch)


def set_place(peer: Peer, people: presence.People, body: Here) -> bytes | None:
    """Record in which file and line the channel's user is. Returns None, or the message that refuses it."""
    try:
        people.set_place(_channel(peer, body.channel), _check_place(body))
    except SvcError as error:
        return to_refusal(body.channel, error)
    return None


def _check_place(place: UserPlace) -> UserPlace:
    if place.path:
        paths.check(place.path)
    if place.turn is not None:
        names.turn(place.turn)
    return place


def _channel(peer: Peer, number: int) -> Channel:
    channel = peer.channels.get(number)
    if channel is None:
        raise ChannelUnknown(f"channel {number} is not open", "/channel")
    return channel


def to_refusal(number: int, error: SvcError, id: int | None = None) -> bytes:
    """Make the message that refuses a client's message on the channel `number`. `id`: the id of the refused
    updates, if the message had updates."""
    extra: Mapping[str, object] = error.extra
    wait = extra.get("retry_after")
    message = Refused(
        channel=number,
        code=error.code,
        detail=error.detail,
        id=id,
        retry_after=wait if isinstance(wait, int) else 0,
    )
    return _encode(message)
