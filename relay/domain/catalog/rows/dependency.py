"""SQL statements on the dependencies of repositories."""

from __future__ import annotations

from typing import Any

from sqlalchemy import String, and_, bindparam, case, delete, func, insert, or_, select

from localstore.core.names import MANIFEST
from relay.db.engine.keyset import Keyset
from relay.db.repo import VISIBLE_TO_ME
from relay.db.schema.account import account
from relay.db.schema.catalog.dependency import dependency
from relay.db.schema.ref import ref
from relay.db.schema.repo import collaborator, path_policy, repo, repo_alias

_ME: Any = bindparam("account")
_NAMES: Any = bindparam("names", expanding=True)
_FULL_NAME = account.c.handle + "/" + repo.c.name
_FROM = repo.join(account, account.c.id == repo.c.owner_id).outerjoin(
    collaborator, and_(collaborator.c.repo_id == repo.c.id, collaborator.c.account_id == _ME)
)
_WRITES = or_(repo.c.owner_id == _ME, collaborator.c.role.in_(("owner", "admin", "write")))


def _rule(path: str) -> Any:
    """An SQL expression for the visibility that the path policy gives to exactly this path. It is null if the
    policy has no rule for the path."""
    return (
        select(path_policy.c.visibility)
        .where(path_policy.c.repo_id == repo.c.id, path_policy.c.path == path)
        .scalar_subquery()
    )


# Whether the caller sees the manifest: its own rule decides about it, else that of the whole tree.
_SEES = or_(
    _WRITES, repo.c.policy.is_(None), func.coalesce(_rule(MANIFEST), _rule(""), "public") != "private"
)

# Repositories that the caller sees whose manifest names one of `names`.
DEPENDENTS = Keyset(
    select(repo.c.id, _FULL_NAME.label("full_name"), repo.c.description)
    .select_from(_FROM)
    .where(
        repo.c.id.in_(select(dependency.c.repo_id).where(dependency.c.name.in_(_NAMES))), VISIBLE_TO_ME, _SEES
    ),
    "id",
)
# Those that the caller sees of these `owners` whose full names stand in `joined`, each between two bars; more
# where a name has an underscore: id, full name.
NAMED = (
    select(repo.c.id, _FULL_NAME)
    .select_from(_FROM)
    .where(
        account.c.handle.in_(bindparam("owners", expanding=True)),
        bindparam("joined", type_=String).like("%|" + _FULL_NAME + "|%"),
        VISIBLE_TO_ME,
    )
)
OLD_NAMES = select(repo_alias.c.owner + "/" + repo_alias.c.name).where(
    repo_alias.c.repo_id == bindparam("of_repo"), repo_alias.c.expires_at > bindparam("now")
)

# Head of the default branch; null: nothing that a server reads.
HEAD = (
    select(case((repo.c["class"] != "private_e2ee", ref.c.head)))
    .select_from(
        repo.join(
            ref,
            and_(
                ref.c.repo_id == repo.c.id,
                ref.c.type == "branch",
                ref.c.name == repo.c.default_branch,
                ref.c.deleted_at.is_(None),
            ),
        )
    )
    .where(repo.c.id == bindparam("of_repo"))
)
CLEAR = delete(dependency).where(dependency.c.repo_id == bindparam("of_repo"))
INSERT = insert(dependency)
