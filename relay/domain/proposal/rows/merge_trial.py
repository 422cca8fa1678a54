"""SQL statements on the results of trial merges of proposals."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, bindparam, func, or_, select

from relay.db.engine.upsert import InsertOrReplace
from relay.db.schema.collaboration.issue import subject
from relay.db.schema.collaboration.proposal import merge_trial, proposal, version
from relay.db.schema.ref import ref
from relay.db.schema.repo import repo

_REPO: Any = bindparam("of_repo")
PUT = InsertOrReplace(merge_trial)
# (number, head, base, conflicts)
SHOWN = select(merge_trial.c.number, merge_trial.c.head, merge_trial.c.base, merge_trial.c.conflicts).where(
    merge_trial.c.repo_id == _REPO, merge_trial.c.number.in_(bindparam("numbers", expanding=True))
)
# (number, head, base) of open proposals whose base has moved on, and whose merge was not tried.
_UNTRIED: Any = (
    select(proposal.c.number, proposal.c.head_seal, ref.c.head)
    .select_from(
        proposal.join(repo, repo.c.id == proposal.c.repo_id)
        .join(ref, and_(ref.c.id == proposal.c.base_id, ref.c.deleted_at.is_(None)))
        .join(
            version,
            and_(
                version.c.repo_id == proposal.c.repo_id,
                version.c.number == proposal.c.number,
                version.c.n == proposal.c.version,
            ),
        )
        .outerjoin(
            merge_trial,
            and_(
                merge_trial.c.repo_id == proposal.c.repo_id,
                merge_trial.c.number == proposal.c.number,
                merge_trial.c.head == proposal.c.head_seal,
                merge_trial.c.base == ref.c.head,
            ),
        )
    )
    .where(
        proposal.c.state == "open",
        repo.c["class"] != "private_e2ee",
        merge_trial.c.number.is_(None),
        version.c.settled,
        or_(version.c.merge_base.is_(None), version.c.merge_base != ref.c.head),
    )
)
UNTRIED = _UNTRIED.where(proposal.c.repo_id == _REPO, proposal.c.number == bindparam("of_number"))
# Of branches of the repository itself, which take the right to write.
UNTRIED_OWN = UNTRIED.where(proposal.c.head_repo_id.is_(None))
_RANKED = (
    _UNTRIED.join(
        subject, and_(subject.c.repo_id == proposal.c.repo_id, subject.c.number == proposal.c.number)
    )
    .add_columns(
        func.row_number()
        .over(partition_by=subject.c.author_id, order_by=proposal.c.number.desc())
        .label("of_author")
    )
    .where(proposal.c.base_id == bindparam("branch_id"), proposal.c.head_repo_id.is_(None))
    .subquery()
)
# The newest `limit`, of each proposer at most `each`.
UNTRIED_OF_BASE = (
    select(_RANKED.c.number, _RANKED.c.head_seal, _RANKED.c.head)
    .where(_RANKED.c.of_author <= bindparam("each"))
    .order_by(_RANKED.c.number.desc())
    .limit(bindparam("limit"))
)
