"""Merged seals stand in history: of each source how it was merged, and of a seal whose clock was behind that of
what it came from its time in the order; owners of lines are found anew."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"

PREFIX = b"svc-seal-v1\n"
LOT = 500

SEAL = sa.table(
    "seal", sa.column("id"), sa.column("payload"), sa.column("created_at"), sa.column("order_at")
)
PARENT = sa.table("seal_parent", sa.column("seal_id"), sa.column("parent_id"))
SOURCE = sa.table("seal_source", sa.column("seal_id"), sa.column("source_id"), sa.column("strategy"))


def upgrade() -> None:
    op.add_column("seal_source", sa.Column("strategy", sa.String()))
    op.add_column("seal", sa.Column("order_at", sa.BigInteger()))
    _name_strategies(op.get_bind())
    _put_in_order(op.get_bind())
    op.drop_table("blame_cache")
    op.create_table(
        "blame_cache",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("seal_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("first_parent", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("owners", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_blame_cache_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "seal_id", "path", "first_parent", name=op.f("pk_blame_cache")),
    )


def _name_strategies(connection: sa.Connection) -> None:
    """Give each source the strategy that the signed payload of its seal names; none where that is not to be
    read."""
    last = ""
    while True:
        merged = sa.select(SOURCE.c.seal_id).where(SOURCE.c.seal_id > last)
        rows = connection.execute(
            sa.select(SEAL.c.id, SEAL.c.payload)
            .where(SEAL.c.id > last, SEAL.c.id.in_(merged))
            .order_by(SEAL.c.id)
            .limit(LOT)
        ).all()
        if not rows:
            return
        for seal_id, payload in rows:
            strategy = _strategy(bytes(payload))
            if strategy is not None:
                connection.execute(
                    sa.update(SOURCE).where(SOURCE.c.seal_id == seal_id).values(strategy=strategy)
                )
        last = rows[-1][0]


def _strategy(payload: bytes) -> str | None:
    try:
        return str(json.loads(payload.removeprefix(PREFIX))["provenance"]["merge"]["strategy"])
    except (ValueError, KeyError, TypeError):
        return None


def _put_in_order(connection: sa.Connection) -> None:
    """Give each seal that is older than what it came from the time of that, then what was made of it."""
    upper, lower = SEAL.alias("upper"), SEAL.alias("lower")
    waiting: set[str] = set()
    for links, above in ((PARENT, PARENT.c.parent_id), (SOURCE, SOURCE.c.source_id)):
        behind = (
            sa.select(lower.c.id)
            .select_from(
                links.join(lower, lower.c.id == links.c.seal_id).join(upper, upper.c.id == above)
            )
            .where(lower.c.created_at < upper.c.created_at)
        )
        waiting.update(row[0] for row in connection.execute(behind))
    while waiting:
        changed = {
            seal_id for lot in _lots(waiting) for seal_id in _follow_what_it_came_from(connection, lot)
        }
        made_of = sa.union(
            sa.select(PARENT.c.seal_id).where(PARENT.c.parent_id.in_(sa.bindparam("ids", expanding=True))),
            sa.select(SOURCE.c.seal_id).where(SOURCE.c.source_id.in_(sa.bindparam("ids", expanding=True))),
        )
        waiting = {row[0] for lot in _lots(changed) for row in connection.execute(made_of, {"ids": lot})}


def _follow_what_it_came_from(connection: sa.Connection, ids: list[str]) -> list[str]:
    """Those of these seals whose time had to move."""
    at = sa.func.coalesce(SEAL.c.order_at, SEAL.c.created_at)
    own = {row[0]: row[1] for row in connection.execute(sa.select(SEAL.c.id, at).where(SEAL.c.id.in_(ids)))}
    changed: dict[str, int] = {}
    for links, above in ((PARENT, PARENT.c.parent_id), (SOURCE, SOURCE.c.source_id)):
        latest = (
            sa.select(links.c.seal_id, sa.func.max(at))
            .select_from(links.join(SEAL, SEAL.c.id == above))
            .where(links.c.seal_id.in_(ids))
            .group_by(links.c.seal_id)
        )
        for seal_id, time in connection.execute(latest):
            if time > max(own[seal_id], changed.get(seal_id, 0)):
                changed[seal_id] = time
    for seal_id, time in changed.items():
        connection.execute(sa.update(SEAL).where(SEAL.c.id == seal_id).values(order_at=time))
    return list(changed)


def _lots(ids: Iterable[str]) -> Iterator[list[str]]:
    every = sorted(ids)
    for first in range(0, len(every), LOT):
        yield every[first : first + LOT]
