"""Statements on issues: their rows, and the labels and people on them."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, delete, func, insert, select, update

from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account
from relay.db.schema.issue import comment, numbering, part, subject, subject_label
from relay.db.schema.label import label
from relay.db.schema.repo import collaborator, repo

ISSUE = "issue"
_REPO: Any = bindparam("of_repo")
_NUMBER: Any = bindparam("of_number")
_NUMBERS: Any = bindparam("numbers", expanding=True)

COLUMNS = (
    subject.c.number,
    subject.c.title,
    subject.c.body,
    subject.c.state,
    subject.c.state_reason,
    subject.c.author_id,
    account.c.handle,
    account.c.kind.label("author_kind"),
    subject.c.comments,
    subject.c.created_at,
    subject.c.updated_at,
    subject.c.closed_at,
)
_ISSUES = (
    select(*COLUMNS)
    .select_from(subject.join(account, account.c.id == subject.c.author_id))
    .where(subject.c.repo_id == _REPO, subject.c.kind == ISSUE)
)
ONE = _ISSUES.where(subject.c.number == _NUMBER)
# An issue or a proposal: what they have in common.
SUBJECT = select(
    subject.c.number, subject.c.kind, subject.c.state, subject.c.author_id, subject.c.comments
).where(subject.c.repo_id == _REPO, subject.c.number == _NUMBER)


def _taking_part(who: str, how: ColumnElement[bool]) -> ColumnElement[bool]:
    numbers = select(part.c.number).where(part.c.account_id == bindparam(who), part.c.repo_id == _REPO, how)
    return subject.c.number.in_(numbers)


_FILTERS: dict[str, ColumnElement[bool]] = {
    "state": subject.c.state == bindparam("state"),
    "author": subject.c.author_id == bindparam("author"),
    "assignee": _taking_part("assignee", part.c.assigned),
    "involves": _taking_part("involves", part.c.assigned | part.c.posted),
    "label": subject.c.number.in_(
        select(subject_label.c.number).where(
            subject_label.c.repo_id == _REPO, subject_label.c.folded == bindparam("label")
        )
    ),
    "search": subject.c.folded_title.like(bindparam("search"), escape="\\"),
}


@cache
def page(filters: frozenset[str]) -> Keyset:
    """Issues, the newest first, by these filters, whose parameters have their names."""
    return Keyset(_ISSUES.where(*(_FILTERS[name] for name in sorted(filters))), "-number")


# Numbers.
COUNT_UP = update(numbering).where(numbering.c.repo_id == _REPO).values(last=numbering.c.last + 1)
LAST = select(numbering.c.last).where(numbering.c.repo_id == _REPO)
FIRST = insert(numbering)

# Rows.
INSERT = insert(subject)
_THIS = and_(subject.c.repo_id == _REPO, subject.c.number == _NUMBER)
EDIT = (
    update(subject)
    .where(_THIS)
    .values(
        title=bindparam("new_title"),
        folded_title=bindparam("new_folded_title"),
        body=bindparam("new_body"),
        state=bindparam("new_state"),
        state_reason=bindparam("new_state_reason"),
        closed_at=bindparam("new_closed_at"),
        updated_at=bindparam("now"),
    )
)
COMMENTED = (
    update(subject)
    .where(_THIS)
    .values(comments=subject.c.comments + bindparam("more"), updated_at=bindparam("now"))
)
TOUCH = update(subject).where(_THIS).values(updated_at=bindparam("now"))

# Labels on issues.
LABELS = (
    select(subject_label.c.number, label.c.name, label.c.color, label.c.description)
    .select_from(
        subject_label.join(
            label, and_(label.c.repo_id == subject_label.c.repo_id, label.c.folded == subject_label.c.folded)
        )
    )
    .where(subject_label.c.repo_id == _REPO, subject_label.c.number.in_(_NUMBERS))
    .order_by(subject_label.c.number, subject_label.c.folded)
)
LABEL_ON = insert(subject_label)
LABEL_OFF = delete(subject_label).where(
    subject_label.c.repo_id == _REPO,
    subject_label.c.number == _NUMBER,
    subject_label.c.folded == bindparam("label"),
)
LABEL_STATE = (
    update(subject_label)
    .where(subject_label.c.repo_id == _REPO, subject_label.c.number == _NUMBER)
    .values(state=bindparam("new_state"))
)
LABEL_OFF_ALL = delete(subject_label).where(
    subject_label.c.repo_id == _REPO, subject_label.c.folded == bindparam("label")
)
LABEL_RENAMED = (
    update(subject_label)
    .where(subject_label.c.repo_id == _REPO, subject_label.c.folded == bindparam("label"))
    .values(folded=bindparam("new_folded"))
)

# People on issues.
ASSIGNEES = (
    select(part.c.number, account.c.id, account.c.handle, account.c.kind)
    .select_from(part.join(account, account.c.id == part.c.account_id))
    .where(part.c.repo_id == _REPO, part.c.number.in_(_NUMBERS), part.c.assigned)
    .order_by(part.c.number, account.c.handle)
)
_PART = and_(part.c.repo_id == _REPO, part.c.number == _NUMBER, part.c.account_id == bindparam("who"))
POSTED = update(part).where(_PART).values(posted=True)
ASSIGNED = update(part).where(_PART).values(assigned=bindparam("is_assigned"))
PART = insert(part)
PART_STATE = (
    update(part).where(part.c.repo_id == _REPO, part.c.number == _NUMBER).values(state=bindparam("new_state"))
)
BY_HANDLE = select(account.c.id).where(account.c.handle == bindparam("handle"))
MEMBER = (
    select(repo.c.id)
    .select_from(
        repo.outerjoin(
            collaborator,
            and_(collaborator.c.repo_id == repo.c.id, collaborator.c.account_id == bindparam("who")),
        )
    )
    .where(
        repo.c.id == _REPO,
        (repo.c.owner_id == bindparam("who")) | collaborator.c.role.is_not(None),
    )
)

# How much an account has posted of late, anywhere.
_WHO: Any = bindparam("who")
_SINCE: Any = bindparam("since")
OPENED = select(func.count()).where(subject.c.author_id == _WHO, subject.c.created_at > _SINCE)
WROTE = select(func.count()).where(comment.c.author_id == _WHO, comment.c.created_at > _SINCE)
