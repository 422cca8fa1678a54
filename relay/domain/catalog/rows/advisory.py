"""SQL statements on advisories. They leave out advisories of repositories that are not public."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, func, insert, select

from relay.db.engine.keyset import Keyset
from relay.db.repo import ALIVE, PUBLIC
from relay.db.schema.account import account
from relay.db.schema.catalog.advisory import advisory, advisory_package
from relay.db.schema.repo import repo

_SHOWN = (
    select(advisory.c.id, advisory.c.record)
    .select_from(
        advisory.join(repo, repo.c.id == advisory.c.repo_id).join(account, account.c.id == repo.c.owner_id)
    )
    .where(PUBLIC, ALIVE)
)
_NAMES: Any = bindparam("names", expanding=True)

PAGE = Keyset(_SHOWN, "-id")
OF_REPO = Keyset(
    _SHOWN.where(account.c.handle == bindparam("owner"), repo.c.name == bindparam("name")), "-id"
)
ONE = _SHOWN.where(advisory.c.id == bindparam("advisory_id"))
COUNT = select(func.count()).select_from(advisory).where(advisory.c.repo_id == bindparam("of_repo"))
INSERT = insert(advisory)
INSERT_PACKAGE = insert(advisory_package)
# Columns: name as it is compared, record.
ABOUT = (
    select(advisory_package.c.name, advisory.c.record)
    .select_from(
        advisory_package.join(advisory, advisory.c.id == advisory_package.c.advisory_id).join(
            repo, repo.c.id == advisory.c.repo_id
        )
    )
    .where(
        advisory_package.c.ecosystem == bindparam("ecosystem"),
        advisory_package.c.name.in_(_NAMES),
        PUBLIC,
        ALIVE,
    )
    .order_by(advisory.c.id.desc())
    .limit(bindparam("limit"))
)
