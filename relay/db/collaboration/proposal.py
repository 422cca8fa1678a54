"""SQL statements on proposals: their rows and versions, and the proposals that a moved branch affects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, bindparam, delete, insert, select, update

from relay.db.collaboration import issue as issues
from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account
from relay.db.schema.collaboration.issue import part, subject, subject_label, subject_word
from relay.db.schema.collaboration.proposal import closing, proposal, reviewer, version
from relay.db.schema.event import event
from relay.db.schema.ref import ref
from relay.db.schema.repo import repo

PROPOSAL = "proposal"
STATES = ("open", "closed", "merged")
_REPO: Any = bindparam("of_repo")
_NUMBER: Any = bindparam("of_number")
_NUMBERS: Any = bindparam("numbers", expanding=True)


def _without_index(column: Any) -> Any:
    """The text column as an expression that no index fits. With the column itself, SQLite would look for a
    few proposals by walking an index of all open proposals, because it has no statistics."""
    return column + ""


@dataclass(slots=True, frozen=True)
class ProposalRow:
    """A proposal with its author and its newest version. `head_seal`, `version_base`: head and base of that
    version. `settled`: whether `merge_base` was computed; before that it means nothing. `base_now`: current
    head of the base branch, None if the branch was deleted."""

    number: int
    title: str
    body: str
    state: str
    draft: bool
    author_id: str
    author_handle: str | None
    author_kind: str
    head_id: str
    head: str
    base_id: str
    base: str
    version: int
    head_seal: str
    merged_seal: str | None
    version_base: str
    merge_base: str | None
    settled: bool
    base_now: str | None
    comments: int
    created_at: int
    updated_at: int
    closed_at: int | None
    head_repo_id: str | None  # of another repository


def to_row(columns: Row) -> ProposalRow:
    return ProposalRow(*columns)


# The current base branch, if it was not deleted.
_base: Any = ref.alias("base")
COLUMNS = (
    proposal.c.number,
    subject.c.title,
    subject.c.body,
    proposal.c.state,
    proposal.c.draft,
    subject.c.author_id,
    account.c.handle,
    account.c.kind,
    proposal.c.head_id,
    proposal.c.head,
    proposal.c.base_id,
    proposal.c.base,
    proposal.c.version,
    proposal.c.head_seal,
    proposal.c.merged_seal,
    version.c.base.label("version_base"),
    version.c.merge_base,
    version.c.settled,
    _base.c.head.label("base_now"),
    subject.c.comments,
    subject.c.created_at,
    subject.c.updated_at,
    subject.c.closed_at,
    proposal.c.head_repo_id,
)


_OF_SUBJECT = and_(subject.c.repo_id == proposal.c.repo_id, subject.c.number == proposal.c.number)
_NEWEST = and_(
    version.c.repo_id == proposal.c.repo_id,
    version.c.number == proposal.c.number,
    version.c.n == proposal.c.version,
)


def _with_all(start: Any) -> Any:
    """The FROM clause `start` (proposals), joined with the tables of their titles and texts, authors, newest
    versions and bases."""
    return (
        start.join(subject, _OF_SUBJECT)
        .join(account, account.c.id == subject.c.author_id)
        .join(version, _NEWEST)
        .outerjoin(_base, and_(_base.c.id == proposal.c.base_id, _base.c.deleted_at.is_(None)))
    )


_PROPOSALS = select(*COLUMNS).select_from(_with_all(proposal)).where(proposal.c.repo_id == _REPO)
ONE = _PROPOSALS.where(proposal.c.number == _NUMBER)


def _of_word(name: str) -> Callable[[Any], ColumnElement[bool]]:
    return lambda link: and_(issues.of_word(name)(link), link.c.kind == PROPOSAL)


# What is filtered by a row beside the proposal, in the order in which one of them leads: the list then walks
# its index, which has the state and the number behind what is looked for.
_LINKS: dict[str, tuple[Table, Callable[[Any], ColumnElement[bool]]]] = {
    **{name: (subject_word, _of_word(name)) for name in issues.SEARCHES},
    "label": (
        subject_label,
        lambda link: and_(link.c.folded == bindparam("label"), link.c.kind == PROPOSAL),
    ),
    "reviewer": (reviewer, lambda link: link.c.account_id == bindparam("reviewer")),
    "assignee": (
        part,
        lambda link: and_(
            link.c.account_id == bindparam("assignee"), link.c.kind == PROPOSAL, link.c.assigned
        ),
    ),
    "involves": (
        part,
        lambda link: and_(
            link.c.account_id == bindparam("involves"),
            link.c.kind == PROPOSAL,
            link.c.assigned | link.c.posted,
        ),
    ),
    "author": (
        subject,
        lambda link: and_(link.c.author_id == bindparam("author"), link.c.kind == PROPOSAL),
    ),
}
_FILTERS: dict[str, ColumnElement[bool]] = {
    "head": proposal.c.head == bindparam("head"),
    "base": proposal.c.base == bindparam("base"),
    "draft": proposal.c.draft == bindparam("draft"),
}
_STATE: Any = bindparam("state")


LEADERS = ("search", "label", "reviewer", "assignee", "involves", "author")


@cache
def count_statement(name: str, stated: bool) -> Select[Any]:
    """Make the statement that counts the proposals selected by one filter. `name`: the filter, one of
    LEADERS, such as "reviewer". `stated`: count only proposals in the state that the SQL parameter `state`
    names. The other SQL parameters are those of `keyset_of`."""
    link, which = _LINKS[name]
    return issues.amount_of(link, which(link), *([link.c.state == _STATE] if stated else []))


@cache
def keyset_of(filters: frozenset[str], lead: str = "") -> Keyset:
    """The SQL statements that read a page of proposals, newest first. `filters`: names of the filters to
    apply, such as "label"; each is also the name of the SQL parameter with its value. `lead`: the filter
    whose index the database should use; by default the first of LEADERS that is in `filters`."""
    linked = [name for name in _LINKS if name in filters]
    rows, stated = _PROPOSALS, proposal
    if linked:
        linked.remove(first := lead or linked[0])
        stated, which = _LINKS[first]
        rows = _led_by(stated).where(which(stated))
    if "state" in filters:
        rows = rows.where(stated.c.state == _STATE)
    conditions = [_FILTERS[name] for name in sorted(_FILTERS.keys() & filters)]
    return Keyset(rows.where(*conditions, *map(_is_linked, linked)), "-number")


def _led_by(link: Table) -> Select[Any]:
    if link is subject:  # which is joined in any case
        led = (
            subject.join(proposal, _OF_SUBJECT)
            .join(account, account.c.id == subject.c.author_id)
            .join(version, _NEWEST)
            .outerjoin(_base, and_(_base.c.id == proposal.c.base_id, _base.c.deleted_at.is_(None)))
        )
    else:
        on = and_(proposal.c.repo_id == link.c.repo_id, proposal.c.number == link.c.number)
        led = _with_all(link.join(proposal, on))
    return select(link.c.number, *COLUMNS[1:]).select_from(led).where(link.c.repo_id == _REPO)


def _is_linked(name: str) -> ColumnElement[bool]:
    table, which = _LINKS[name]
    link = table.alias()
    same = and_(link.c.repo_id == proposal.c.repo_id, link.c.number == proposal.c.number)
    return select(link.c.number).where(same, which(link)).correlate(proposal).exists()


# Rows.
INSERT = insert(proposal)
_THIS = and_(proposal.c.repo_id == _REPO, proposal.c.number == _NUMBER)
HEAD_OF = select(proposal.c.head_seal).where(_THIS)
SET_DRAFT = update(proposal).where(_THIS).values(draft=bindparam("is_draft"))
SET_STATE = update(proposal).where(_THIS).values(state=bindparam("new_state"))
SET_MERGED = update(proposal).where(_THIS).values(merged_seal=bindparam("seal"))
SET_BASE = update(proposal).where(_THIS).values(base=bindparam("new_base"), base_id=bindparam("new_base_id"))
SET_HEAD = update(proposal).where(_THIS).values(head=bindparam("new_head"), head_id=bindparam("new_head_id"))
SET_VERSION = (
    update(proposal).where(_THIS).values(version=bindparam("new_n"), head_seal=bindparam("new_seal"))
)
SUBJECT_STATE = (
    update(subject)
    .where(subject.c.repo_id == _REPO, subject.c.number == _NUMBER)
    .values(state=bindparam("new_state"), closed_at=bindparam("new_closed_at"), updated_at=bindparam("now"))
)
REVIEWER_STATE = (
    update(reviewer)
    .where(reviewer.c.repo_id == _REPO, reviewer.c.number == _NUMBER)
    .values(state=bindparam("new_state"))
)

# By branch.
SAME = select(proposal.c.number).where(
    _without_index(proposal.c.repo_id) == _REPO,
    proposal.c.head_id == bindparam("head_id"),
    _without_index(proposal.c.base_id) == bindparam("base_id"),
    proposal.c.state == "open",
)
OPEN_OF_HEAD = (
    select(
        proposal.c.repo_id,
        proposal.c.number,
        proposal.c.version,
        proposal.c.head_seal,
        version.c.base,
        ref.c.head,
    )
    .select_from(
        proposal.join(version, _NEWEST).outerjoin(
            ref, and_(ref.c.id == proposal.c.base_id, ref.c.deleted_at.is_(None))
        )
    )
    .where(proposal.c.head_id == bindparam("branch_id"), proposal.c.state == "open")
    .order_by(proposal.c.number)
)
# Open proposals elsewhere whose branches are in this repository: (repository, number).
OPEN_FROM_REPO = select(proposal.c.repo_id, proposal.c.number).where(
    proposal.c.head_repo_id == _REPO, proposal.c.state == "open"
)
OPEN_OF_BASE = (
    select(proposal.c.number, proposal.c.head_id)
    .where(proposal.c.base_id == bindparam("branch_id"), proposal.c.state == "open")
    .order_by(proposal.c.number)
)
ANY_OPEN_OF_BASE = (
    select(proposal.c.number)
    .where(proposal.c.base_id == bindparam("branch_id"), proposal.c.state == "open")
    .limit(1)
)
OPEN_OF_SEAL = select(proposal.c.number).where(
    proposal.c.repo_id == _REPO,
    proposal.c.head_seal == bindparam("seal"),
    _without_index(proposal.c.base_id) == bindparam("branch_id"),
    proposal.c.state == "open",
)
MERGED_OF_HEAD = (
    select(proposal.c.base_id)
    .where(proposal.c.head_id == bindparam("branch_id"), proposal.c.state == "merged")
    .order_by(proposal.c.number.desc())
    .limit(1)
)
# Open proposals whose head branch is the base of those asked for: (number, number it depends on).
_lower: Any = proposal.alias("lower")
DEPENDS = (
    select(proposal.c.number, _lower.c.number)
    .select_from(
        proposal.join(
            _lower,
            and_(
                _without_index(_lower.c.repo_id) == proposal.c.repo_id,
                _lower.c.head_id == proposal.c.base_id,
                _lower.c.state == "open",
            ),
        )
    )
    .where(proposal.c.repo_id == _REPO, proposal.c.number.in_(_NUMBERS), proposal.c.state == "open")
    .order_by(proposal.c.number, _lower.c.number)
)

# Issues that merging closes: those of them that are issues.
CLOSES = (
    select(closing.c.number, closing.c.issue)
    .select_from(
        closing.join(
            subject, and_(subject.c.repo_id == closing.c.repo_id, subject.c.number == closing.c.issue)
        )
    )
    .where(closing.c.repo_id == _REPO, closing.c.number.in_(_NUMBERS), subject.c.kind == "issue")
    .order_by(closing.c.number, closing.c.issue)
)
CLOSING = insert(closing)
DROP_CLOSING = delete(closing).where(closing.c.repo_id == _REPO, closing.c.number == _NUMBER)

# Versions.
_VERSIONS = (
    select(
        version.c.n,
        version.c.head,
        version.c.base,
        version.c.merge_base,
        version.c.change_id,
        version.c.settled,
        account.c.id,
        account.c.handle,
        account.c.kind,
        version.c.created_at,
    )
    .select_from(version.join(account, account.c.id == version.c.by_id))
    .where(version.c.repo_id == _REPO, version.c.number == _NUMBER)
)
VERSIONS = Keyset(_VERSIONS, "n")
INSERT_VERSION = insert(version)
UNSETTLED = (
    select(version.c.n, version.c.head, version.c.base, repo.c["class"])
    .select_from(version.join(repo, repo.c.id == version.c.repo_id))
    .where(version.c.repo_id == _REPO, version.c.number == _NUMBER, version.c.settled.is_(False))
    .order_by(version.c.n)
    .limit(bindparam("limit"))
)
SETTLE = (
    update(version)
    .where(version.c.repo_id == _REPO, version.c.number == _NUMBER, version.c.n == bindparam("of_n"))
    .values(settled=True, merge_base=bindparam("new_merge_base"), change_id=bindparam("new_change_id"))
)

# What happened to an issue or a proposal.
_TIMELINE = (
    select(
        event.c.id,
        event.c.kind,
        event.c.actor,
        account.c.handle,
        account.c.kind.label("actor_kind"),
        event.c.created_at,
        event.c.data,
    )
    .select_from(event.outerjoin(account, account.c.id == event.c.actor))
    .where(
        event.c.repo_id == _REPO,
        event.c.number == _NUMBER,
        event.c.audience.in_(bindparam("audiences", expanding=True)),
    )
)
TIMELINE = Keyset(_TIMELINE, "id")
PEOPLE = select(account.c.id, account.c.handle, account.c.kind).where(
    account.c.id.in_(bindparam("ids", expanding=True))
)
TIMELINE_WITHOUT_THREADS = Keyset(_TIMELINE.where(event.c.kind.not_like("thread.%")), "id")
