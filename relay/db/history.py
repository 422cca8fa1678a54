"""Statements that walk sealed history.

A seal's generation is one more than the highest of its parents. Ancestors therefore have lower generations,
and each generation below a seal's own contains an ancestor of it. So a window of N generations holds at least
N seals of a walk, and a page of history reads no more than its window.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import CTE, ColumnElement, and_, bindparam, exists, func, or_, select

from relay.db.schema.ref import ref
from relay.db.schema.seal import seal, seal_change, seal_parent
from relay.db.seal import held_by, root_in

FIRST = 1  # generation of a seal without parents
_REPO = held_by(bindparam("repo_id"))


def _walk(start: ColumnElement[bool]) -> CTE:
    """Ids of the seals that `start` selects and of their ancestors down to generation `floor`."""
    walk = select(seal.c.id).where(start).cte("walk", recursive=True)
    parent: Any = seal.alias("parent")
    step = (
        select(parent.c.id)
        .select_from(
            walk.join(seal_parent, seal_parent.c.seal_id == walk.c.id).join(
                parent, parent.c.id == seal_parent.c.parent_id
            )
        )
        .where(parent.c.generation >= bindparam("floor"))
    )
    return walk.union(step)


_HEAD = _walk(and_(seal.c.id == bindparam("head"), _REPO))
_IN_WALK = _HEAD.join(seal, seal.c.id == _HEAD.c.id)
_ORDER = (seal.c.generation.desc(), seal.c.created_at.desc(), seal.c.id)
_AT_PATH = or_(
    seal_change.c.path == bindparam("path"),
    and_(seal_change.c.path > bindparam("below"), seal_change.c.path < bindparam("behind")),
)
_TOUCHES = exists().where(seal_change.c.seal_id == seal.c.id, _AT_PATH)

# The walk from `head`: in reverse topological order, which never changes.
WALK = (
    select(seal.c.id)
    .select_from(_IN_WALK)
    .order_by(*_ORDER)
    .limit(bindparam("limit"))
    .offset(bindparam("skip"))
)
# Those that changed a path, and those without parents, which come last: (id, generation, root of the tree).
WALK_PATH = (
    select(seal.c.id, seal.c.generation, root_in(bindparam("repo_id")))
    .select_from(_IN_WALK)
    .where(or_(seal.c.generation == FIRST, _TOUCHES))
    .order_by(*_ORDER)
    .limit(bindparam("limit"))
    .offset(bindparam("skip"))
)
# The paths that a seal changed at a path and below it.
CHANGED = select(seal_change.c.path).where(seal_change.c.seal_id == bindparam("seal_id"), _AT_PATH)
GENERATION = select(seal.c.generation).where(seal.c.id == bindparam("head"), _REPO)

# Nodes of the graph around `ids`, a row for each parent: (id, generation, parent or None).
_IDS = _walk(seal.c.id.in_(bindparam("ids", expanding=True)))
GRAPH = (
    select(seal.c.id, seal.c.generation, seal_parent.c.parent_id)
    .select_from(
        _IDS.join(seal, seal.c.id == _IDS.c.id).outerjoin(seal_parent, seal_parent.c.seal_id == seal.c.id)
    )
    .order_by(seal.c.generation.desc(), seal.c.id, seal_parent.c.position)
)
TOP_GENERATION = select(func.max(seal.c.generation)).where(seal.c.id.in_(bindparam("ids", expanding=True)))

# Seals of the repository with ids from `low` to below `high`: their lowest generation, and those of them that
# a living branch or tag leads to.
_BETWEEN = and_(_REPO, seal.c.id >= bindparam("low"), seal.c.id < bindparam("high"))
LOWEST = select(func.min(seal.c.generation)).where(_BETWEEN)
_HEADS = select(ref.c.head).where(ref.c.repo_id == bindparam("repo_id"), ref.c.deleted_at.is_(None))
_REACHED = _walk(seal.c.id.in_(_HEADS))
REACHED = (
    select(seal.c.id)
    .select_from(_REACHED.join(seal, seal.c.id == _REACHED.c.id))
    .where(_BETWEEN)
    .order_by(*_ORDER)
    .limit(bindparam("limit"))
)

REFS_NAMED = (
    select(ref.c.type, ref.c.head)
    .where(
        ref.c.repo_id == bindparam("repo_id"),
        ref.c.name == bindparam("name"),
        ref.c.type.in_(("branch", "tag")),
        ref.c.deleted_at.is_(None),
    )
    .order_by(ref.c.type)
)
