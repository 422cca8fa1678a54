"""SQL statements on issues: their rows, and the labels and people on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, bindparam, delete, func, insert, select, update

from localstore.core.model.limits import SEARCH_WORDS
from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account
from relay.db.schema.collaboration.issue import comment, numbering, part, subject, subject_label, subject_word
from relay.db.schema.collaboration.label import label
from relay.db.schema.repo import collaborator, repo

ISSUE = "issue"
WORD_COUNT = 1000  # a word of so many issues is common
_REPO: Any = bindparam("of_repo")
_NUMBER: Any = bindparam("of_number")
_NUMBERS: Any = bindparam("numbers", expanding=True)


@dataclass(slots=True, frozen=True)
class IssueRow:
    """An issue without its labels, assignees and reactions. `comments`: how many it has."""

    number: int
    title: str
    body: str
    state: Any
    state_reason: Any
    author_id: str
    author_handle: str | None
    author_kind: str
    comments: int
    created_at: int
    updated_at: int
    closed_at: int | None


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
# The columns that issues and proposals share.
SUBJECT = select(
    subject.c.number, subject.c.kind, subject.c.state, subject.c.author_id, subject.c.comments
).where(subject.c.repo_id == _REPO, subject.c.number == _NUMBER)


def of_word(name: str) -> Callable[[Any], ColumnElement[bool]]:
    """Make a function that makes an SQL condition. The function takes a table with a column `word`; the
    condition is that this column equals the SQL parameter `name`."""
    return lambda link: link.c.word == bindparam(name)


# Of a search the first is the rarest word, and leads.
SEARCHES = ("search", *(f"search_{n}" for n in range(1, SEARCH_WORDS)))
# What is filtered by a row beside the issue, in the order in which one of them leads: the list then walks its
# index, which has the kind, the state and the number behind what is looked for.
_LINKS: dict[str, tuple[Table, Callable[[Any], ColumnElement[bool]]]] = {
    **{name: (subject_word, of_word(name)) for name in SEARCHES},
    "label": (subject_label, lambda link: link.c.folded == bindparam("label")),
    "assignee": (part, lambda link: and_(link.c.account_id == bindparam("assignee"), link.c.assigned)),
    "involves": (
        part,
        lambda link: and_(link.c.account_id == bindparam("involves"), link.c.assigned | link.c.posted),
    ),
}
_FILTERS: dict[str, ColumnElement[bool]] = {
    "author": subject.c.author_id == bindparam("author"),
}
_STATE: Any = bindparam("state")


LEADERS = ("search", "label", "assignee", "involves", "author")
AMOUNT = 1000  # rows beside which it does not matter which filter leads


def amount_of(link: Table, *conditions: ColumnElement[bool]) -> Select[Any]:
    """A query that counts the rows of the table `link` that belong to the repository and satisfy the
    conditions. It stops counting at AMOUNT rows."""
    of_repo = select(link.c.number).where(link.c.repo_id == _REPO, *conditions)
    return select(func.count()).select_from(of_repo.limit(AMOUNT).subquery())


@cache
def count_statement(name: str, stated: bool) -> Select[Any]:
    """Make the statement that counts the issues selected by one filter. `name`: the filter, one of LEADERS,
    such as "label". `stated`: count only issues in the state that the SQL parameter `state` names. The other
    SQL parameters are those of `keyset_of`."""
    if name == "author":
        link, condition = subject, _FILTERS["author"]
    else:
        link, which = _LINKS[name]
        condition = which(link)
    return amount_of(link, condition, link.c.kind == ISSUE, *([link.c.state == _STATE] if stated else []))


@cache
def keyset_of(filters: frozenset[str], lead: str = "") -> Keyset:
    """The SQL statements that read a page of issues, newest first. `filters`: names of the filters to apply,
    such as "label"; each is also the name of the SQL parameter with its value. `lead`: the filter whose index
    the database should use; by default the first of LEADERS that is in `filters`."""
    linked = [name for name in _LINKS if name in filters]
    rows, stated = _ISSUES, subject
    if linked and lead != "author":
        linked.remove(first := lead or linked[0])
        stated, which = _LINKS[first]
        rows = _led_by(stated, "state" in filters).where(which(stated))
    if "state" in filters:
        rows = rows.where(stated.c.state == _STATE)
    conditions = [_FILTERS[name] for name in sorted(_FILTERS.keys() & filters)]
    return Keyset(rows.where(*conditions, *map(_is_linked, linked)), "-number")


def _led_by(link: Table, whole: bool) -> Select[Any]:
    """Make a SELECT of issues that walks an index of `link`, the table by which a filter finds its issues.
    `whole`: the query also filters by state, so that all columns of the index can be used. Without it, SQLite
    would choose the primary key, which is slower; so the condition on the repository is then written in a
    form that no key fits."""
    on = and_(subject.c.repo_id == _REPO, subject.c.number == link.c.number)
    of_repo = link.c.repo_id if whole or link is not part else link.c.repo_id + ""
    return (
        select(link.c.number, *COLUMNS[1:])
        .select_from(link.join(subject, on).join(account, account.c.id == subject.c.author_id))
        .where(of_repo == _REPO, link.c.kind == ISSUE)
    )


def _is_linked(name: str) -> ColumnElement[bool]:
    table, which = _LINKS[name]
    link = table.alias()
    same = and_(link.c.repo_id == subject.c.repo_id, link.c.number == subject.c.number)
    return select(link.c.number).where(same, which(link)).correlate(subject).exists()


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

# Words of issues.
WORD = insert(subject_word)
WORDS_OFF = delete(subject_word).where(subject_word.c.repo_id == _REPO, subject_word.c.number == _NUMBER)
WORD_STATE = (
    update(subject_word)
    .where(subject_word.c.repo_id == _REPO, subject_word.c.number == _NUMBER)
    .values(state=bindparam("new_state"))
)
# How many have a word, up to a bound.
HAVE_WORD = select(func.count()).select_from(
    select(subject_word.c.number)
    .where(subject_word.c.repo_id == _REPO, of_word("word")(subject_word))
    .limit(WORD_COUNT)
    .subquery()
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
BY_HANDLE = select(account.c.id).where(account.c.handle == bindparam("handle"), account.c.kind != "org")
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

# How much an account has posted recently, in all repositories.
_WHO: Any = bindparam("who")
_SINCE: Any = bindparam("since")
OPENED = select(func.count()).where(subject.c.author_id == _WHO, subject.c.created_at > _SINCE)
WROTE = select(func.count()).where(comment.c.author_id == _WHO, comment.c.created_at > _SINCE)


def to_row(columns: Row) -> IssueRow:
    return IssueRow(*columns)
