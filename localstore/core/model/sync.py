"""Events of repositories, over a WebSocket (`svc-sync.v1`) or by polling.

On the socket both sides send JSON text frames with a `type`. Client: `auth` (first, unless a cookie or signed
upgrade headers signed it in), `subscribe`, `unsubscribe`. Server: `subscribed`, `hidden`, `event`, `resync`,
and `closing` before it closes.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from localstore.core.endpoint import Endpoint
from localstore.core.limits import SUBSCRIPTIONS
from localstore.core.model.base import Model

EventId = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1, description="the id of an event")]


class Event(Model, frozen=True, tag="event"):
    """`id` grows with every event of the node; `kind` is `noun.verb`, as in `ref.create`, or `live`; `data`
    holds ids, numbers and names, never content. `actor`: the account that did it, "operator", or "" for the
    node; `device_key_id`: the key that signed the request; `turn`: what an agent calls its turn; `number`: of
    the issue or proposal."""

    id: int
    repo_id: str
    kind: str
    data: dict[str, Any]
    actor: str = ""
    device_key_id: str | None = None
    turn: str | None = None
    number: int | None = None


class Resync(Model, frozen=True, tag="resync"):
    """Events of this repository were lost: read its state again, then continue after event `id`."""

    repo_id: str
    id: int


class Subscribed(Model, frozen=True, tag="subscribed"):
    """Events of this repository after `id` follow."""

    repo_id: str
    id: int


class Hidden(Model, frozen=True, tag="hidden"):
    """The repository does not exist, or the caller may not see it."""

    repo_id: str


class Closing(Model, frozen=True, tag="closing"):
    """The socket closes; `code` and `detail` are those of a problem document."""

    code: str
    detail: str


class Subscribe(Model, frozen=True, tag="subscribe"):
    """Receive the events of a repository after event `since`; None: from now on."""

    repo_id: str
    since: EventId | None = None


class Unsubscribe(Model, frozen=True, tag="unsubscribe"):
    repo_id: str


class PollRequest(Model, frozen=True):
    """Ask for events of `repos` (ids) after `since`; None: only for the current event id."""

    repos: Annotated[list[str], msgspec.Meta(max_length=SUBSCRIPTIONS)]
    since: EventId | None = None


class PollAnswer(Model, frozen=True):
    """`next`: the `since` of the next poll. `more`: ask again at once. `hidden`: ids that are no
    repositories for this caller. `resync`: events after `since` are gone; read the state of all anew."""

    events: list[Event]
    next: int
    more: bool
    hidden: list[str]
    resync: bool = False


PROTOCOL = "svc-sync.v1"
SOCKET_PATH = "/api/v1/sync/ws"
POLL = Endpoint("POST", "/api/v1/sync/poll", body=PollRequest, returns=PollAnswer, repeatable=True)
