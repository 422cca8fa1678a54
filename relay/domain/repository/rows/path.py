"""SQL statements on the rules for paths, and on their changes."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, delete, func, insert, select, update

from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account
from relay.db.schema.repo import path_change, path_policy, repo

_p, _c = path_policy.c, path_change.c
_OF_REPO = _p.repo_id == bindparam("of_repo")
_THIS = and_(_OF_REPO, _p.path == bindparam("of_path"))

PAGE = Keyset(select(_p.path, _p.visibility).where(_OF_REPO), "path")
ONE = select(_p.visibility).where(_THIS)
COUNT = select(func.count()).select_from(path_policy).where(_OF_REPO)
HIDING = COUNT.where(_p.visibility == "private")
INSERT = insert(path_policy)
SET = update(path_policy).where(_THIS).values(visibility=bindparam("new_visibility"))
DELETE = delete(path_policy).where(_THIS)
SET_NUMBER = update(repo).where(repo.c.id == bindparam("of_repo")).values(policy=bindparam("new_number"))

CHANGES = Keyset(
    select(
        _c.id,
        _c.path,
        _c.was,
        _c.became,
        _c.created_at,
        account.c.id.label("author"),
        account.c.handle,
        account.c.kind,
    )
    .select_from(path_change.join(account, account.c.id == _c.author_id))
    .where(_c.repo_id == bindparam("of_repo")),
    "-id",
)
# (id, path, was, became)
CHANGES_OF = select(_c.id, _c.path, _c.was, _c.became).where(
    _c.repo_id == bindparam("of_repo"), _c.id.in_(bindparam("ids", expanding=True))
)
CHANGED = insert(path_change)
CHANGE_COUNT = select(func.count()).select_from(path_change).where(_c.repo_id == bindparam("of_repo"))
