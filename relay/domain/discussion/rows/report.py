"""SQL statements on security reports."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import bindparam, func, insert, select, update

from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account
from relay.db.schema.collaboration.issue import report


@dataclass(slots=True, frozen=True)
class ReportRow:
    id: str
    title: str
    body: str
    severity: Any
    state: Any
    created_at: int
    decided_at: int | None
    advisory_id: str | None
    reporter_id: str
    reporter_handle: str | None
    reporter_kind: str


_r = report.c
_REPORTS = (
    select(
        _r.id,
        _r.title,
        _r.body,
        _r.severity,
        _r.state,
        _r.created_at,
        _r.decided_at,
        _r.advisory_id,
        account.c.id.label("reporter"),
        account.c.handle,
        account.c.kind,
    )
    .select_from(report.join(account, account.c.id == _r.reporter_id))
    .where(_r.repo_id == bindparam("of_repo"))
)


@cache
def keyset_of(by_state: bool, by_reporter: bool) -> Keyset:
    """SQL statements that read a page of reports, newest first. `by_state`: only reports in the state
    `of_state`, an SQL parameter. `by_reporter`: only reports by the account `who`, an SQL parameter."""
    reports = _REPORTS.where(_r.state == bindparam("of_state")) if by_state else _REPORTS
    return Keyset(reports.where(_r.reporter_id == bindparam("who")) if by_reporter else reports, "-id")


ONE = _REPORTS.where(_r.id == bindparam("of_report"))
COUNT = select(func.count()).where(_r.repo_id == bindparam("of_repo"))
INSERT = insert(report)
DECIDE = (
    update(report)
    .where(_r.repo_id == bindparam("of_repo"), _r.id == bindparam("of_report"))
    .values(state=bindparam("new_state"), advisory_id=bindparam("new_advisory"), decided_at=bindparam("now"))
)
WROTE = select(func.count()).where(_r.reporter_id == bindparam("who"), _r.created_at > bindparam("since"))


def to_row(values: Row) -> ReportRow:
    return ReportRow(*values)
