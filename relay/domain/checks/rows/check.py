"""SQL statements on checks of a repository, and their states on seals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, bindparam, delete, func, insert, select, update

from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.schema.collaboration.run import check_rollup, known_check, run
from relay.domain.checks.rows.run import COLUMNS, REPORTED, RunRow, to_row


@dataclass(slots=True, frozen=True)
class CheckRow:
    """A check that has reported or is enabled. `last`: its newest run, if it has reported."""

    name: str
    enabled: bool
    last: RunRow | None


_c = known_check.c
_OF_REPO = _c.repo_id == bindparam("of_repo")
_THIS = and_(_OF_REPO, _c.folded == bindparam("of_check"))
_SEALS: Any = bindparam("seals", expanding=True)
_KNOWN = select(_c.folded, _c.name, _c.enabled, *(column.label(f"run_{column.name}") for column in COLUMNS))
_WITH_LAST = _KNOWN.select_from(
    known_check.outerjoin(REPORTED, and_(run.c.repo_id == _c.repo_id, run.c.id == _c.last_run))
)

PAGE = Keyset(_WITH_LAST.where(_OF_REPO), "folded")
ONE = _WITH_LAST.where(_THIS)
ENABLED = select(_c.folded, _c.name).where(_OF_REPO, _c.enabled).order_by(_c.folded)
COUNT = select(func.count()).select_from(known_check).where(_OF_REPO)
COUNT_ENABLED = COUNT.where(_c.enabled)
INSERT = insert(known_check)
SET = update(known_check).where(_THIS).values(name=bindparam("new_name"), enabled=bindparam("new_enabled"))
REPORT = update(known_check).where(_THIS).values(last_run=bindparam("new_run"))
DELETE = delete(known_check).where(_THIS)
STALEST = select(_c.folded).where(_OF_REPO, _c.enabled.is_(False)).order_by(_c.last_run, _c.folded).limit(1)

_ROLLUPS = and_(check_rollup.c.repo_id == bindparam("of_repo"), check_rollup.c.seal_id.in_(_SEALS))
ROLLUPS = select(
    check_rollup.c.seal_id,
    check_rollup.c.total,
    check_rollup.c.passed,
    check_rollup.c.failed,
    check_rollup.c.pending,
).where(_ROLLUPS)
# Names of enabled checks that have reported on these seals.
REPORTED_ON = (
    select(run.c.seal_id, func.count())
    .select_from(run.join(known_check, and_(_c.repo_id == run.c.repo_id, _c.folded == run.c.folded)))
    .where(run.c.repo_id == bindparam("of_repo"), run.c.seal_id.in_(_SEALS), run.c.newest, _c.enabled)
    .group_by(run.c.seal_id)
)
# Enabled checks that have passed, of seals.
PASSED = (
    select(run.c.seal_id, run.c.folded)
    .select_from(run.join(known_check, and_(_c.repo_id == run.c.repo_id, _c.folded == run.c.folded)))
    .where(
        run.c.repo_id == bindparam("of_repo"),
        run.c.seal_id.in_(_SEALS),
        _c.enabled,
        run.c.newest,
        run.c.status == "completed",
        run.c.conclusion.in_(("success", "neutral", "skipped")),
    )
)


def to_check(columns: Row) -> CheckRow:
    _, name, enabled, *last = columns
    return CheckRow(name, bool(enabled), None if last[0] is None else to_row(last))
