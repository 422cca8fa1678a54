"""SQL statements on protection rules."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, delete, insert, select

from relay.db.engine.keyset import Keyset
from relay.db.schema.collaboration.protection import protection

_OF_REPO = protection.c.repo_id == bindparam("of_repo")
_THIS = and_(_OF_REPO, protection.c.pattern == bindparam("of_pattern"))
FIELDS = [column for column in protection.c if column.name != "repo_id"]
NAMES = [column.name for column in FIELDS]

PAGE = Keyset(select(*FIELDS).where(_OF_REPO), "pattern")
ALL = select(*FIELDS).where(_OF_REPO).order_by(protection.c.pattern)
INSERT = insert(protection)
DELETE = delete(protection).where(_THIS)
