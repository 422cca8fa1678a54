"""SQL statements on the seals and objects that one repository gets from another. A fork gets them from its
parent. A repository also gets them from a fork when a branch of the fork is proposed to it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, bindparam, func, insert, or_, select, update

from relay.db.engine.keyset import Keyset
from relay.db.engine.upsert import InsertNew
from relay.db.ref import COLUMNS as REF_COLUMNS
from relay.db.repo import ALIVE, COLUMNS, ROLE, VISIBLE_TO_ME
from relay.db.schema.account import account
from relay.db.schema.ref import ref
from relay.db.schema.repo import collaborator, lineage, path_policy, repo
from relay.db.schema.seal import repo_seal, seal, seal_change, seal_parent
from relay.db.seal import held_by, root_in

_REPO: Any = bindparam("of_repo")
_IDS: Any = bindparam("ids", expanding=True)
_ME: Any = bindparam("account")
_SEEN = select(*COLUMNS, ROLE).select_from(
    repo.join(account, account.c.id == repo.c.owner_id).outerjoin(
        collaborator, and_(collaborator.c.repo_id == repo.c.id, collaborator.c.account_id == _ME)
    )
)

LIST = Keyset(_SEEN.where(repo.c.parent_id == _REPO, VISIBLE_TO_ME), "-id")
# How many forks that are there each of these has: (repository, number).
COUNTS = (
    select(repo.c.parent_id, func.count()).where(repo.c.parent_id.in_(_IDS), ALIVE).group_by(repo.c.parent_id)
)

COUNT = select(func.count()).where(repo.c.parent_id == _REPO, ALIVE)

# Repositories of an owner that share seals with this one, as the caller sees them: the newest first.
_RELATED = or_(
    repo.c.id == _REPO,
    repo.c.id.in_(select(lineage.c.of_id).where(lineage.c.repo_id == _REPO)),
    repo.c.id.in_(select(lineage.c.repo_id).where(lineage.c.of_id == _REPO)),
)
RELATIVES = _SEEN.where(account.c.handle == bindparam("owner"), _RELATED, VISIBLE_TO_ME).order_by(
    repo.c.id.desc()
)
# Of these, those that the caller sees: (id, owner, name).
NAMED = (
    select(repo.c.id, account.c.handle, repo.c.name)
    .select_from(
        repo.join(account, account.c.id == repo.c.owner_id).outerjoin(
            collaborator, and_(collaborator.c.repo_id == repo.c.id, collaborator.c.account_id == _ME)
        )
    )
    .where(repo.c.id.in_(_IDS), VISIBLE_TO_ME)
)

LINEAGE = select(lineage.c.of_id).where(lineage.c.repo_id == _REPO)
DESCEND = InsertNew(lineage)
RULES = select(path_policy.c.path, path_policy.c.visibility).where(path_policy.c.repo_id == _REPO)
RULE = insert(path_policy)
SET_POLICY = update(repo).where(repo.c.id == _REPO).values(policy=bindparam("number"))

# Living branches and tags: (type, name, head or None).
REFS = (
    select(ref.c.type, ref.c.name, ref.c.head)
    .where(ref.c.repo_id == _REPO, ref.c.deleted_at.is_(None))
    .order_by(ref.c.type, ref.c.name)
)
# A branch that lives in a repository that is there, and the number of that one's path policy or None.
LIVING = (
    select(*REF_COLUMNS, repo.c.policy)
    .select_from(ref.join(repo, repo.c.id == ref.c.repo_id))
    .where(ref.c.id == bindparam("branch_id"), ref.c.deleted_at.is_(None), ALIVE)
)

# The seals that these lead to and that another repository (`to_repo`) does not have: (id, generation, root of
# the tree that this one has, signed root). Who has a seal has all before it, so that the walk ends there.
_LACKS = ~held_by(bindparam("to_repo"))
_new = select(seal.c.id).where(seal.c.id.in_(_IDS), held_by(_REPO), _LACKS).cte("fresh", recursive=True)
_new = _new.union(
    select(seal.c.id)
    .select_from(
        _new.join(seal_parent, seal_parent.c.seal_id == _new.c.id).join(
            seal, seal.c.id == seal_parent.c.parent_id
        )
    )
    .where(_LACKS)
)
FRESH = select(seal.c.id, seal.c.generation, root_in(_REPO), seal.c.root).select_from(
    _new.join(seal, seal.c.id == _new.c.id)
)
PAYLOADS = select(seal.c.id, seal.c.payload).where(seal.c.id.in_(_IDS))
# Seals that came from elsewhere, among these and what leads to them.
_came = (
    select(repo_seal.c.seal_id)
    .where(repo_seal.c.repo_id == _REPO, repo_seal.c.seal_id.in_(_IDS))
    .cte("came", recursive=True)
)
_came = _came.union(
    select(repo_seal.c.seal_id)
    .select_from(
        _came.join(seal_parent, seal_parent.c.seal_id == _came.c.seal_id).join(
            repo_seal, repo_seal.c.seal_id == seal_parent.c.parent_id
        )
    )
    .where(repo_seal.c.repo_id == _REPO)
)
CAME = select(_came.c.seal_id)
CHANGED = (
    select(seal_change.c.path, seal_change.c.kind, seal_change.c.digest)
    .where(seal_change.c.seal_id.in_(_IDS), seal_change.c.kind.is_not(None))
    .distinct()
)
HOLD = InsertNew(repo_seal)

# Before a repository is purged, another one that has its seals takes them over, one with the whole trees if
# there is one; and its forks descend from nobody.
_OTHERS = and_(repo_seal.c.seal_id == seal.c.id, repo_seal.c.repo_id != _REPO)
_HEIR = select(func.min(repo_seal.c.repo_id)).where(_OTHERS).correlate(seal)
HAND_OVER = (
    update(seal)
    .where(seal.c.repo_id == _REPO, select(repo_seal.c.seal_id).where(_OTHERS).correlate(seal).exists())
    .values(
        repo_id=func.coalesce(
            _HEIR.where(repo_seal.c.root.is_(None)).scalar_subquery(), _HEIR.scalar_subquery()
        )
    )
)
ORPHAN = update(repo).where(repo.c.parent_id == _REPO).values(parent_id=None)
