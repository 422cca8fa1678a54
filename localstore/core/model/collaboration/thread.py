"""Threads on lines of a proposal: what somebody says about lines, answers to it, and suggestions of other
lines.

A thread follows its lines: `place` says where they are in the newest version. `side` old: lines of the merge
base, as the left side of a difference shows them; new: lines of the head.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict
from localstore.core.limits import ISSUE_BODY_BYTES, LARGE_ANSWER, PATH_BYTES, SUGGESTIONS
from localstore.core.model.base import Actor, Model, Page, PageQuery, Sent
from localstore.core.model.collaboration.issue import Comment, Text
from localstore.core.model.seal import PreparedSeals, SealId


class SuggestionMoved(Conflict):
    """The lines that a suggestion would replace are other ones by now, or gone; `threads` lists the ids."""

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
    """`text` in the place of the lines; `applied_seal`: the seal that took it in."""

    text: str
    applied_seal: str | None = None


class Place(Model, frozen=True):
    """Where the lines are in `seal_id`: `same` lines, `moved`, or `edited` since; where they were taken away,
    the line at which they stood."""

    seal_id: str
    path: str
    start: int
    end: int
    how: How


class LivePlace(Model, frozen=True):
    """Where the lines are on the live frontier of the branch, at its number `seq`; `gone`: its file is, and
    the lines stand nowhere else."""

    path: str
    start: int
    end: int
    how: Literal["same", "moved", "edited", "gone"]
    seq: int


class Thread(Model, frozen=True):
    """`start` to `end`: lines of `path` in `seal_id`, or for `side` old in the merge base of that version.
    `place` None: the newest version has no such text. `draft`: it waits for its author's review, who alone
    sees it. `live`: where unsealed edits have them, if it was asked for and there are any in the file."""

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
    """`seal_id`: the head that was looked at. `suggestion`: what to put in the place of the lines. `draft`:
    it goes out with the caller's next review."""

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
    """`draft`: it goes out with the caller's next review."""

    body: Text
    draft: bool = False


class ThreadQuery(PageQuery, frozen=True):
    """`path`: threads that began in this file, or are in it now. `draft` 1: what waits for the caller's
    review. `live` 1: with the places on the live frontier, for those who may write."""

    state: Literal["open", "resolved", "all"] = "all"
    path: Path | None = None
    draft: Literal["0", "1"] = "0"
    live: Literal["0", "1"] = "0"


class SuggestionsPrepareRequest(Sent, frozen=True):
    """Threads whose suggestions become one seal. `message`: its first paragraph. `expected_head`: what the
    caller looked at."""

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
