"""SQL statements on line blame: the versions of a file along first parents, and the cached owners of lines
(the seals that they come from)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, bindparam, delete, func, literal, or_, select

from relay.db.engine.upsert import InsertNew
from relay.db.schema.seal import blame_cache, seal, seal_change, seal_parent


def _versions() -> Any:
    """A query for the seals that changed a file: (seal, steps, kind, digest, size), newest first. It follows
    first parents from `head`, for at most `steps` steps. The last row is the last seal that was reached, even
    if it did not change the file. SQL parameters: `head`, `path`, `steps`."""
    top = select(seal.c.id, literal(0).label("down")).where(seal.c.id == bindparam("head"))
    chain = top.cte("chain", recursive=True)
    step = (
        select(seal_parent.c.parent_id, chain.c.down + 1)
        .select_from(
            chain.join(seal_parent, and_(seal_parent.c.seal_id == chain.c.id, seal_parent.c.position == 0))
        )
        .where(chain.c.down < bindparam("steps"))
    )
    chain = chain.union_all(step)
    last: Any = select(func.max(chain.c.down)).scalar_subquery()
    return (
        select(chain.c.id, chain.c.down, seal_change.c.kind, seal_change.c.digest, seal_change.c.size)
        .select_from(
            chain.outerjoin(
                seal_change,
                and_(seal_change.c.seal_id == chain.c.id, seal_change.c.path == bindparam("path")),
            )
        )
        .where(or_(seal_change.c.seal_id.is_not(None), chain.c.down == last))
        .order_by(chain.c.down)
    )


VERSIONS = _versions()
REMOVED = select(seal_change.c.path).where(
    seal_change.c.seal_id == bindparam("seal_id"), seal_change.c.kind.is_(None)
)
_CACHED = and_(
    blame_cache.c.repo_id == bindparam("repo_id"),
    blame_cache.c.path == bindparam("path"),
    blame_cache.c.first_parent == bindparam("first_parent"),
)
CACHED = select(blame_cache.c.owners).where(_CACHED, blame_cache.c.seal_id == bindparam("seal_id"))
CACHED_AMONG = select(blame_cache.c.seal_id).where(
    _CACHED, blame_cache.c.seal_id.in_(bindparam("ids", expanding=True))
)
KEEP = InsertNew(blame_cache)
_OF_REPO = blame_cache.c.repo_id == bindparam("repo_id")
CACHE_SIZE = select(func.count(), func.coalesce(func.sum(func.length(blame_cache.c.owners)), 0)).where(
    _OF_REPO
)
DROP = delete(blame_cache).where(_OF_REPO)
