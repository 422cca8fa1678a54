"""Statements on repositories."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import and_, bindparam, case, or_, select

from relay.db.database import Row
from relay.db.schema import account, collaborator, repo

Role = Literal["owner", "admin", "write", "triage", "read"]


@dataclass(slots=True, frozen=True)
class RepoRow:
    """A repository as the gate's one query reads it."""

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
    tree_key: bytes = field(repr=False)
    tree_key_id: str
    created_at: int
    updated_at: int

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


def row(found: Row) -> RepoRow:
    return RepoRow(*found[: len(COLUMNS)])


def role(found: Row) -> Role | None:
    value: Role | None = found[len(COLUMNS)]
    return value
