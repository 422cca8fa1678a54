"""Events in repositories as they happen, received over a WebSocket (`svc-sync.v1`) or by polling.

On the socket both sides send JSON text frames with a `type`. The client sends `auth` (first, unless a cookie
or signed upgrade headers signed it in), `subscribe` and `unsubscribe`. The server sends `subscribed`,
`hidden`, `event`, `resync`, and `closing` before it closes the socket.

A *channel* connects one branch with one working copy, under a number that the client chooses. The client
sends `open`, `updates`, `here` and `close`. The server sends `opened` or `refused`, then `live` and `people`.
It replies to `updates` with `answers`, and sends `gap` if the frames after a number are no longer
available."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from localstore.core.endpoint import Endpoint
from localstore.core.errors import Invalid
from localstore.core.lane.update import LiveUpdate
from localstore.core.model.base import Count, Model, Sent
from localstore.core.model.limits import (
    CHANNELS,
    LABEL_CHARS,
    PATH_BYTES,
    POLL_WAIT,
    SUBSCRIPTIONS,
    TURN_CHARS,
)
from localstore.core.model.live import Row, UpdateAnswers, UpdateBatch

EventId = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1, description="the id of an event")]


class Event(Model, frozen=True, tag="event"):
    """An event of a repository.

    - `id`: grows with every event of the relay.
    - `kind`: `noun.verb`, such as `ref.create`, or `live`.
    - `data`: ids, numbers and names, never content.
    - `actor`: the account that caused it, "operator", or "" for the relay itself.
    - `device_key_id`: the key that signed the request.
    - `turn`: the name that a program gave to the piece of its work that caused the event.
    - `number`: number of the issue or proposal."""

    id: int
    repo_id: str
    kind: str
    data: dict[str, Any]
    actor: str = ""
    device_key_id: str | None = None
    turn: str | None = None
    number: int | None = None


class Resync(Model, frozen=True, tag="resync"):
    """Sent by the server when events of this repository were lost: the client must read the repository's
    state again, and continue after event `id`."""

    repo_id: str
    id: int


class Subscribed(Model, frozen=True, tag="subscribed"):
    """Sent by the server when a subscription begins: the events of this repository after `id` follow."""

    repo_id: str
    id: int


class Hidden(Model, frozen=True, tag="hidden"):
    """Sent by the server if the repository does not exist or the caller may not see it."""

    repo_id: str


class Closing(Model, frozen=True, tag="closing"):
    """Sent by the server before it closes the socket. `code` and `detail`: the reason, as in a problem
    document."""

    code: str
    detail: str


class Subscribe(Model, frozen=True, tag="subscribe"):
    """Sent by the client to receive the events of a repository. `since`: the id of an event, after which they
    begin; None for events from now on."""

    repo_id: str
    since: EventId | None = None


class Unsubscribe(Model, frozen=True, tag="unsubscribe"):
    repo_id: str


ChannelNumber = Annotated[int, msgspec.Meta(ge=0, lt=2**31, description="a number that the client chose")]
Doing = Literal["edit", "view", "idle"]
Where = Annotated[str, msgspec.Meta(max_length=PATH_BYTES)]
Turn = Annotated[str, msgspec.Meta(min_length=1, max_length=TURN_CHARS)]


class ChannelUnknown(Invalid):
    """The message is about a channel that is not open on this socket."""

    code = "channel_unknown"


class Open(Model, frozen=True, tag="open"):
    """Sent by the client to open a channel, on which it receives the live frames of a branch. Each change of
    the frontier (what the branch holds now) has a number, one higher than the last. `since`: the number after
    which the frames begin, None for frames from now on. `replica`: the number of the working copy;
    `device_key_id`: the key of its device. If the channel number is in use, that channel is opened anew."""

    channel: ChannelNumber
    repo_id: str
    branch: str
    replica: Count
    device_key_id: str
    since: Count | None = None


class Close(Model, frozen=True, tag="close"):
    """Sent by the client to close a channel: no more frames of it are sent."""

    channel: ChannelNumber


class Opened(Model, frozen=True, tag="opened"):
    """Sent by the server when a channel is open. `seq`: number of the branch's frontier; `head`: newest seal
    of the branch. Then the server sends the frames after `since` as `live`, or a `gap` if they are no
    longer available, and `people`, which lists everybody on the branch."""

    channel: ChannelNumber
    branch_id: str
    seq: Count
    head: str | None


class Refused(Model, frozen=True, tag="refused"):
    """Sent by the server. With `id`: the message `updates` with this id was refused, and none of its updates
    was carried out; the channel stays open. Without `id`: the channel was not opened, or has ended. `code`
    and `detail`: as in a problem document. `retry_after`: when to try again, in seconds; 0 if unknown."""

    channel: ChannelNumber
    code: str
    detail: str
    id: Count | None = None
    retry_after: int = 0


class Signed(Model, omit_defaults=True, frozen=True):
    """An accepted update with everything that was signed: `localstore.core.lane.update.signing_bytes` with
    the ids of the repository and branch. `seq`: its number on the branch. `public_key` (b64u): the key whose
    id is `device_key_id`. `who`: handle of the key's account, "" for a guest."""

    seq: Count
    replica: Count
    device_key_id: str
    public_key: str
    update: LiveUpdate
    who: str = ""
    turn: str | None = None


class Live(Model, frozen=True, tag="live"):
    """Sent by the server when a frontier has changed from number `after` to `seq`. Only a client whose
    frontier is at number `after` can apply the change. A client at another number must read the whole
    frontier (bootstrap).

    `replica`: the sender of the updates, 0 for the relay itself. `updates`: the updates that led to the rows,
    in order. `rows`: the changed paths as they are at number `seq`. All receivers get the same rows, in which
    `other` is right for the sender only. All other replicas use `ver` as `other`.

    A row may have no update in `updates` with its number `ver`. Then the relay has changed the path, or the
    update is too long for a frame, and the client must request the lane of the path. This lane may contain
    later updates too; the client skips them when they arrive."""

    channel: ChannelNumber
    after: Count
    seq: Count
    replica: Count
    rows: list[Row]
    updates: list[Signed]


class Gap(Model, frozen=True, tag="gap"):
    """Sent by the server instead of the frames up to number `seq`, which are too old or too large. The client
    must read the whole frontier (bootstrap). Frames after `seq` follow."""

    channel: ChannelNumber
    seq: Count


class Updates(Model, frozen=True, tag="updates"):
    """Sent by the client: updates of the channel's replica. `id`: a number chosen by the client; the reply to
    this message, `answers` or `refused`, repeats it."""

    channel: ChannelNumber
    id: Count
    batch: UpdateBatch


class Answers(Model, frozen=True, tag="answers"):
    """Sent by the server: the answers to the `updates` with this `id`, as from POST live/updates."""

    channel: ChannelNumber
    id: Count
    answers: UpdateAnswers


class UserPlace(Sent, frozen=True):
    """Where a user is on a branch: a path ("" for none), a line and a column, which count from 1 (0 if
    unknown). The place expires after 30 seconds. `turn`: the name of a piece of an agent's work; a user
    who sends it counts as an agent."""

    path: Where = ""
    line: Count = 0
    col: Count = 0
    state: Doing = "view"
    turn: Turn | None = None


class Here(UserPlace, frozen=True, kw_only=True, tag="here", forbid_unknown_fields=False):
    """Sent by the client: in which file and line of the branch its user is. `channel`: the channel of the
    branch."""

    channel: ChannelNumber


class Person(Model, omit_defaults=True, frozen=True):
    """A user on a branch, with their place. `conn`: id of their connection, which stays the same while their
    working copy is connected. `device`: name of their device key."""

    conn: str
    who: str
    device: Annotated[str, msgspec.Meta(max_length=LABEL_CHARS)]
    kind: Literal["person", "agent"]
    path: str = ""
    line: int = 0
    col: int = 0
    state: Doing = "view"


class People(Model, frozen=True, tag="people"):
    """Sent by the server when the people on a branch have changed. `here`: people who arrived or moved;
    `gone`: connections that left. The first such message after `opened` lists everybody except the
    receiver."""

    channel: ChannelNumber
    here: list[Person]
    gone: list[str]


class PollChannel(Open, frozen=True, kw_only=True, tag=False, forbid_unknown_fields=True):
    """A branch to follow by polling. Each poll opens the channel again and gets its frames after `since`.
    `here`: the file and line of the user."""

    here: UserPlace | None = None


class PollRequest(Sent, frozen=True):
    """A request for events. The answer comes as soon as there is an event, or after `wait` seconds. `repos`:
    ids of the repositories whose events are sent. `since`: the event after which they begin; None to get only
    the id of the newest event. `channels`: the branches whose live frames are sent."""

    repos: Annotated[list[str], msgspec.Meta(max_length=SUBSCRIPTIONS)] = msgspec.field(default_factory=list)
    since: EventId | None = None
    channels: Annotated[list[PollChannel], msgspec.Meta(max_length=CHANNELS)] = msgspec.field(
        default_factory=list
    )
    wait: Annotated[int, msgspec.Meta(ge=0, le=POLL_WAIT)] = 0


Frame = Opened | Refused | Live | Gap | People


class PollAnswer(Model, frozen=True):
    """The answer to a poll. `next`: the value of `since` for the next poll. `more`: the client should poll
    again at once. `hidden`: ids of repositories that do not exist for this caller. `resync`: events after
    `since` were deleted, so the client must read the state of all repositories again. `frames`: the frames
    of the channels, as on a socket."""

    events: list[Event]
    next: int
    more: bool
    hidden: list[str]
    resync: bool = False
    frames: list[Frame] = msgspec.field(default_factory=list)


Asked = Subscribe | Unsubscribe | Open | Close | Updates | Here
Told = Event | Resync | Hidden | Subscribed | Closing | Opened | Refused | Live | Gap | Answers | People

PROTOCOL = "svc-sync.v1"
SOCKET_PATH = "/api/v1/sync/ws"
POLL = Endpoint("POST", "/api/v1/sync/poll", body=PollRequest, returns=PollAnswer, repeatable=True)
