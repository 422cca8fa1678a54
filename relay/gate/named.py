"""Finds repositories by OWNER and NAME."""

from __future__ import annotations

from relay.base.clock import now_ms
from relay.db import repo as repos
from relay.db.engine.database import Database, Row


async def row_at(db: Database, owner: str, name: str, account: str) -> Row | None:
    """The repository at OWNER/NAME as this account sees it. NAME may be an earlier name of the repository;
    `account` is "" for an anonymous caller. Returns None if the repository is missing or hidden, after the
    same work in both cases."""
    about = {"owner": owner.lower(), "name": name.lower(), "account": account}
    row = await db.lookup(repos.BY_NAME, **about)
    return row if row is not None else await db.lookup(repos.BY_ALIAS, **about, now=now_ms())
