"""SQL statements on runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, case, func, insert, select, update

from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account
from relay.db.schema.collaboration.run import check_rollup, run
from relay.db.schema.seal import seal
from relay.db.seal import held_by


@dataclass(slots=True, frozen=True)
class RunRow:
    id: str
    name: str
    seal_id: str
    branch: str
    attempt: int
    status: Any
    conclusion: Any
    summary: str | None
    details_url: str | None
    created_at: int
    started_at: int | None
    completed_at: int | None
    newest: bool
    reporter_id: str
    reporter_handle: str | None
    reporter_kind: str


_r = run.c
COLUMNS = (
    _r.id,
    _r.name,
    _r.seal_id,
    _r.branch,
    _r.attempt,
    _r.status,
    _r.conclusion,
    _r.summary,
    _r.details_url,
    _r.created_at,
    _r.started_at,
    _r.completed_at,
    _r.newest,
    account.c.id.label("reporter_id"),
    account.c.handle,
    account.c.kind,
)
REPORTED = run.join(account, account.c.id == _r.reporter_id)
_OF_REPO = _r.repo_id == bindparam("of_repo")
_OF_SEAL = and_(_OF_REPO, _r.seal_id == bindparam("of_seal"))
_NEWEST = and_(_OF_SEAL, _r.newest)
_THIS = and_(_OF_REPO, _r.id == bindparam("of_run"))
_RUNS = select(*COLUMNS).select_from(REPORTED)

_FILTERS: dict[str, ColumnElement[bool]] = {
    "prefix": _r.id.between(bindparam("prefix"), bindparam("prefix").concat("g")),
    "seal": _r.seal_id == bindparam("seal"),
    "branch": _r.branch == bindparam("branch"),
    "name": _r.folded == bindparam("name"),
    "status": _r.status == bindparam("status"),
    "conclusion": _r.conclusion == bindparam("conclusion"),
}


@cache
def keyset_of(filters: frozenset[str]) -> Keyset:
    """SQL statements that read a page of runs, newest first. `filters`: names of the `_FILTERS` to apply; the
    value of each is the SQL parameter of its name."""
    return Keyset(_RUNS.where(_OF_REPO, *(_FILTERS[name] for name in sorted(filters))), "-id")


ONE = _RUNS.where(_THIS)
OF_SEAL = _RUNS.where(_NEWEST).order_by(_r.folded)
NEWEST_OF_NAME = _RUNS.where(_NEWEST, _r.folded == bindparam("folded"))
BRANCH_OF_SEAL = select(seal.c.branch).where(held_by(bindparam("of_repo")), seal.c.id == bindparam("of_seal"))
IN_SEAL = select(func.count(), func.count(case((_r.newest, 1)))).select_from(run).where(_OF_SEAL)
REPORTED_SINCE = select(func.count()).where(
    _r.reporter_id == bindparam("who"), _r.created_at > bindparam("since")
)
INSERT = insert(run)
SUPERSEDE = update(run).where(_THIS).values(newest=False)
EDIT = (
    update(run)
    .where(_THIS)
    .values(
        status=bindparam("new_status"),
        conclusion=bindparam("new_conclusion"),
        summary=bindparam("new_summary"),
        details_url=bindparam("new_details_url"),
        started_at=bindparam("new_started_at"),
        completed_at=bindparam("new_completed_at"),
    )
)


def _count_where(which: ColumnElement[bool]) -> ColumnElement[int]:
    return func.count(case((which, 1)))


# The states of the newest attempts on a seal.
_DONE = _r.status == "completed"
_PASSED = _r.conclusion.in_(("success", "neutral", "skipped"))
COUNTED = select(
    func.count(),
    _count_where(and_(_DONE, _PASSED)),
    _count_where(and_(_DONE, ~_PASSED)),
    _count_where(~_DONE),
).where(_NEWEST)
_HERE = and_(check_rollup.c.repo_id == bindparam("of_repo"), check_rollup.c.seal_id == bindparam("of_seal"))
ROLLUP_INSERT = insert(check_rollup)
ROLLUP_UPDATE = (
    update(check_rollup)
    .where(_HERE)
    .values(
        total=bindparam("new_total"),
        passed=bindparam("new_passed"),
        failed=bindparam("new_failed"),
        pending=bindparam("new_pending"),
    )
)


def to_row(values: Row) -> RunRow:
    return RunRow(*values)
