"""The inbox of an account: one row for each issue, proposal or repository with news for it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.endpoint import Endpoint
from localstore.core.model.base import Actor, Model, Page, PageQuery, Sent
from localstore.core.model.limits import INBOX_MARKED

Reason = Literal[
    "review_requested",
    "mention",
    "assigned",
    "author",
    "participant",
    "check_failed",
    "ready_to_merge",
    "invited",
    "transfer",
    "watching",
    "access_requested",
    "access_granted",
    "report",
    "webhook_disabled",
]


class InboxRepo(Model, frozen=True):
    """The repository that a row of the inbox belongs to. `full_name`: OWNER/NAME."""

    id: str
    full_name: str


class InboxSubject(Model, frozen=True):
    """What a row of the inbox is about. `number`: None for a repository, or for an organisation that the
    caller is invited to. `state`: state of the issue or proposal; a merged proposal counts as closed.
    `merged`: whether it is a merged proposal."""

    kind: Literal["issue", "proposal", "repository", "organisation"]
    number: int | None
    title: str
    state: Literal["open", "closed"] | None = None
    merged: bool = False


class InboxItem(Model, frozen=True):
    """A row of the inbox. `reason`: why the account is told of the newest event. `done`: the row is hidden
    until the next event. `repo`: None if the row is about an organisation. `event`: the newest event, as
    noun.verb; `actor`: who caused it."""

    id: str
    repo: InboxRepo | None
    subject: InboxSubject
    reason: Reason
    unread: bool
    done: bool
    updated_at: str
    event: str | None = None
    actor: Actor | None = None


class InboxQuery(PageQuery, frozen=True):
    """A filter of the inbox. `all`: also list rows that are done."""

    reason: Reason | None = None
    all: bool = False


class InboxState(Sent, frozen=True):
    """The state that the caller gives to a row of the inbox."""

    state: Annotated[Literal["read", "done", "unread"], msgspec.Meta(description="read, done or unread")]


class InboxMarks(InboxState, frozen=True):
    """A state to set for several rows of the inbox. `ids`: the rows; by default every row that is not
    done."""

    ids: Annotated[list[str], msgspec.Meta(min_length=1, max_length=INBOX_MARKED)] | None = None


class InboxChanged(Model, frozen=True):
    """How many rows of the inbox changed."""

    changed: int


_INBOX = "/api/v1/inbox"
LIST = Endpoint("GET", _INBOX, query=InboxQuery, returns=Page[InboxItem])
UPDATE = Endpoint("PATCH", f"{_INBOX}/{{id}}", body=InboxState, returns=InboxItem)
UPDATE_ALL = Endpoint("PATCH", _INBOX, body=InboxMarks, returns=InboxChanged)
