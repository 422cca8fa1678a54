"""Sends the changes that the app makes on a server. They all go through the outbox, so that none is lost if
there is no network.

    sending.put(issue.COMMENT, CommentBody(body="Seen"), about="alice/notes", id=repo_id, n="41")
    report = sending.send()
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from localstore.core.endpoint import Endpoint
from localstore.core.errors import Unauthorized
from localstore.home import Home
from localstore.outbox import Outbox, QueuedAction
from svc.api import Api
from svc.flows.outbox.actions import Queue, Report, replay
from svc.http.session import Session


class Sending:
    """The outbox (the actions that wait for a server), for one session. `connect`: returns the API for an
    origin and an account. The methods wait for the server or the disk, so call them on threads."""

    def __init__(
        self, outbox: Outbox, home: Home, session: Session | None, connect: Callable[[str, str], Api]
    ) -> None:
        self._outbox, self._home, self._session, self._connect = outbox, home, session, connect
        self._lock = threading.Lock()
        self._put: set[str] = set()  # ids of the actions that this app put into the outbox

    @property
    def signed_in(self) -> bool:
        return self._session is not None

    def put(
        self, endpoint: Endpoint[Any], body: Any = None, query: Any = None, *, about: str, **path: str
    ) -> QueuedAction:
        """Put a change into the outbox, and return it as a queued action. `about`: OWNER/NAME of the
        repository. Raises Unauthorized without a session, and UsageError for an invalid change."""
        if self._session is None:
            raise Unauthorized("sign in to change anything: svc login")
        entry = Queue(self._outbox, self._session, about).put(endpoint, body, query, **path)
        self._put.add(entry.id)
        return entry

    def is_own(self, entry: QueuedAction) -> bool:
        """Whether this app put the action into the outbox. Commands and other apps put theirs there too."""
        return entry.id in self._put

    def is_mine(self, entry: QueuedAction) -> bool:
        """Whether the action belongs to the account that is signed in. The outbox has the actions of all
        accounts."""
        session = self._session
        return session is not None and (entry.origin, entry.account) == (session.origin, session.user_id)

    def send(self) -> Report:
        """Send the actions in the outbox. Returns what became of them. Raises ClientError while another
        process is sending."""
        with self._lock:
            return replay(self._outbox, self._home, self._connect)

    def entries(self) -> list[QueuedAction]:
        """Returns all waiting and refused actions in the outbox, the oldest first."""
        return self._outbox.list()

    def stamp(self) -> tuple[tuple[int, int], ...]:
        """Returns what differs as soon as any process has changed the outbox, without reading the outbox."""
        return self._outbox.stamp()

    def retry(self, entry: QueuedAction) -> None:
        self._outbox.retry(entry.id)

    def drop(self, entry: QueuedAction) -> None:
        self._outbox.remove(entry.id)

    def close(self) -> None:
        self._outbox.close()
