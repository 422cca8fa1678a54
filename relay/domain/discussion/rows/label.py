"""SQL statements on labels."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, delete, func, insert, select, update

from relay.db.engine.keyset import Keyset
from relay.db.schema.collaboration.label import label

_OF_REPO = label.c.repo_id == bindparam("of_repo")
_THIS = and_(_OF_REPO, label.c.folded == bindparam("label"))

_COLUMNS = (label.c.name, label.c.color, label.c.description, label.c.folded)
PAGE = Keyset(select(*_COLUMNS).where(_OF_REPO), "folded")
ALL = select(*_COLUMNS).where(_OF_REPO).order_by(label.c.folded)
ONE = select(*_COLUMNS).where(_THIS)
COUNT = select(func.count()).select_from(label).where(_OF_REPO)
INSERT = insert(label)
EDIT = (
    update(label)
    .where(_THIS)
    .values(
        folded=bindparam("new_folded"),
        name=bindparam("new_name"),
        color=bindparam("new_color"),
        description=bindparam("new_description"),
    )
)
DELETE = delete(label).where(_THIS)
