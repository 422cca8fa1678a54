"""Rules of listening: who may hear of which repository, for how long, and what a socket may say."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from localstore.core.errors import BadRequest, Forbidden, Invalid, SvcError, TooLarge, Unauthorized
from localstore.core.limits import SUBSCRIPTIONS
from localstore.core.model.sync import (
    Closing,
    Hidden,
    PollAnswer,
    PollRequest,
    Resync,
    Subscribe,
    Subscribed,
    Unsubscribe,
)
from relay.caller import Caller
from relay.events.log import LEVEL, Audience
from relay.events.peers import Peer
from relay.http.limiter import SUBSCRIBE

FRAME_BYTES = 4096  # of one message from a client
REPO_ID_CHARS = 64
INT64 = 2**63 - 1

_decoder: msgspec.json.Decoder[Subscribe | Unsubscribe] = msgspec.json.Decoder(Subscribe | Unsubscribe)
_encode = msgspec.json.Encoder().encode

Message = Resync | Hidden | Subscribed | Closing
Send = Callable[[Sequence[bytes]], Awaitable[None]]
Receive = Callable[[], Awaitable[str | bytes | None]]


async def poll(caller: Caller, body: PollRequest) -> PollAnswer:
    """Events of the repositories the caller may see."""
    asked, most = [one for one in body.repos if _may_be_one(one)], _most(caller)
    heard = await caller.node.hub.heard_by(_account(caller), asked)
    levels = {one: min(audience, most, key=LEVEL.__getitem__) for one, audience in heard.items()}
    events, after, more, lost = await caller.node.hub.poll(levels, body.since)
    hidden = [repo_id for repo_id in body.repos if repo_id not in levels]
    return PollAnswer(events=events, next=after, more=more, hidden=hidden, resync=lost)


def require_own_origin(caller: Caller, origins: Sequence[str]) -> None:
    """A browser sends its cookie with a WebSocket from any page; Forbidden unless the page is ours."""
    own = caller.node.config.authorities()
    if caller.me.via == "cookie" and not (len(origins) == 1 and origins[0].partition("://")[2] in own):
        raise Forbidden(f"this socket was not opened by a page of {caller.node.config.public_url}")


class Conversation:
    """One socket. `receive` answers None when the client has gone; `send` waits for a slow reader, and only
    this conversation waits with it."""

    def __init__(self, caller: Caller, send: Send, receive: Receive) -> None:
        self._caller = caller
        self._send = send
        self._receive = receive
        self._hub = caller.node.hub
        self._turn = asyncio.Lock()  # of subscribing, and of sending what waits

    async def run(self) -> None:
        """Until the client leaves, errs, or its session ends; the last message then says why."""
        who = self._caller.principal
        peer = self._hub.join(
            who.session_id if who else None,
            _account(self._caller),
            _most(self._caller),
            who.expires_at if who and who.via != "self" else None,  # a key holds until it is revoked
        )
        tasks = [asyncio.create_task(self._hear(peer)), asyncio.create_task(self._tell(peer))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await self._conclude(task)
        finally:
            self._hub.leave(peer)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _conclude(self, task: asyncio.Task[None]) -> None:
        try:
            task.result()
        except OSError:
            return  # the client has gone
        except SvcError as error:
            with contextlib.suppress(OSError):
                await self._say(Closing(code=error.code, detail=error.detail))

    async def _hear(self, peer: Peer) -> None:
        while (frame := await self._receive()) is not None:
            await self._obey(peer, _read(frame))

    async def _obey(self, peer: Peer, body: Subscribe | Unsubscribe) -> None:
        if isinstance(body, Unsubscribe):
            self._hub.unsubscribe(peer, body.repo_id)
            return
        if len(peer.cursors) >= SUBSCRIPTIONS and body.repo_id not in peer.cursors:
            raise Invalid(f"one socket listens to at most {SUBSCRIPTIONS} repositories")
        await self._pause()
        if not _may_be_one(body.repo_id):
            await self._say(Hidden(repo_id=body.repo_id))
            return
        async with self._turn:
            await self._say(await self._hub.subscribe(peer, body.repo_id, body.since))

    async def _pause(self) -> None:
        """Whoever subscribes very often waits."""
        who = self._caller.principal
        limiter = self._caller.node.limiter
        await asyncio.sleep(limiter.frames(who.session_id if who else "", self._caller.network, SUBSCRIBE))

    async def _tell(self, peer: Peer) -> None:
        while not peer.over:
            await peer.ready.wait()
            async with self._turn:
                if not peer.over:
                    await self._send(peer.take())
        raise Unauthorized("the session has ended; run: svc login", reason="ended")

    async def _say(self, message: Message) -> None:
        await self._send([_encode(message)])


def _read(frame: str | bytes) -> Subscribe | Unsubscribe:
    if len(frame) > FRAME_BYTES:
        raise TooLarge(f"a message has at most {FRAME_BYTES} bytes")
    try:
        return _decoder.decode(frame)
    except msgspec.ValidationError as error:
        raise Invalid(str(error)) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise BadRequest("the message is not JSON") from None


def _may_be_one(repo_id: str) -> bool:
    """Whether a text can be the id of a repository at all."""
    return len(repo_id) <= REPO_ID_CHARS and repo_id.isascii() and repo_id.isalnum()


def _most(caller: Caller) -> Audience:
    """What the credential includes: whoever comes with a token that only reads is a reader."""
    caps = caller.principal.caps if caller.principal else frozenset()
    return "owner" if "admin" in caps else "writer" if "write" in caps else "reader"


def _account(caller: Caller) -> str:
    return caller.principal.account_id if caller.principal else ""
