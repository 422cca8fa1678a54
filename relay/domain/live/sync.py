"""Sends events of repositories over a WebSocket, or in answers to polling (docs/design/008).

A socket receives events of the repositories that it subscribes to, and has a channel for each branch that it
opens. Its rights are read again whenever they may have changed (`relay.events.hub`). A client that sends very
many frames is slowed down by the budgets of its session and address. A client that reads too slowly loses
events and frames, and gets a message about it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from time import monotonic

import msgspec

from localstore.core.errors import (
    BadRequest,
    Forbidden,
    Invalid,
    NotFound,
    SvcError,
    TooLarge,
    Unauthorized,
)
from localstore.core.model.limits import SUBSCRIPTIONS
from localstore.core.model.sync import (
    Asked,
    Close,
    Closing,
    Frame,
    Here,
    Hidden,
    Open,
    Opened,
    People,
    PollAnswer,
    PollRequest,
    Subscribe,
    Unsubscribe,
    Updates,
)
from relay.caller import Caller
from relay.capacity.limiter import SUBSCRIBE
from relay.domain.live import channel
from relay.domain.live.channel import RunOnRepository
from relay.events.log import LEVEL, Audience
from relay.events.peers import Peer
from relay.http.storable import require_storable_json

FRAME_BYTES = 4096  # of one message from a client without updates
REPO_ID_CHARS = 64
INT64 = 2**63 - 1

_decoder: msgspec.json.Decoder[Asked] = msgspec.json.Decoder(Asked)
_frame: Callable[[bytes], Frame] = msgspec.json.Decoder(Frame).decode
_encode = msgspec.json.Encoder().encode

Send = Callable[[Sequence[bytes]], Awaitable[None]]
AtOnce = Callable[[Sequence[bytes]], bool]
Receive = Callable[[], Awaitable[str | bytes | None]]


async def poll(caller: Caller, body: PollRequest) -> PollAnswer:
    """Return the events of the repositories that the caller may see, without waiting for new ones."""
    repo_ids, most = (
        [repo_id for repo_id in body.repos if _is_possible_id(repo_id)],
        _highest_audience(caller),
    )
    audiences = await caller.node.hub.heard_by(_account_id_of(caller), repo_ids)
    levels = {repo_id: min(audience, most, key=LEVEL.__getitem__) for repo_id, audience in audiences.items()}
    events, after, more, lost = await caller.node.hub.poll(levels, body.since)
    hidden = [repo_id for repo_id in body.repos if repo_id not in levels]
    return PollAnswer(events=events, next=after, more=more, hidden=hidden, resync=lost)


async def wait(caller: Caller, body: PollRequest, door: RunOnRepository) -> PollAnswer:
    """Wait for events of the repositories that the caller may see, and for frames of the requested branches.
    Returns as soon as there are any, or after `body.wait` seconds. `door`: the function that checks the
    caller's rights and runs work on a repository."""
    until = monotonic() + body.wait
    with _join(caller) as peer:
        messages: list[bytes] = []
        for opening in body.channels:
            await _pause(caller)
            messages += await _open(opening, peer, door)
        frames = [_frame(text) for text in messages]
        calm = all(isinstance(frame, Opened | People) for frame in frames) and (
            body.since is not None or not body.repos
        )
        await caller.node.hub.wake_at_events(
            peer, [repo_id for repo_id in body.repos if _is_possible_id(repo_id)]
        )
        first = await poll(caller, body)
        answer = first
        while calm and not (answer.events or answer.resync or answer.hidden != first.hidden):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(until - monotonic()):
                    await peer.ready.wait()
            if peer.over:
                raise Unauthorized("the session has ended; run: svc login", reason="ended")
            later = [_frame(text) for text in peer.take_frames()]
            frames += later
            calm = not later and monotonic() < until
            answer = await poll(caller, body)
        return msgspec.structs.replace(answer, frames=frames)


def require_own_origin(caller: Caller, origins: Sequence[str]) -> None:
    """Raise Forbidden if a page of another site opened the WebSocket. This is needed because browsers send
    our cookies with it."""
    own = caller.node.config.authorities()
    if caller.me.via == "cookie" and not (len(origins) == 1 and origins[0].partition("://")[2] in own):
        raise Forbidden(f"this socket was not opened by a page of {caller.node.config.public_url}")


class Conversation:
    """The conversation with one client over a socket. `receive`: returns the next message, or None when the
    client has disconnected. `send`: sends messages, and waits if the client reads slowly. `at_once`: sends
    messages only if the client has received all earlier ones; otherwise returns False. `door`: the function
    that checks the client's rights and runs work on a repository."""

    def __init__(
        self, caller: Caller, send: Send, at_once: AtOnce, receive: Receive, door: RunOnRepository
    ) -> None:
        self._caller = caller
        self._send = send
        self._at_once = at_once
        self._receive = receive
        self._door = door
        self._hub = caller.node.hub
        self._turn = asyncio.Lock()  # held while subscribing, opening, or sending queued messages

    async def run(self) -> None:
        """Serve until the client disconnects or makes an error, or its session ends. Then send the reason."""
        with _join(self._caller) as peer:
            peer.at_once = lambda texts: not self._turn.locked() and self._at_once(texts)
            tasks = [asyncio.create_task(self._hear(peer)), asyncio.create_task(self._tell(peer))]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    await self._conclude(task)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _conclude(self, task: asyncio.Task[None]) -> None:
        try:
            task.result()
        except OSError:
            return  # the client has disconnected
        except SvcError as error:
            with contextlib.suppress(OSError):
                await self._send([_encode(Closing(code=error.code, detail=error.detail))])

    async def _hear(self, peer: Peer) -> None:
        while (frame := await self._receive()) is not None:
            await self._obey(peer, _read(frame))

    async def _obey(self, peer: Peer, body: Asked) -> None:
        match body:
            case Subscribe():
                await self._subscribe(peer, body)
            case Unsubscribe():
                self._hub.unsubscribe(peer, body.repo_id)
            case Open():
                await _pause(self._caller)
                async with self._turn:
                    await self._send(await _open(body, peer, self._door))
            case Close():
                if body.channel in peer.channels:
                    self._hub.channels.end(peer.channels[body.channel])
            case Updates():
                await self._send([await channel.answer_updates(self._door, peer, body)])
            case Here():
                refused = channel.set_place(peer, self._hub.channels.people, body)
                if refused is not None:
                    await self._send([refused])

    async def _subscribe(self, peer: Peer, body: Subscribe) -> None:
        if len(peer.cursors) >= SUBSCRIPTIONS and body.repo_id not in peer.cursors:
            raise Invalid(f"one socket listens to at most {SUBSCRIPTIONS} repositories")
        await _pause(self._caller)
        if not _is_possible_id(body.repo_id):
            await self._send([_encode(Hidden(repo_id=body.repo_id))])
            return
        async with self._turn:
            await self._send([_encode(await self._hub.subscribe(peer, body.repo_id, body.since))])

    async def _tell(self, peer: Peer) -> None:
        while not peer.over:
            await peer.ready.wait()
            async with self._turn:
                if not peer.over:
                    await self._send(peer.drain())
        raise Unauthorized("the session has ended; run: svc login", reason="ended")


@contextlib.contextmanager
def _join(caller: Caller) -> Iterator[Peer]:
    who, hub = caller.principal, caller.node.hub
    peer = hub.join(
        who.session_id if who else None,
        _account_id_of(caller),
        _highest_audience(caller),
        who.expires_at if who and who.via != "self" else None,  # a key holds until it is revoked
    )
    try:
        yield peer
    finally:
        hub.leave(peer)


async def _open(body: Open, peer: Peer, door: RunOnRepository) -> list[bytes]:
    if not _is_possible_id(body.repo_id):
        return [channel.to_refusal(body.channel, NotFound())]
    return await channel.open_channel(door, peer, body)


async def _pause(caller: Caller) -> None:
    """Wait if the caller subscribes or opens channels too often."""
    session = caller.principal.session_id if caller.principal else ""
    await asyncio.sleep(caller.node.limiter.frames(session, caller.network, SUBSCRIBE))


def _read(frame: str | bytes) -> Asked:
    try:
        body = _decoder.decode(frame)
    except msgspec.ValidationError as error:
        raise Invalid(str(error)) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise BadRequest("the message is not JSON") from None
    if len(frame) > FRAME_BYTES and not isinstance(body, Updates):
        raise TooLarge(f"a message without updates has at most {FRAME_BYTES} bytes")
    require_storable_json(frame.encode() if isinstance(frame, str) else frame)
    return body


def _is_possible_id(repo_id: str) -> bool:
    """Whether the text can be a repository id."""
    return len(repo_id) <= REPO_ID_CHARS and repo_id.isascii() and repo_id.isalnum()


def _highest_audience(caller: Caller) -> Audience:
    """The highest audience whose events the credential may receive: `owner` if it has the right `admin`,
    `writer` if it has the right `write`, else `reader`."""
    caps = caller.principal.caps if caller.principal else frozenset()
    return "owner" if "admin" in caps else "writer" if "write" in caps else "reader"


def _account_id_of(caller: Caller) -> str:
    return caller.principal.account_id if caller.principal else ""
