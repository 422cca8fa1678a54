"""SQL statements that walk sealed history.

The history of a seal consists of its parents and merge sources, and of their histories. A merge source of a
seal is a seal that was merged into it, other than by a squash or a rebase. It counts only if the repository
has it.

History is listed from the newest to the oldest seal, in an order that never changes: a seal comes before all
its ancestors. For this order each seal has a listed time, which is never before that of an ancestor. It also
has a rank, which is higher than that of an ancestor with the same time. So a walk down to a time returns
every newer seal.
"""

from __future__ import annotations

from typing import Any, Literal

from sqlalchemy import (
    CTE,
    ColumnElement,
    FromClause,
    Select,
    and_,
    bindparam,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    union_all,
)

from localstore.core.seal import LISTED as STRATEGIES
from relay.db.schema.ref import ref
from relay.db.schema.seal import repo_seal, seal, seal_change, seal_parent, seal_source
from relay.db.seal import held_by, root_in

Dialect = Literal["sqlite", "postgresql"]
DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgresql")
ALL_STEPS = 2**31 - 1  # of a line of first parents
_NO: ColumnElement[int] = literal_column("0")
_YES: ColumnElement[int] = literal_column("1")
FIRST = 1  # generation of a seal without parents
_REPO = held_by(bindparam("repo_id"))
_HEAD = and_(seal.c.id == bindparam("head"), _REPO)
# Sources that stand in history; an older row without a strategy counts as one of a merge.
_LISTED = or_(seal_source.c.strategy.is_(None), *(seal_source.c.strategy == one for one in STRATEGIES))


def _walk(start: ColumnElement[bool]) -> CTE:
    """A recursive query of the seals that `start` selects, their parents, and so on; it yields their ids. It
    ends at the generation in the SQL parameter `floor`. A seal's generation is one more than the highest
    generation of its parents."""
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


def _rank(table: FromClause) -> ColumnElement[int]:
    return func.coalesce(table.c.rank, table.c.generation)


def ordered_at(table: FromClause) -> ColumnElement[int]:
    """The time by which a seal is ordered in history."""
    return func.coalesce(table.c.order_at, table.c.created_at)


def _history(start: ColumnElement[bool], dialect: Dialect) -> CTE:
    """A recursive query of the seals that `start` selects and of their history; it yields their ids. It goes
    back to the time in the SQL parameter `since`."""
    walk = select(seal.c.id).where(start).cte("walk", recursive=True)
    above: Any = seal.alias("above")
    up, merged = _up(walk, above, dialect)
    repo_id: Any = bindparam("repo_id")
    came = exists().where(repo_seal.c.repo_id == repo_id, repo_seal.c.seal_id == above.c.id)
    held = or_(merged == _NO, above.c.repo_id == repo_id, came)
    step = select(above.c.id).select_from(up).where(ordered_at(above) >= bindparam("since"), held)
    return walk.union(step)


def _up(walk: CTE, above: Any, dialect: Dialect) -> tuple[FromClause, ColumnElement[int]]:
    """One step of a recursive query, from the seals in `walk` to their parents and merge sources. `above`:
    the table of seals, under an alias, in which these are found. Returns (FROM clause that joins `walk` with
    `above`, column that tells whether a seal was reached as a merge source).

    Parents and merge sources are in one FROM clause, because the recursive part of a query may have only one.
    PostgreSQL needs LATERAL, to look up parents and sources for each seal instead of reading both tables
    whole. SQLite has no LATERAL. There each row of the walk is doubled: one copy is joined with the parents,
    the other with the merge sources.
    """
    if dialect == "postgresql":
        parents = select(seal_parent.c.parent_id.label("id"), _NO.label("merged")).where(
            seal_parent.c.seal_id == walk.c.id
        )
        sources = select(seal_source.c.source_id.label("id"), _YES).where(
            seal_source.c.seal_id == walk.c.id, _LISTED
        )
        up = union_all(parents.correlate(walk), sources.correlate(walk)).lateral("up")
        return walk.join(up, true()).join(above, above.c.id == up.c.id), up.c.merged
    way = union_all(select(_NO.label("merged")), select(_YES.label("merged"))).subquery("way")
    return (
        walk.join(way, true())
        .outerjoin(seal_parent, and_(way.c.merged == _NO, seal_parent.c.seal_id == walk.c.id))
        .outerjoin(seal_source, and_(way.c.merged == _YES, seal_source.c.seal_id == walk.c.id, _LISTED))
        .join(above, above.c.id == func.coalesce(seal_parent.c.parent_id, seal_source.c.source_id))
    ), way.c.merged


def _first_parents() -> CTE:
    """A recursive query that follows first parents, from the seal in the SQL parameter `head` for at most
    `steps` steps. Its rows are (seal id, number of steps from `head`)."""
    top = select(seal.c.id, literal(0).label("down")).where(_HEAD)
    line = top.cte("line", recursive=True)
    step = (
        select(seal_parent.c.parent_id, line.c.down + 1)
        .select_from(
            line.join(seal_parent, and_(seal_parent.c.seal_id == line.c.id, seal_parent.c.position == 0))
        )
        .where(line.c.down < bindparam("steps"))
    )
    return line.union_all(step)


_ORDER = (ordered_at(seal).desc(), _rank(seal).desc(), seal.c.id)
_AT_PATH = or_(
    seal_change.c.path == bindparam("path"),
    and_(seal_change.c.path > bindparam("below"), seal_change.c.path < bindparam("behind")),
)
_TOUCHES = exists().where(seal_change.c.seal_id == seal.c.id, _AT_PATH)


def _select_seals(walk: CTE, *columns: Any) -> Select[Any]:
    return (
        select(seal.c.id, *columns)
        .select_from(walk.join(seal, seal.c.id == walk.c.id))
        .order_by(*_ORDER)
        .limit(bindparam("limit"))
        .offset(bindparam("skip"))
    )


def _at_path(walk: CTE) -> Select[Any]:
    """A query of those seals in `walk` that changed the path in the SQL parameter `path` or a path below it.
    Seals without parents are included. Its columns: seal id, generation (see `_walk`), root of the tree."""
    return _select_seals(walk, seal.c.generation, root_in(bindparam("repo_id"))).where(
        or_(seal.c.generation == FIRST, _TOUCHES)
    )


# The walk from `head`, and what of it changed a path; by dialect.
WALK: dict[str, Select[Any]] = {dialect: _select_seals(_history(_HEAD, dialect)) for dialect in DIALECTS}
WALK_PATH: dict[str, Select[Any]] = {dialect: _at_path(_history(_HEAD, dialect)) for dialect in DIALECTS}
# The same along first parents alone; and how far these lead within `steps`, and the time of the last.
_LINE = _first_parents()
LINE = select(_LINE.c.id).where(_LINE.c.down >= bindparam("skip")).order_by(_LINE.c.down)
LINE_PATH = _at_path(_first_parents())
LINE_END = (
    select(_LINE.c.down, ordered_at(seal))
    .select_from(_LINE.join(seal, seal.c.id == _LINE.c.id))
    .order_by(_LINE.c.down.desc())
    .limit(1)
)
# The paths that a seal changed at a path and below it.
CHANGED = select(seal_change.c.path).where(seal_change.c.seal_id == bindparam("seal_id"), _AT_PATH)
HELD = select(seal.c.id).where(_HEAD)

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

# Seals of the repository with ids from `low` to below `high`: the time of their oldest, and those of
# them that a living branch or tag leads to.
_BETWEEN = and_(_REPO, seal.c.id >= bindparam("low"), seal.c.id < bindparam("high"))
OLDEST = select(func.min(ordered_at(seal))).where(_BETWEEN)
_HEADS = select(ref.c.head).where(ref.c.repo_id == bindparam("repo_id"), ref.c.deleted_at.is_(None))


def _select_reached(dialect: Dialect) -> Select[Any]:
    walk = _history(seal.c.id.in_(_HEADS), dialect)
    return (
        select(seal.c.id)
        .select_from(walk.join(seal, seal.c.id == walk.c.id))
        .where(_BETWEEN)
        .order_by(*_ORDER)
        .limit(bindparam("limit"))
    )


REACHED: dict[str, Select[Any]] = {dialect: _select_reached(dialect) for dialect in DIALECTS}

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
