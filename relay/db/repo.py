"""SQL statements on repositories."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from sqlalchemy import (
    BigInteger,
    and_,
    bindparam,
    case,
    cast,
    delete,
    func,
    insert,
    null,
    or_,
    select,
    update,
)

from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.engine.upsert import InsertNew
from relay.db.schema.account import account
from relay.db.schema.collaboration.attention import social
from relay.db.schema.repo import collaborator, path_policy, repo, repo_alias, tree_key
from relay.db.schema.seal import seal

Role = Literal["owner", "admin", "write", "triage", "read"]


class RepoRow(msgspec.Struct, frozen=True):
    """A repository, with the columns that the gate's query reads."""

    id: str
    owner_id: str
    owner: str
    name: str
    kind: str
    class_: str
    description: str
    default_branch: str
    state: str
    parent_id: str | None
    tree_key: bytes
    tree_key_id: str
    created_at: int
    updated_at: int
    policy: int | None = None
    partial: bool | None = None

    def __repr__(self) -> str:
        return f"RepoRow({self.id!r})"  # not the tree key

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def public(self) -> bool:
        return self.class_ in ("published_public", "public_fork")


COLUMNS = (
    repo.c.id,
    repo.c.owner_id,
    account.c.handle,
    repo.c.name,
    repo.c.kind,
    repo.c["class"],
    repo.c.description,
    repo.c.default_branch,
    repo.c.state,
    repo.c.parent_id,
    repo.c.tree_key,
    repo.c.tree_key_id,
    repo.c.created_at,
    repo.c.updated_at,
    repo.c.policy,
    repo.c.partial,
)
PUBLIC = repo.c["class"].in_(("published_public", "public_fork"))
ALIVE = repo.c.state.in_(("active", "archived"))
_ME: Any = bindparam("account")
ROLE = case((repo.c.owner_id == _ME, "owner"), else_=collaborator.c.role)
VISIBLE_TO_ME = and_(ALIVE, or_(PUBLIC, repo.c.owner_id == _ME, collaborator.c.role.is_not(None)))
_FROM = repo.join(account, account.c.id == repo.c.owner_id).outerjoin(
    collaborator, and_(collaborator.c.repo_id == repo.c.id, collaborator.c.account_id == _ME)
)

# The gate's query: columns of RepoRow, then the caller's role. No row: missing or hidden.
VISIBLE = select(*COLUMNS, ROLE).select_from(_FROM).where(repo.c.id == bindparam("id"), VISIBLE_TO_ME)

# Lists: the same columns. `*_BY_NAME` pages one owner's in the order of the index on (owner, name).
_SEEN = select(*COLUMNS, ROLE).select_from(_FROM)
_NAMED = and_(account.c.handle == bindparam("owner"), repo.c.name == bindparam("name"))
ONE = select(*COLUMNS, ROLE).select_from(_FROM).where(repo.c.id == bindparam("id"))
ALIVE_ONE = ONE.where(ALIVE)
BY_NAME = _SEEN.where(_NAMED, VISIBLE_TO_ME)
ANY_BY_NAME = _SEEN.where(_NAMED, ALIVE)  # whoever asks; what it tells reaches only its owner
BY_ALIAS = (
    select(*COLUMNS, ROLE)
    .select_from(_FROM.join(repo_alias, repo_alias.c.repo_id == repo.c.id))
    .where(
        repo_alias.c.owner == bindparam("owner"),
        repo_alias.c.name == bindparam("name"),
        repo_alias.c.expires_at > bindparam("now"),
        VISIBLE_TO_ME,
    )
)
OF_OWNER = Keyset(_SEEN.where(repo.c.owner_id == bindparam("owner_id"), VISIBLE_TO_ME), "name")
DELETED_OF_OWNER = Keyset(
    _SEEN.where(
        repo.c.owner_id == bindparam("owner_id"),
        or_(repo.c.owner_id == _ME, collaborator.c.role == "owner"),
        repo.c.state == "deleted",
        repo.c.purge_at > bindparam("now"),
    ),
    "name",
)
ALL = Keyset(_SEEN.where(VISIBLE_TO_ME), "-id")
MINE = Keyset(_SEEN.where(ALIVE, or_(repo.c.owner_id == _ME, collaborator.c.role.is_not(None))), "-id")
OWNER_ID = select(account.c.id).where(account.c.handle == bindparam("handle"))
PARENT = (
    select(repo.c.id, account.c.handle, repo.c.name)
    .select_from(_FROM)
    .where(repo.c.id == bindparam("id"), VISIBLE_TO_ME)
)

# Search: `pattern` is a LIKE pattern whose own wildcards are escaped with a backslash.
_MATCHES = or_(
    repo.c.name.like(bindparam("pattern"), escape="\\"),
    (account.c.handle + "/" + repo.c.name).like(bindparam("pattern"), escape="\\"),
    func.lower(repo.c.description).like(bindparam("pattern"), escape="\\"),
)
_POINTS = func.sum(case((seal.c.created_at > bindparam("week"), 4), else_=1))
_HEAT: Any = (
    select(cast(func.coalesce(_POINTS, 0), BigInteger))
    .where(seal.c.repo_id == repo.c.id, seal.c.created_at > bindparam("month"))
    .scalar_subquery()
)
_STARS: Any = select(social.c.stars).where(social.c.repo_id == repo.c.id).scalar_subquery()
_HOT = (_HEAT + func.coalesce(_STARS, 0)).label("heat")
_FOUND = select(*COLUMNS, ROLE, _HOT).select_from(_FROM).where(_MATCHES, VISIBLE_TO_ME).subquery()
_POSITION = and_(_FOUND.c.heat == bindparam("heat"), _FOUND.c.id < bindparam("before"))
TRENDING = (
    select(_FOUND)
    .where(or_(_FOUND.c.heat < bindparam("heat"), _POSITION))
    .order_by(_FOUND.c.heat.desc(), _FOUND.c.id.desc())
    .limit(bindparam("limit"))
)
RECENT = (
    _SEEN.where(
        _MATCHES,
        VISIBLE_TO_ME,
        or_(
            repo.c.updated_at < bindparam("updated"),
            and_(repo.c.updated_at == bindparam("updated"), repo.c.id < bindparam("before")),
        ),
    )
    .order_by(repo.c.updated_at.desc(), repo.c.id.desc())
    .limit(bindparam("limit"))
)

POLICY = select(path_policy.c.path, path_policy.c.visibility).where(
    path_policy.c.repo_id == bindparam("repo_id")
)

# Writes.
INSERT = insert(repo)
_THIS = repo.c.id == bindparam("repo_id")
EDIT = (
    update(repo)
    .where(_THIS)
    .values(
        {
            "name": bindparam("new_name"),
            "description": bindparam("new_description"),
            "default_branch": bindparam("new_default_branch"),
            "class": bindparam("new_class"),
            "kind": bindparam("new_kind"),
            "state": bindparam("new_state"),
            "updated_at": bindparam("now"),
        }
    )
)
TOUCH = update(repo).where(_THIS).values(updated_at=bindparam("now"))
DELETE = (
    update(repo)
    .where(_THIS, ALIVE)
    .values(
        resume_state=repo.c.state,
        state="deleted",
        deleted_at=bindparam("now"),
        purge_at=bindparam("purge"),
        updated_at=bindparam("now"),
    )
)
_THROUGH_ORG = select(collaborator.c.repo_id).where(
    collaborator.c.repo_id == bindparam("repo_id"),
    collaborator.c.account_id == _ME,
    collaborator.c.role == "owner",
)
RESTORE = (
    update(repo)
    .where(
        _THIS,
        or_(repo.c.owner_id == _ME, repo.c.id.in_(_THROUGH_ORG)),
        repo.c.state == "deleted",
        repo.c.purge_at > bindparam("now"),
    )
    .values(
        state=func.coalesce(repo.c.resume_state, "active"),
        resume_state=null(),
        deleted_at=null(),
        purge_at=null(),
        updated_at=bindparam("now"),
    )
)

# Tree keys.
KEY = select(tree_key.c.key).where(
    tree_key.c.repo_id == bindparam("repo_id"), tree_key.c.id == bindparam("key_id")
)
KEYS = (
    select(tree_key.c.id, tree_key.c.key)
    .where(tree_key.c.repo_id == bindparam("repo_id"))
    .union(select(repo.c.tree_key_id, repo.c.tree_key).where(_THIS))
)
KEEP_KEY = InsertNew(tree_key)
NEW_KEY = update(repo).where(_THIS).values(tree_key=bindparam("new_key"), tree_key_id=bindparam("new_key_id"))

# Aliases: where a renamed repository was, and the reservation of that name.
_ALIAS = and_(repo_alias.c.owner == bindparam("owner"), repo_alias.c.name == bindparam("name"))
ALIAS_OF = select(repo_alias.c.repo_id).where(_ALIAS, repo_alias.c.expires_at > bindparam("now"))
ALIAS_DROP = delete(repo_alias).where(_ALIAS)
ALIAS_INSERT = insert(repo_alias)


def to_row(columns: Row) -> RepoRow:
    return RepoRow(*columns[: len(COLUMNS)])


def to_role(columns: Row) -> Role | None:
    value: Role | None = columns[len(COLUMNS)]
    return value
