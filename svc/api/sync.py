"""What happens in repositories, as it happens: over a socket, or by asking again and again.

with api.sync.socket() as events:
    events.subscribe(repo.id)
    for event in events: ...  # Subscribed, Event, Hidden, Resync
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, get_args

import msgspec

from localstore.core.errors import ServerMisbehaved, from_problem
from localstore.core.model import sync
from localstore.core.model.sync import (
    Closing,
    Event,
    Hidden,
    PollAnswer,
    PollRequest,
    Resync,
    Subscribe,
    Subscribed,
    Unsubscribe,
)
from svc.http.answer import safe_problem
from svc.http.client import Http

if TYPE_CHECKING:
    from svc.http.websocket import WebSocket

SyncEvent = Event | Resync | Hidden | Subscribed
_Message = Event | Resync | Hidden | Subscribed | Closing
_TAGS = frozenset(kind.__struct_config__.tag for kind in get_args(_Message))


class _Tagged(msgspec.Struct):
    type: str


class SyncCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def socket(self) -> SyncSocket:
        """Open a socket; the current bounds (`svc.http.bounds`) hold until it is open."""
        from svc.http.websocket import open_socket

        return SyncSocket(open_socket(self._http, sync.SOCKET_PATH, sync.PROTOCOL))

    def poll(self, repo_ids: Sequence[str], since: int | None) -> PollAnswer:
        """Events of these repositories after `since`; None: none, only where the log stands."""
        return self._http.send(sync.POLL, PollRequest(repos=list(repo_ids), since=since))


class SyncSocket:
    """Events of the repositories that were subscribed to. One thread iterates or receives; any may subscribe,
    unsubscribe and close."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    def subscribe(self, repo_id: str, since: int | None = None) -> None:
        """Ask for the events of a repository after `since`; None: from now. Subscribed, Resync or Hidden
        follows."""
        self._say(Subscribe(repo_id=repo_id, since=since))

    def unsubscribe(self, repo_id: str) -> None:
        self._say(Unsubscribe(repo_id=repo_id))

    def receive(self, seconds: float | None = None) -> SyncEvent | None:
        """The next event; None if there was none for so many seconds. What this does not know is passed over.

        Raises what the server says before it closes (Unauthorized where the session has ended),
        ServerUnreachable when the line is gone, Cancelled after `close`."""
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

    def __iter__(self) -> Iterator[SyncEvent]:
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

    def _say(self, message: Subscribe | Unsubscribe) -> None:
        self._socket.send(msgspec.json.encode(message).decode())

    def _read(self, text: str) -> _Message | None:
        """The message, None for one of a kind that this svc does not know."""
        try:
            if msgspec.json.decode(text, type=_Tagged).type not in _TAGS:
                return None
            message: _Message = msgspec.json.decode(text, type=_Message)
            return message
        except (msgspec.MsgspecError, RecursionError):
            raise ServerMisbehaved(f"{self._socket.origin} sent a message that cannot be read") from None
