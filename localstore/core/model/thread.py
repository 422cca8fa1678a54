"""Threads about lines of a proposal: a comment on lines, its answers, and suggested replacements of the
lines.

When the lines move, the thread moves with them; `place` says where they are in the newest version. `side`:
`old` for lines of the merge base (the left side of a comparison), `new` for lines of the head."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict
from localstore.core.model.base import Actor, Model, Page, PageQuery, Sent
from localstore.core.model.issue import Comment, Text
from localstore.core.model.limits import ISSUE_BODY_BYTES, LARGE_ANSWER, PATH_BYTES, SUGGESTIONS
from localstore.core.model.seal import PreparedSeals, SealId


class SuggestionMoved(Conflict):
    """The lines that a suggestion would replace were changed or deleted; `threads`: ids of the threads with
    such suggestions."""

    code = "suggestion_moved"

    def __init__(self, sentence: str, threads: list[str]) -> None:
        super().__init__(sentence, threads=threads)


Side = Literal["old", "new"]
State = Literal["open", "resolved"]
How = Literal["same", "moved", "edited"]
LAST_LINE = 2**31 - 1
Line = Annotated[int, msgspec.Meta(ge=1, le=LAST_LINE)]
Path = Annotated[str, msgspec.Meta(min_length=1, max_length=PATH_BYTES)]
Replacement = Annotated[
    str,
    msgspec.Meta(
        max_length=ISSUE_BODY_BYTES,
        pattern=r"^[^\x00]*$",
        description="at most 64 KiB of text without NUL",
    ),
]
ThreadId = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class Suggestion(Model, frozen=True):
    """A suggested replacement. `text`: the new lines. `applied_seal`: the seal that applied it, None if not
    applied."""

    text: str
    applied_seal: str | None = None


class Place(Model, frozen=True):
    """Where the lines of a thread are in the seal `seal_id`. `how`: they are the `same` lines, `moved` to
    another place, or `edited` since. For deleted lines, the place is the line where they were."""

    seal_id: str
    path: str
    start: int
    end: int
    how: How


class LivePlace(Model, frozen=True):
    """Where a thread's lines are on the live frontier of the branch, at its number `seq`. `how`: as in
    `Place`; `gone`: the file was deleted and no other file has the lines."""

    path: str
    start: int
    end: int
    how: Literal["same", "moved", "edited", "gone"]
    seq: int


class Thread(Model, frozen=True):
    """A thread about lines `start` to `end` of `path` in the seal `seal_id`, or, if `side` is old, in the
    merge base of the version whose head is `seal_id`. `place`: where the lines are in the newest version;
    None if that version does not have them. `draft`: the thread is published with its author's review, and
    until then only the author sees it. `live`: where the lines are among unsealed edits, present if the query
    asked for it and the file has such edits."""

    id: str
    author: Actor
    path: str
    side: Side
    start: int
    end: int
    seal_id: str
    state: State
    comments: list[Comment]
    suggestion: Suggestion | None
    place: Place | None
    draft: bool
    created_at: str
    updated_at: str
    live: LivePlace | None = None


class ThreadCreate(Sent, frozen=True):
    """A new thread. `seal_id`: the head that the caller has seen. `suggestion`: lines to replace the
    commented lines. `draft`: publish it with the caller's next review."""

    path: Path
    start: Line
    end: Line
    seal_id: SealId
    body: Text
    side: Side = "new"
    suggestion: Replacement | None = None
    draft: bool = False


class ThreadPatch(Sent, frozen=True):
    state: State


class ThreadComment(Sent, frozen=True):
    """An answer in a thread. `draft`: publish it with the caller's next review."""

    body: Text
    draft: bool = False


class ThreadQuery(PageQuery, frozen=True):
    """A filter of threads. `path`: threads that began in this file or are in it now. `draft`: 1 for only
    those threads of the caller that are not published yet. `live`: 1 to also return their places on the
    live frontier, which needs write access."""

    state: Literal["open", "resolved", "all"] = "all"
    path: Path | None = None
    draft: Literal["0", "1"] = "0"
    live: Literal["0", "1"] = "0"


class SuggestionsPrepareRequest(Sent, frozen=True):
    """A request to prepare one seal that applies the suggestions of these threads. `message`: first paragraph
    of the seal's message. `expected_head`: the head that the caller has seen."""

    threads: Annotated[list[ThreadId], msgspec.Meta(min_length=1, max_length=SUGGESTIONS)]
    device_key_id: str
    message: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    expected_head: SealId | None = None


_ALL = f"{REPO}/proposals/{{n}}/threads"
LIST = Endpoint("GET", _ALL, query=ThreadQuery, returns=Page[Thread])
CREATE = Endpoint("POST", _ALL, body=ThreadCreate, returns=Thread, status=201)
UPDATE = Endpoint("PATCH", f"{_ALL}/{{thread}}", body=ThreadPatch, returns=Thread)
COMMENT = Endpoint("POST", f"{_ALL}/{{thread}}/comments", body=ThreadComment, returns=Comment, status=201)
PREPARE = Endpoint(
    "POST",
    f"{REPO}/proposals/{{n}}/suggestions/prepare",
    body=SuggestionsPrepareRequest,
    returns=PreparedSeals,
    repeatable=True,  # it takes no effect
    cap=LARGE_ANSWER,
)
