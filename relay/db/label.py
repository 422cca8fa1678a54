"""Statements on labels."""

from __future__ import annotations

from sqlalchemy import bindparam, func, insert, select

from relay.db.engine.keyset import Keyset
from relay.db.schema.label import label

_OF_REPO = label.c.repo_id == bindparam("of_repo")

_COLUMNS = (label.c.name, label.c.color, label.c.description, label.c.folded)
PAGE = Keyset(select(*_COLUMNS).where(_OF_REPO), "folded")
COUNT = select(func.count()).select_from(label).where(_OF_REPO)
INSERT = insert(label)
