"""SQL statements on inboxes. Some read the rows of an account; others add rows for an event."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    FromClause,
    String,
    Table,
    and_,
    bindparam,
    case,
    delete,
    false,
    literal,
    or_,
    select,
    true,
    update,
)

from relay.db.engine.keyset import Keyset
from relay.db.engine.upsert import InsertNew, InsertOrReplace
from relay.db.repo import ALIVE, PUBLIC, VISIBLE_TO_ME
from relay.db.schema.account import account
from relay.db.schema.collaboration.access import access_request, invite, transfer
from relay.db.schema.collaboration.attention import inbox, mention, watch
from relay.db.schema.collaboration.issue import comment, part, report, subject
from relay.db.schema.collaboration.organisation import member
from relay.db.schema.collaboration.proposal import proposal, review, version
from relay.db.schema.collaboration.run import run
from relay.db.schema.event import event
from relay.db.schema.repo import collaborator, repo

FAILED = ("failure", "timed_out")  # conclusions of checks

# --- the caller's own rows
_ME: Any = bindparam("account")
_OWNER = account.alias("owner")
_ACTOR = account.alias("actor")


def _orgs_administered_by(who: Any) -> Any:
    """A query for the ids of the organisations that an account is an admin of."""
    return select(member.c.org_id).where(member.c.account_id == who, member.c.role == "admin")


def _is_open_offer(reason: str, table: Table) -> ColumnElement[bool]:
    """The condition that a row of the inbox has this reason, and that its offer (an invitation or a transfer
    in `table`) is still open. Such a row is shown although its account may not see the repository yet."""
    stands = select(table.c.id).where(
        table.c.repo_id == inbox.c.repo_id,
        or_(table.c.account_id == _ME, table.c.account_id.in_(_orgs_administered_by(_ME))),
        table.c.state == "pending",
        table.c.valid_until > bindparam("current"),
    )
    return and_(inbox.c.reason == reason, stands.correlate(inbox).exists())


def _is_undecided(reason: str, table: Table, state: str) -> ColumnElement[bool]:
    """The condition that hides inbox rows about offers that have been decided. It concerns rows with this
    reason; all others stay. The offers are rows of `table`, and an open one has the state `state`."""
    undecided = select(table.c.id).where(table.c.repo_id == inbox.c.repo_id, table.c.state == state)
    return or_(inbox.c.reason != reason, undecided.correlate(inbox).exists())


_ROWS = (
    select(
        inbox.c.repo_id,
        inbox.c.number,
        inbox.c.reason,
        inbox.c.unread,
        inbox.c.done,
        inbox.c.updated_at,
        _OWNER.c.handle,
        repo.c.name,
        subject.c.kind,
        subject.c.title,
        subject.c.state,
        event.c.kind.label("event_kind"),
        _ACTOR.c.id.label("actor_id"),
        _ACTOR.c.handle.label("actor_handle"),
        _ACTOR.c.kind.label("actor_kind"),
    )
    .select_from(
        inbox.join(repo, repo.c.id == inbox.c.repo_id)
        .join(_OWNER, _OWNER.c.id == repo.c.owner_id)
        .outerjoin(
            collaborator,
            and_(collaborator.c.repo_id == inbox.c.repo_id, collaborator.c.account_id == _ME),
        )
        .outerjoin(subject, and_(subject.c.repo_id == inbox.c.repo_id, subject.c.number == inbox.c.number))
        .outerjoin(event, event.c.id == inbox.c.event)
        .outerjoin(_ACTOR, _ACTOR.c.id == event.c.actor)
    )
    .where(
        inbox.c.account_id == _ME,
        _is_undecided("access_requested", access_request, "pending"),
        _is_undecided("report", report, "new"),
        or_(
            and_(VISIBLE_TO_ME, or_(inbox.c.number == 0, subject.c.title.is_not(None))),
            and_(
                ALIVE,
                inbox.c.number == 0,
                or_(_is_open_offer("invited", invite), _is_open_offer("transfer", transfer)),
            ),
        ),
    )
)
_FILTERS: dict[str, ColumnElement[bool]] = {
    "open": inbox.c.done == false(),
    "reason": inbox.c.reason == bindparam("reason"),
}


@cache
def keyset_of(filters: frozenset[str]) -> Keyset:
    """SQL statements that read a page of inbox rows, newest first. `filters`: names of the `_FILTERS` to
    apply."""
    chosen = _ROWS.where(*(_FILTERS[name] for name in sorted(filters)))
    return Keyset(chosen, "-updated_at", "-repo_id", "-number")


_THIS = and_(inbox.c.repo_id == bindparam("of_repo"), inbox.c.number == bindparam("of_number"))
ONE = _ROWS.where(_THIS)
_MARKS: dict[str, Any] = {"unread": bindparam("new_unread"), "done": bindparam("new_done")}
_DIFFERS = or_(inbox.c.unread != bindparam("new_unread"), inbox.c.done != bindparam("new_done"))
MARK = update(inbox).where(inbox.c.account_id == _ME, _THIS).values(_MARKS)
MARK_ALL = update(inbox).where(inbox.c.account_id == _ME, inbox.c.done == false(), _DIFFERS).values(_MARKS)

# --- rows for others: accounts that see the repository and are not the author of the event
_REPO: Any = bindparam("of_repo")
_NUMBER: Any = bindparam("of_number", type_=BigInteger)
_SEES = and_(
    ALIVE,
    or_(PUBLIC, repo.c.owner_id == account.c.id, collaborator.c.role.is_not(None)),
    # What only writers hear of, others are not told.
    or_(
        bindparam("all_hear", type_=Boolean),
        repo.c.owner_id == account.c.id,
        collaborator.c.role.in_(("write", "admin", "owner")),
    ),
)
_LIVING = and_(account.c.kind == "user", account.c.disabled_at.is_(None))


def _insert_rows(
    people: FromClause, reason: Any, *which: ColumnElement[bool], seen: bool = True
) -> InsertOrReplace:
    """A statement that adds rows with this reason to inboxes. `people`: the table `account`, joined with a
    table that selects the accounts to notify. `which`: further conditions. `seen`: whether an account gets a
    row only if it sees the repository."""
    rows = (
        select(
            account.c.id,
            repo.c.id,
            _NUMBER,
            reason,
            true(),
            false(),
            bindparam("event", type_=BigInteger),
            bindparam("now", type_=BigInteger),
        )
        .select_from(
            people.join(repo, repo.c.id == _REPO).outerjoin(
                collaborator,
                and_(collaborator.c.repo_id == repo.c.id, collaborator.c.account_id == account.c.id),
            )
        )
        .where(account.c.id != bindparam("actor"), _LIVING, *which, *([_SEES] if seen else []))
    )
    names = ["account_id", "repo_id", "number", "reason", "unread", "done", "event", "updated_at"]
    statement: InsertOrReplace = InsertOrReplace(inbox).from_select(names, rows)
    return statement


_REASON = bindparam("reason", type_=String)
TO_WATCHERS = _insert_rows(
    watch.join(account, account.c.id == watch.c.account_id),
    literal("watching", String),
    watch.c.repo_id == _REPO,
)
_ON_SUBJECT = and_(subject.c.repo_id == part.c.repo_id, subject.c.number == part.c.number)
TO_PARTS = _insert_rows(
    part.join(account, account.c.id == part.c.account_id).join(subject, _ON_SUBJECT),
    case(
        (subject.c.author_id == part.c.account_id, "author"),
        (part.c.assigned, "assigned"),
        else_="participant",
    ),
    part.c.repo_id == _REPO,
    part.c.number == _NUMBER,
    or_(part.c.posted, part.c.assigned),
)
# An account, or the admins of an organisation.
_ADMINS = select(member.c.account_id).where(member.c.org_id == bindparam("who"), member.c.role == "admin")
_WHO = or_(account.c.id == bindparam("who"), account.c.id.in_(_ADMINS))
TO_ACCOUNT = _insert_rows(account, _REASON, _WHO)
TO_ACCOUNT_OUTSIDE = _insert_rows(account, _REASON, _WHO, seen=False)
TO_HANDLES = _insert_rows(account, _REASON, account.c.handle.in_(bindparam("handles", expanding=True)))
CLEAR = delete(inbox).where(
    or_(inbox.c.account_id == bindparam("who"), inbox.c.account_id.in_(_ADMINS)),
    _THIS,
    inbox.c.reason == bindparam("reason"),
)
COMMENTS = select(comment.c.id, comment.c.body).where(comment.c.id.in_(bindparam("ids", expanding=True)))
REVIEWS = select(review.c.id, review.c.body).where(review.c.id.in_(bindparam("ids", expanding=True)))
REVIEW_COMMENTS = (
    select(comment.c.review_id, comment.c.body)
    .where(comment.c.review_id.in_(bindparam("ids", expanding=True)), comment.c.deleted_at.is_(None))
    .order_by(comment.c.created_at, comment.c.id)
)
BODY = select(subject.c.body).where(subject.c.repo_id == _REPO, subject.c.number == _NUMBER)
# Who a post has told.
NOTIFIED = select(mention.c.handle).where(
    mention.c.repo_id == _REPO, mention.c.number == _NUMBER, mention.c.post == bindparam("post")
)
TELL = InsertNew(mention)

# Open proposals of a head whose check failed for the first time since they have this head: (number, author).
_earlier = run.alias("earlier")
_FAILED_BEFORE = (
    select(_earlier.c.id)
    .where(
        _earlier.c.seal_id == run.c.seal_id,
        _earlier.c.repo_id == run.c.repo_id,
        _earlier.c.folded == run.c.folded,
        _earlier.c.attempt < run.c.attempt,
        _earlier.c.conclusion.in_(FAILED),
        _earlier.c.completed_at >= version.c.created_at,
    )
    .correlate(run, version)
    .exists()
)
FAILED_PROPOSALS = (
    select(proposal.c.number, subject.c.author_id)
    .select_from(
        run.join(proposal, and_(proposal.c.repo_id == run.c.repo_id, proposal.c.head_seal == run.c.seal_id))
        .join(subject, and_(subject.c.repo_id == proposal.c.repo_id, subject.c.number == proposal.c.number))
        .join(
            version,
            and_(
                version.c.repo_id == proposal.c.repo_id,
                version.c.number == proposal.c.number,
                version.c.n == proposal.c.version,
            ),
        )
    )
    .where(
        run.c.repo_id == _REPO,
        run.c.id == bindparam("of_run"),
        run.c.conclusion.in_(FAILED),
        proposal.c.state == "open",
        ~_FAILED_BEFORE,
    )
)
