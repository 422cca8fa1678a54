"""The repository that a fork was made from, as a caller sees it."""

from __future__ import annotations

from localstore.core.model.repo import ParentRepo
from relay.caller import Caller
from relay.db import repo as rows
from relay.db.engine.database import Tx
from relay.db.repo import RepoRow


async def parent_of(tx: Tx, caller: Caller, row: RepoRow) -> ParentRepo | None:
    """The repository that this one was forked from. None if it is not a fork, or if the caller may not see
    that repository."""
    if row.parent_id is None:
        return None
    me = caller.principal.account_id if caller.principal else ""
    parent = await tx.one(rows.PARENT, id=row.parent_id, account=me)
    return None if parent is None else ParentRepo(id=parent[0], full_name=f"{parent[1]}/{parent[2]}")
