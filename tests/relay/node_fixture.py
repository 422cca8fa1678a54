"""A database with the real schema, rows to stand on, and a relay that takes the caller's word for who calls."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from sanic.request import Request
from sqlalchemy import create_engine, insert

from localstore.core.errors import Unauthorized
from relay import config, credentials, server
from relay.caller import Caller, Principal
from relay.clock import now_ms
from relay.db import schema
from relay.db.sqlite import SqliteDatabase
from relay.ids import new_account_id, new_id
from relay.node import Node

DAY = 24 * 3600_000


def make_schema(path: Path) -> None:
    engine = create_engine(f"sqlite:///{path}")
    schema.metadata.create_all(engine)
    engine.dispose()


@contextlib.asynccontextmanager
async def database(folder: Path) -> AsyncIterator[SqliteDatabase]:
    make_schema(folder / "relay.db")
    db = SqliteDatabase(folder / "relay.db")
    await db.open()
    try:
        yield db
    finally:
        await db.close()


async def make_account(db: SqliteDatabase, handle: str) -> str:
    account_id = new_account_id()
    async with db.write() as tx:
        await tx.run(
            insert(schema.account),
            id=account_id,
            kind="user",
            handle=handle,
            phase="device_key",
            operator=False,
            created_at=now_ms(),
            **dict.fromkeys(("email", "name", "password_hash", "disabled_at")),
        )
        await tx.run(
            insert(schema.session),
            id=session_of(account_id),
            account_id=account_id,
            kind="cli",
            label="",
            caps="",
            created_at=now_ms(),
            expires_at=now_ms() + DAY,
            **dict.fromkeys(("parent_id", "device_key_id", "last_used_at", "revoked_at")),
        )
    return account_id


def session_of(account_id: str) -> str:
    return account_id.replace("-", "")


async def make_repo(
    db: SqliteDatabase, owner_id: str, class_: str = "private_plaintext", state: str = "active"
) -> str:
    repo_id = new_id()
    async with db.write() as tx:
        await tx.run(
            insert(schema.repo),
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
            **dict.fromkeys(("resume_state", "parent_id", "deleted_at", "purge_at")),
        )
    return repo_id


@dataclass
class Relay:
    node: Node
    url: str

    def client(self, account_id: str | None = None) -> httpx.AsyncClient:
        headers = {} if account_id is None else {"x-account": account_id}
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=20)


async def _identify(node: Node, request: Request, *_: object) -> Caller:
    """Sign-in has tests of its own: here the header `x-account` says who calls."""
    account_id = request.headers.get("x-account")
    if account_id is None:
        return Caller(node, None, "127.0.0.1")
    if len(account_id) != 36:
        raise Unauthorized
    principal = Principal(
        account_id=account_id,
        handle=None,
        kind="user",
        phase="device_key",
        session_id=session_of(account_id),
        session_kind="cli",
        expires_at=now_ms() + DAY,
        caps=frozenset({"read", "write"}),
        device_key_id=None,
        via="bearer",
    )
    return Caller(node, principal, "127.0.0.1")


@contextlib.asynccontextmanager
async def running(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Relay]:
    monkeypatch.setattr(credentials, "identify", _identify)
    bound = server.bind("127.0.0.1", 0)
    port = bound.getsockname()[1]
    settings = config.read({"TR_RATE_LIMITS": "0"}, dev=True, host="127.0.0.1", port=port, data=folder)
    make_schema(settings.database_path())
    async with server.serving(settings, bound) as node:
        yield Relay(node, f"http://127.0.0.1:{port}")


__all__ = ["Relay", "database", "make_account", "make_repo", "running", "session_of"]
