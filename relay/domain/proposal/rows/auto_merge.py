"""SQL statements on signed merges that wait until nothing blocks them."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import and_, bindparam, delete, insert, select

from relay.db.engine.database import Row
from relay.db.schema.account import account
from relay.db.schema.collaboration.proposal import auto_merge, proposal

_REPO: Any = bindparam("of_repo")
_THIS = and_(auto_merge.c.repo_id == _REPO, auto_merge.c.number == bindparam("of_number"))


class AutoRow(NamedTuple):
    """A signed merge that waits to land. `principal`: who signed it and with which session, as JSON. `body`:
    the request with the signatures, as JSON."""

    number: int
    prepare_id: str
    account_id: str
    principal: str
    body: str


INSERT = insert(auto_merge)
ONE = select(
    auto_merge.c.number,
    auto_merge.c.prepare_id,
    auto_merge.c.account_id,
    auto_merge.c.principal,
    auto_merge.c.body,
).where(_THIS)
DROP = delete(auto_merge).where(_THIS)
OF_REPO = select(auto_merge.c.number).where(auto_merge.c.repo_id == _REPO).order_by(auto_merge.c.number)
OF_ACCOUNTS = (
    select(auto_merge.c.repo_id)
    .where(auto_merge.c.account_id.in_(bindparam("accounts", expanding=True)))
    .distinct()
)
OF_REPOS = (
    select(auto_merge.c.repo_id)
    .where(auto_merge.c.repo_id.in_(bindparam("repos", expanding=True)))
    .distinct()
)
OF_BASE = (
    select(auto_merge.c.number)
    .select_from(
        auto_merge.join(
            proposal,
            and_(proposal.c.repo_id == auto_merge.c.repo_id, proposal.c.number == auto_merge.c.number),
        )
    )
    .where(auto_merge.c.repo_id == _REPO, proposal.c.base_id == bindparam("branch_id"))
    .order_by(auto_merge.c.number)
)
# (number, account, handle, kind, strategy, time)
SHOWN = (
    select(
        auto_merge.c.number,
        account.c.id,
        account.c.handle,
        account.c.kind,
        auto_merge.c.strategy,
        auto_merge.c.created_at,
    )
    .select_from(auto_merge.join(account, account.c.id == auto_merge.c.account_id))
    .where(auto_merge.c.repo_id == _REPO, auto_merge.c.number.in_(bindparam("numbers", expanding=True)))
)


def to_row(values: Row) -> AutoRow:
    return AutoRow(*values)
