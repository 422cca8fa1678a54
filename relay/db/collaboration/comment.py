"""Statements on comments, and on reactions to them and to issues."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, bindparam, case, delete, func, insert, select, update

from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account
from relay.db.schema.collaboration.issue import comment, reaction

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
)
_LIVING = and_(comment.c.repo_id == _REPO, comment.c.number == _NUMBER, comment.c.deleted_at.is_(None))
_COMMENTS = (
    select(*_COLUMNS).select_from(comment.join(account, account.c.id == comment.c.author_id)).where(_LIVING)
)
PAGE = Keyset(_COMMENTS, "created_at", "id")
_THIS = comment.c.id == bindparam("comment")
ONE = _COMMENTS.where(_THIS)
INSERT = insert(comment)
EDIT = update(comment).where(_LIVING, _THIS).values(body=bindparam("new_body"), updated_at=bindparam("now"))
DELETE = update(comment).where(_LIVING, _THIS).values(body="", deleted_at=bindparam("now"))

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
