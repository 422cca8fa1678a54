"""Receives events of repositories as they happen, over a socket or by polling.

with api.sync.socket() as events:
    events.subscribe(repo.id)
    events.open(1, repo.id, "main", replica, key.id, since=bootstrap.seq)
    for event in events: ...  # of the repository: Subscribed, Event, Hidden, Resync
                              # of the branch: Opened, Live, Gap, Answers, Refused, People
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, get_args

import msgspec

from localstore.core.errors import ServerMisbehaved, TooLarge, from_problem
from localstore.core.model import sync
from localstore.core.model.limits import SOCKET_MESSAGE
from localstore.core.model.live import UpdateBatch
from localstore.core.model.sync import (
    Answers,
    Asked,
    Close,
    Closing,
    Doing,
    Event,
    Gap,
    Here,
    Hidden,
    Live,
    Open,
    Opened,
    People,
    PollAnswer,
    PollChannel,
    PollRequest,
    Refused,
    Resync,
    Subscribe,
    Subscribed,
    Told,
    Unsubscribe,
    Updates,
)
from svc.http.answer import safe_problem
from svc.http.client import Http

if TYPE_CHECKING:
    from svc.http.websocket import WebSocket

Heard = Event | Resync | Hidden | Subscribed | Opened | Refused | Live | Gap | Answers | People
_TAGS = frozenset(kind.__struct_config__.tag for kind in get_args(Told))
_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[Told] = msgspec.json.Decoder(Told)


class _Tagged(msgspec.Struct):
    type: str


class SyncCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def socket(self) -> SyncSocket:
        """Open a socket. Deadlines and cancels of this thread (`svc.http.bounds`) apply while it is being
        opened, but not later."""
        from svc.http.websocket import open_socket

        return SyncSocket(open_socket(self._http, sync.SOCKET_PATH, sync.PROTOCOL))

    def poll(
        self,
        repo_ids: Sequence[str],
        since: int | None,
        channels: Sequence[PollChannel] = (),
        wait: int = 0,
    ) -> PollAnswer:
        """Ask for new events, and for new changes of branches (live frames). The server waits up to `wait`
        seconds until there is something to answer.

        The events are those of the repositories `repo_ids` after the number `since` in the event log. If
        `since` is None, only the newest number is returned. `channels` names the branches."""
        body = PollRequest(repos=list(repo_ids), since=since, channels=list(channels), wait=wait)
        return self._http.send(sync.POLL, body)


class SyncSocket:
    """A socket that delivers the events of subscribed repositories, and the changes (live frames) of opened
    branches. Only one thread may receive or iterate. Any thread may send and close."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    def subscribe(self, repo_id: str, since: int | None = None) -> None:
        """Request the events of a repository after the number `since` in the event log. If `since` is None,
        only new events are sent. The server first answers with `Subscribed`. Or it answers with `Hidden` if
        the user may not see the repository, or `Resync` if events after `since` are no longer there."""
        self._say(Subscribe(repo_id=repo_id, since=since))

    def unsubscribe(self, repo_id: str) -> None:
        self._say(Unsubscribe(repo_id=repo_id))

    def open(
        self,
        channel: int,
        repo_id: str,
        branch: str,
        replica: int,
        device_key_id: str,
        since: int | None = None,
    ) -> None:
        """Open a channel for this branch, under the number `channel`. `since` is the last sequence number
        that the client knows. If it is None, only new updates are sent. The server answers with Opened or
        Refused."""
        self._say(
            Open(
                channel=channel,
                repo_id=repo_id,
                branch=branch,
                replica=replica,
                device_key_id=device_key_id,
                since=since,
            )
        )

    def close_channel(self, channel: int) -> None:
        self._say(Close(channel=channel))

    def send_updates(self, channel: int, id: int, batch: UpdateBatch) -> None:
        """Send updates under the number `id`. The server repeats this number in its answer, which is
        `Answers`, or `Refused` if it carried out none of them. Raises TooLarge, without sending, if the batch
        is too large for the socket; then send it by an HTTP request. After a lost connection, send the batch
        again: the relay applies each update only once."""
        text = _encode(Updates(channel=channel, id=id, batch=batch))
        if len(text) > SOCKET_MESSAGE:
            raise TooLarge(f"a message has at most {SOCKET_MESSAGE} bytes; send this batch as a request")
        self._socket.send(text.decode())

    def send_here(
        self,
        channel: int,
        path: str = "",
        line: int = 0,
        col: int = 0,
        state: Doing = "view",
        turn: str | None = None,
    ) -> None:
        """Report to the others on the branch where the user is, and whether the user edits, views or does
        nothing (`state`). `turn` names the piece of work of an AI agent that edits for the user. Call it at
        most 5 times a second, and at least every 30 seconds."""
        self._say(Here(channel=channel, path=path, line=line, col=col, state=state, turn=turn))

    def receive(self, seconds: float | None = None) -> Heard | None:
        """Return the next event. None if there was none within `seconds`. Messages of unknown kinds are
        skipped.

        Raises Cancelled after `close`, ServerUnreachable if the connection is lost, or the error that the
        server sent before it closed the socket (Unauthorized if the session has ended)."""
        while True:
            text = self._socket.receive(seconds)
            if text is None:
                return None
            message = self._read(text)
            if isinstance(message, Closing):
                self.close()
                raise from_problem(safe_problem({"code": message.code, "detail": message.detail}), 0)
            if message is not None:
                return message

    def close(self) -> None:
        self._socket.close()

    def __iter__(self) -> Iterator[Heard]:
        while True:
            event = self.receive()
            if event is not None:
                yield event

    def __enter__(self) -> SyncSocket:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _say(self, message: Asked) -> None:
        self._socket.send(_encode(message).decode())

    def _read(self, text: str) -> Told | None:
        """Return the decoded message; None if its kind is unknown."""
        try:
            if msgspec.json.decode(text, type=_Tagged).type not in _TAGS:
                return None
            message: Told = _decoder.decode(text)
            return message
        except (msgspec.MsgspecError, RecursionError):
            raise ServerMisbehaved(f"{self._socket.origin} sent a message that cannot be read") from None
