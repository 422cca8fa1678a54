"""Issues of a repository, with comments and reactions. They share their numbers with proposals."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.model.base import Actor, Model, Page, PageQuery, Sent
from localstore.core.model.label import Label, Name
from localstore.core.model.limits import (
    ASSIGNEES,
    HANDLE_CHARS,
    ISSUE_BODY_BYTES,
    ISSUE_LABELS,
    ISSUE_TITLE_CHARS,
    QUERY_CHARS,
)

State = Literal["open", "closed"]
Reason = Literal["completed", "not_planned"]
Reaction = Literal["+1", "-1", "tada", "heart", "rocket", "eyes"]
REACTIONS: tuple[Reaction, ...] = ("+1", "-1", "tada", "heart", "rocket", "eyes")
_TITLE = msgspec.Meta(
    min_length=1,
    max_length=ISSUE_TITLE_CHARS,
    pattern=r"^(?=.*\S)[^\x00-\x1f\x7f-\x9f\u2028\u2029]+(?!\n)$",
    description=f"1 to {ISSUE_TITLE_CHARS} characters on one line",
)
Title = Annotated[str, _TITLE]
_TEXT = r"^[^\x00]*$"
Body = Annotated[
    str,
    msgspec.Meta(
        max_length=ISSUE_BODY_BYTES,
        pattern=_TEXT,
        description="at most 64 KiB of text without NUL",
    ),
]
Text = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=ISSUE_BODY_BYTES,
        pattern=r"^(?=[\s\S]*\S)[^\x00]*$",
        description="text of at most 64 KiB, not blank and without NUL",
    ),
]
Handle = Annotated[
    str, msgspec.Meta(min_length=1, max_length=HANDLE_CHARS, description="a handle, or @me for yourself")
]
Handles = Annotated[list[Handle], msgspec.Meta(max_length=ASSIGNEES)]
Names = Annotated[list[Name], msgspec.Meta(max_length=ISSUE_LABELS)]


class Reactions(Model, frozen=True, rename={"plus": "+1", "minus": "-1"}):
    """How often each reaction was given, and which of them the caller gave (`viewer`)."""

    plus: int = 0
    minus: int = 0
    tada: int = 0
    heart: int = 0
    rocket: int = 0
    eyes: int = 0
    viewer: list[Reaction] = msgspec.field(default_factory=list)


class Issue(Model, frozen=True):
    """An issue. `comments`: the number of its comments. `state_reason`: why it is closed."""

    number: int
    title: str
    body: str
    state: State
    author: Actor
    assignees: list[Actor]
    labels: list[Label]
    reactions: Reactions
    comments: int
    created_at: str
    updated_at: str
    state_reason: Reason | None = None
    closed_at: str | None = None


class Comment(Model, frozen=True):
    """A comment. `updated_at`: time of the last change of its text. `draft`: it belongs to a thread and is
    published with its author's review; until then only the author sees it."""

    id: str
    author: Actor
    body: str
    reactions: Reactions
    created_at: str
    updated_at: str
    draft: bool = False


class IssueCreate(Sent, frozen=True):
    """A new issue. Labels and assignees need the role triage."""

    title: Title
    body: Body = ""
    labels: Names = msgspec.field(default_factory=list)
    assignees: Handles = msgspec.field(default_factory=list)


class IssuePatch(Sent, frozen=True):
    """A change of an issue. Members that are None or an empty list change nothing. `state_reason` is allowed
    only if `state` is closed."""

    title: Title | None = None
    body: Body | None = None
    state: State | None = None
    state_reason: Reason | None = None
    add_labels: Names = msgspec.field(default_factory=list)
    remove_labels: Names = msgspec.field(default_factory=list)
    add_assignees: Handles = msgspec.field(default_factory=list)
    remove_assignees: Handles = msgspec.field(default_factory=list)


class IssueQuery(PageQuery, frozen=True):
    """A filter of issues. `author`, `assignee`: a handle, or @me. `involves`: @me for issues that the caller
    opened, commented on or is assigned to. `search`: words of the title or the text, in any case. All of
    them must occur; only the first 8 count."""

    state: Literal["open", "closed", "all"] = "open"
    author: Handle | None = None
    assignee: Handle | None = None
    label: Name | None = None
    involves: Literal["@me"] | None = None
    search: Annotated[str, msgspec.Meta(min_length=1, max_length=QUERY_CHARS, pattern=_TEXT)] | None = None


class CommentBody(Sent, frozen=True):
    """The text of a comment."""

    body: Text


class LabelAddQuery(Model, frozen=True):
    """How to add a label. `create`: 1 to create the label if the repository lacks it."""

    create: Literal["0", "1"] = "0"


class Reacted(Model, frozen=True):
    """The reactions to an issue or a comment, after the change."""

    reactions: Reactions


_ONE = f"{REPO}/issues/{{n}}"
_COMMENT = f"{_ONE}/comments/{{comment}}"
_REACTION = "/reactions/{reaction}"
LIST = Endpoint("GET", f"{REPO}/issues", query=IssueQuery, returns=Page[Issue])
CREATE = Endpoint("POST", f"{REPO}/issues", body=IssueCreate, returns=Issue, status=201)
GET = Endpoint("GET", _ONE, returns=Issue)
UPDATE = Endpoint("PATCH", _ONE, body=IssuePatch, returns=Issue)
ADD_LABEL = Endpoint("PUT", f"{_ONE}/labels/{{name}}", query=LabelAddQuery, returns=Issue)
REMOVE_LABEL = Endpoint("DELETE", f"{_ONE}/labels/{{name}}", returns=Issue)
COMMENTS = Endpoint("GET", f"{_ONE}/comments", query=PageQuery, returns=Page[Comment])
COMMENT = Endpoint("POST", f"{_ONE}/comments", body=CommentBody, returns=Comment, status=201)
EDIT_COMMENT = Endpoint("PATCH", _COMMENT, body=CommentBody, returns=Comment)
DELETE_COMMENT: Endpoint[None] = Endpoint("DELETE", _COMMENT, status=204)
REACT = Endpoint("PUT", f"{_ONE}{_REACTION}", returns=Reacted)
UNREACT = Endpoint("DELETE", f"{_ONE}{_REACTION}", returns=Reacted)
REACT_TO_COMMENT = Endpoint("PUT", f"{_COMMENT}{_REACTION}", returns=Reacted)
UNREACT_TO_COMMENT = Endpoint("DELETE", f"{_COMMENT}{_REACTION}", returns=Reacted)
