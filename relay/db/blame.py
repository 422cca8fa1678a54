"""Statements on line blame: the versions of a path along first parents, and kept owners."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, bindparam, select

from relay.db.schema import blame_cache, seal, seal_change, seal_parent
from relay.db.upsert import InsertNew


def _versions() -> Any:
    """(seal, generation, kind, digest) of the seals that changed `path`, from `head` down first parents."""
    chain = select(seal.c.id).where(seal.c.id == bindparam("head")).cte("chain", recursive=True)
    step = select(seal_parent.c.parent_id).select_from(
        chain.join(seal_parent, and_(seal_parent.c.seal_id == chain.c.id, seal_parent.c.position == 0))
    )
    chain = chain.union_all(step)
    return (
        select(seal.c.id, seal_change.c.kind, seal_change.c.digest, seal_change.c.size)
        .select_from(
            chain.join(
                seal_change,
                and_(seal_change.c.seal_id == chain.c.id, seal_change.c.path == bindparam("path")),
            ).join(seal, seal.c.id == chain.c.id)
        )
        .order_by(seal.c.generation.desc())
    )


VERSIONS = _versions()
REMOVED = select(seal_change.c.path).where(
    seal_change.c.seal_id == bindparam("seal_id"), seal_change.c.kind.is_(None)
)
_CACHED = and_(blame_cache.c.repo_id == bindparam("repo_id"), blame_cache.c.path == bindparam("path"))
CACHED = select(blame_cache.c.owners).where(_CACHED, blame_cache.c.seal_id == bindparam("seal_id"))
CACHED_AMONG = select(blame_cache.c.seal_id).where(
    _CACHED, blame_cache.c.seal_id.in_(bindparam("ids", expanding=True))
)
KEEP = InsertNew(blame_cache)
