"""SQL statements on comments, and on reactions to them and to issues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, bindparam, case, delete, func, insert, or_, select, update

from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account
from relay.db.schema.collaboration.issue import comment, reaction


@dataclass(slots=True, frozen=True)
class CommentRow:
    id: str
    author_id: str
    author_handle: str | None
    author_kind: str
    body: str
    created_at: int
    updated_at: int
    draft: bool
    thread_id: str | None


_REPO: Any = bindparam("of_repo")
_NUMBER: Any = bindparam("of_number")

_COLUMNS = (
    comment.c.id,
    comment.c.author_id,
    account.c.handle,
    account.c.kind,
    comment.c.body,
    comment.c.created_at,
    comment.c.updated_at,
    comment.c.draft,
    comment.c.thread_id,
)
_LIVING = and_(comment.c.repo_id == _REPO, comment.c.number == _NUMBER, comment.c.deleted_at.is_(None))
_COMMENTS = (
    select(*_COLUMNS).select_from(comment.join(account, account.c.id == comment.c.author_id)).where(_LIVING)
)
PAGE = Keyset(_COMMENTS.where(comment.c.thread_id.is_(None)), "created_at", "id")
_THIS = comment.c.id == bindparam("comment")
ONE = _COMMENTS.where(_THIS)
INSERT = insert(comment)
EDIT = update(comment).where(_LIVING, _THIS).values(body=bindparam("new_body"), updated_at=bindparam("now"))
DELETE = update(comment).where(_LIVING, _THIS).values(body="", deleted_at=bindparam("now"))

# Of threads: what everybody sees, and what waits for the review of `me`.
_SHOWN = or_(comment.c.draft.is_(False), comment.c.author_id == bindparam("me"))
OF_THREADS = _COMMENTS.where(comment.c.thread_id.in_(bindparam("threads", expanding=True)), _SHOWN).order_by(
    comment.c.created_at, comment.c.id
)
COUNT_OF_THREAD = select(func.count()).where(comment.c.thread_id == bindparam("thread"))
LEFT_IN_THREAD = COUNT_OF_THREAD.where(comment.c.deleted_at.is_(None))
PENDING = (
    select(comment.c.id, comment.c.thread_id)
    .where(_LIVING, comment.c.draft, comment.c.author_id == bindparam("me"))
    .order_by(comment.c.created_at, comment.c.id)
)
SEND = (
    update(comment)
    .where(_LIVING, comment.c.draft, comment.c.author_id == bindparam("me"))
    .values(draft=False)
)
WENT_WITH = (
    update(comment)
    .where(_LIVING, comment.c.id.in_(bindparam("comments", expanding=True)))
    .values(review_id=bindparam("review"))
)

# Reactions. `mine`: whether the caller is among those who gave it.
_MINE = func.max(case((reaction.c.account_id == bindparam("me"), 1), else_=0))
_COUNTED = (reaction.c.name, func.count(), _MINE)
ON_ISSUES = (
    select(reaction.c.number, *_COUNTED)
    .where(
        reaction.c.repo_id == _REPO,
        reaction.c.number.in_(bindparam("numbers", expanding=True)),
        reaction.c.comment_id == "",
    )
    .group_by(reaction.c.number, reaction.c.name)
)
ON_COMMENTS = (
    select(reaction.c.comment_id, *_COUNTED)
    .where(
        reaction.c.repo_id == _REPO,
        reaction.c.number == _NUMBER,
        reaction.c.comment_id.in_(bindparam("comments", expanding=True)),
    )
    .group_by(reaction.c.comment_id, reaction.c.name)
)
REACT = insert(reaction)
_GIVEN = and_(
    reaction.c.repo_id == _REPO,
    reaction.c.number == _NUMBER,
    reaction.c.comment_id == bindparam("comment"),
)
UNREACT = delete(reaction).where(
    _GIVEN, reaction.c.name == bindparam("reaction"), reaction.c.account_id == bindparam("me")
)
DROP = delete(reaction).where(_GIVEN)
HAS_REACTED = select(reaction.c.name).where(
    _GIVEN, reaction.c.name == bindparam("reaction"), reaction.c.account_id == bindparam("me")
)


def to_row(values: Row) -> CommentRow:
    return CommentRow(*values)
