"""SQL statements for reading repositories with git."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, bindparam, select

from relay.db.engine.upsert import InsertNew
from relay.db.repo import ALIVE
from relay.db.schema.account import account
from relay.db.schema.git import git_person
from relay.db.schema.ref import ref
from relay.db.schema.repo import repo
from relay.db.schema.seal import seal_change

# Living branches and tags that lead to a seal: (type, name, head).
REFS = (
    select(ref.c.type, ref.c.name, ref.c.head)
    .where(ref.c.repo_id == bindparam("repo_id"), ref.c.deleted_at.is_(None), ref.c.head.is_not(None))
    .order_by(ref.c.type, ref.c.name)
)
# (seal, path, kind or None, digest, size)
CHANGES = select(
    seal_change.c.seal_id, seal_change.c.path, seal_change.c.kind, seal_change.c.digest, seal_change.c.size
).where(seal_change.c.seal_id.in_(bindparam("ids", expanding=True)))

_ACCOUNTS: Any = bindparam("accounts", expanding=True)
PERSONS = select(git_person.c.account_id, git_person.c.person).where(git_person.c.account_id.in_(_ACCOUNTS))
KEEP_PERSON = InsertNew(git_person)
HANDLES = select(account.c.id, account.c.handle).where(account.c.id.in_(_ACCOUNTS))

# Those of these repositories that somebody may read with git.
READABLE = select(repo.c.id).where(
    and_(repo.c.id.in_(bindparam("ids", expanding=True)), ALIVE, repo.c["class"] != "private_e2ee")
)
