"""What happened in repositories, over a WebSocket (`svc-sync.v1`) or by polling.

On the socket both sides send JSON text frames, told apart by `type`. Client: `auth` (first, when neither
cookie nor signed upgrade headers signed it in), `subscribe`, `unsubscribe`. Server: `subscribed`, `hidden`,
`event`, `resync`, and `closing` before it closes.
"""

from __future__ import annotations

from typing import Any

from localstore.core.endpoint import Endpoint
from localstore.core.model.base import Model


class Event(Model, frozen=True, tag="event"):
    """`id` grows with every event of the node; `kind` is live, seal, ref or repo; `data` holds ids, numbers
    and names, never content."""

    id: int
    repo_id: str
    kind: str
    data: dict[str, Any]


class Resync(Model, frozen=True, tag="resync"):
    """Events of this repository were lost; read its state anew, then go on after event `id`."""

    repo_id: str
    id: int


class Subscribed(Model, frozen=True, tag="subscribed"):
    """Events of this repository after `id` follow."""

    repo_id: str
    id: int


class Hidden(Model, frozen=True, tag="hidden"):
    """There is no such repository for this caller, or no longer."""

    repo_id: str


class Closing(Model, frozen=True, tag="closing"):
    """The socket closes; `code` and `detail` as in a problem document."""

    code: str
    detail: str


class Subscribe(Model, frozen=True, tag="subscribe"):
    """Listen to a repository from after event `since`; None: from now."""

    repo_id: str
    since: int | None = None


class Unsubscribe(Model, frozen=True, tag="unsubscribe"):
    repo_id: str


class PollRequest(Model, frozen=True):
    """Events of `repos` (ids) after `since`; None: none yet, only where the log stands."""

    repos: list[str]
    since: int | None = None


class PollAnswer(Model, frozen=True):
    """`next`: the `since` of the next poll. `more`: ask again at once. `hidden`: ids that are no
    repositories for this caller."""

    events: list[Event]
    next: int
    more: bool
    hidden: list[str]


PROTOCOL = "svc-sync.v1"
SOCKET_PATH = "/api/v1/sync/ws"
POLL = Endpoint("POST", "/api/v1/sync/poll", body=PollRequest, returns=PollAnswer, repeatable=True)
