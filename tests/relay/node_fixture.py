"""A database with the real schema, and rows to stand on, for what is tested below the HTTP surface."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from sqlalchemy import insert

from relay.base.clock import now_ms
from relay.base.ids import new_account_id, new_id
from relay.db.engine import connect
from relay.db.engine.database import Database
from relay.db.schema import tables
from tests.databases import new_url

DAY = 24 * 3600_000


@contextlib.asynccontextmanager
async def database(folder: Path) -> AsyncIterator[Database]:
    db = connect.make_database(await asyncio.to_thread(new_url, folder))
    await db.open()
    try:
        yield db
    finally:
        await db.close()


async def make_account(db: Database, handle: str) -> str:
    account_id = new_account_id()
    async with db.write() as tx:
        await tx.run(
            insert(tables["account"]),
            id=account_id,
            kind="user",
            handle=handle,
            phase="device_key",
            operator=False,
            created_at=now_ms(),
            **dict.fromkeys(("email", "name", "password_hash", "disabled_at")),
        )
        await tx.run(
            insert(tables["session"]),
            id=session_of(account_id),
            account_id=account_id,
            kind="cli",
            label="",
            caps="",
            created_at=now_ms(),
            expires_at=now_ms() + DAY,
            **dict.fromkeys(("parent_id", "device_key_id", "last_used_at", "revoked_at", "way")),
        )
    return account_id


def session_of(account_id: str) -> str:
    return account_id.replace("-", "")


async def make_repo(
    db: Database, owner_id: str, class_: str = "private_plaintext", state: str = "active"
) -> str:
    repo_id = new_id()
    async with db.write() as tx:
        await tx.run(
            insert(tables["repo"]),
            id=repo_id,
            owner_id=owner_id,
            name=repo_id,
            kind="app",
            description="",
            default_branch="main",
            state=state,
            tree_key=bytes(32),
            tree_key_id="k",
            created_at=now_ms(),
            updated_at=now_ms(),
            **{"class": class_},
            **dict.fromkeys(("resume_state", "parent_id", "deleted_at", "purge_at", "policy", "partial")),
        )
    return repo_id
