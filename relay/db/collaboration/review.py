"""SQL statements on reviews and on requested reviewers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import and_, bindparam, case, delete, func, insert, or_, select, update

from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account
from relay.db.schema.collaboration.proposal import proposal, review, reviewer, version
from relay.db.schema.repo import collaborator, repo

_REPO: Any = bindparam("of_repo")
_NUMBER: Any = bindparam("of_number")
_WHO: Any = bindparam("who")


@dataclass(slots=True, frozen=True)
class ReviewRow:
    """A review with its author. It has the change id that was reviewed and the newest change id of the
    proposal, each None if unknown. `counts`: whether the author may write to the repository now."""

    id: str
    account_id: str
    handle: str | None
    kind: str
    verdict: Literal["approve", "request_changes", "comment"]
    counts: int
    body: str
    version: int
    seal_id: str
    created_at: int
    dismissed_at: int | None
    about_change: str | None
    newest_change: str | None
    newest_head: str

    @property
    def stale(self) -> bool:
        if self.seal_id == self.newest_head:
            return False
        return self.about_change is None or self.about_change != self.newest_change


def to_row(columns: Row) -> ReviewRow:
    return ReviewRow(*columns)


# A review with the change that it is about and the newest one.
_about: Any = version.alias("about")
_newest: Any = version.alias("newest")
_WRITES = or_(repo.c.owner_id == review.c.account_id, collaborator.c.role.in_(("write", "admin", "owner")))
_COLUMNS = (
    review.c.id,
    review.c.account_id,
    account.c.handle,
    account.c.kind,
    review.c.verdict,
    case((_WRITES, 1), else_=0).label("counts"),
    review.c.body,
    review.c.version,
    review.c.seal_id,
    review.c.created_at,
    review.c.dismissed_at,
    _about.c.change_id.label("about_change"),
    _newest.c.change_id.label("newest_change"),
    _newest.c.head.label("newest_head"),
)


def _with_versions(start: Any) -> Any:
    of = and_(review.c.repo_id == proposal.c.repo_id, review.c.number == proposal.c.number)
    return (
        start.join(account, account.c.id == review.c.account_id)
        .join(repo, repo.c.id == review.c.repo_id)
        .outerjoin(
            collaborator,
            and_(
                collaborator.c.repo_id == review.c.repo_id, collaborator.c.account_id == review.c.account_id
            ),
        )
        .join(proposal, of)
        .join(
            _about,
            and_(
                _about.c.repo_id == review.c.repo_id,
                _about.c.number == review.c.number,
                _about.c.n == review.c.version,
            ),
        )
        .join(
            _newest,
            and_(
                _newest.c.repo_id == review.c.repo_id,
                _newest.c.number == review.c.number,
                _newest.c.n == proposal.c.version,
            ),
        )
    )


_REVIEWS = (
    select(*_COLUMNS)
    .select_from(_with_versions(review))
    .where(review.c.repo_id == _REPO, review.c.number == _NUMBER)
)
PAGE = Keyset(_REVIEWS, "created_at", "id")
ONE = _REVIEWS.where(review.c.id == bindparam("review"))
COUNT = select(func.count()).where(review.c.repo_id == _REPO, review.c.number == _NUMBER)
INSERT = insert(review)
DISMISS = (
    update(review)
    .where(review.c.repo_id == _REPO, review.c.number == _NUMBER, review.c.id == bindparam("review"))
    .values(dismissed_at=bindparam("now"))
)

# The current verdicts of many proposals: the number, then a review as above.
STANDING = (
    select(reviewer.c.number.label("of"), *_COLUMNS)
    .select_from(_with_versions(reviewer.join(review, review.c.id == reviewer.c.review_id)))
    .where(reviewer.c.repo_id == _REPO, reviewer.c.number.in_(bindparam("numbers", expanding=True)))
    .order_by(reviewer.c.number, review.c.created_at, review.c.id)
)

# Reviewers.
REVIEWERS = (
    select(
        reviewer.c.number,
        account.c.id,
        account.c.handle,
        account.c.kind,
        reviewer.c.requested,
        reviewer.c.review_id,
    )
    .select_from(reviewer.join(account, account.c.id == reviewer.c.account_id))
    .where(reviewer.c.repo_id == _REPO, reviewer.c.number.in_(bindparam("numbers", expanding=True)))
    .order_by(reviewer.c.number, account.c.handle)
)
_REVIEWER = and_(
    reviewer.c.repo_id == _REPO, reviewer.c.number == _NUMBER, reviewer.c.account_id == bindparam("who")
)
REVIEWER = insert(reviewer)
SET_REQUESTED = update(reviewer).where(_REVIEWER).values(requested=bindparam("is_requested"))
SET_VERDICT = update(reviewer).where(_REVIEWER).values(requested=False, review_id=bindparam("new_review"))
DROP_VERDICT = (
    update(reviewer)
    .where(
        reviewer.c.repo_id == _REPO, reviewer.c.number == _NUMBER, reviewer.c.review_id == bindparam("review")
    )
    .values(review_id=None)
)
DROP_EMPTY = delete(reviewer).where(
    reviewer.c.repo_id == _REPO,
    reviewer.c.number == _NUMBER,
    reviewer.c.requested.is_(False),
    reviewer.c.review_id.is_(None),
)
WROTE = select(func.count()).where(review.c.account_id == _WHO, review.c.created_at > bindparam("since"))
