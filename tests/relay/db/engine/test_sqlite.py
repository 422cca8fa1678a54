"""SQLite's transactions: statements that answer nothing go along with the next one, or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select

from localstore.core.model.limits import MIB
from relay import migrations
from relay.db.engine.database import ForeignKeyViolation, NotNullViolation, UniqueViolation
from relay.db.engine.sqlite import WAITING_BYTES, LateViolation, SqliteDatabase
from relay.db.schema import tables

NONCE = insert(tables["nonce"])
KEPT = select(tables["nonce"].c.nonce).order_by(tables["nonce"].c.nonce)


def nonce(name: str) -> dict[str, Any]:
    return {"key_id": "k", "nonce": name, "expires_at": 1}


def ref(**members: Any) -> dict[str, Any]:
    """A branch of a repository that does not exist."""
    known = {
        "id": "b",
        "repo_id": "r",
        "type": "branch",
        "name": "main",
        "head": None,
        "base": None,
        "seq": 0,
    }
    return {**known, "sealed_seq": 0, "created_at": 1, "updated_at": 1, "deleted_at": None, **members}


@contextlib.asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[SqliteDatabase]:
    migrations.upgrade(f"sqlite:///{folder / 'relay.db'}")
    db = SqliteDatabase(folder / "relay.db")
    await db.open()
    try:
        yield db
    finally:
        await db.close()


async def kept(db: SqliteDatabase) -> list[str]:
    async with db.read() as tx:
        return [row[0] for row in await tx.all(KEPT)]


async def test_the_next_statement_sees_what_waited(tmp_path: Path) -> None:
    async with opened(tmp_path) as db, db.write() as tx:
        await tx.many(NONCE, [nonce("a"), nonce("b")])
        await tx.many(NONCE, [nonce("c")])
        assert [row[0] for row in await tx.all(KEPT)] == ["a", "b", "c"]
        assert await tx.run(NONCE, **nonce("d")) == 1


async def test_many_bytes_do_not_wait(tmp_path: Path) -> None:
    async with opened(tmp_path) as db, db.write() as tx:
        large = [{"key_id": "k", "nonce": bytes([n]) * MIB, "expires_at": 1} for n in range(3)]
        await tx.many(NONCE, large[:2])
        assert tx.waiting
        await tx.many(NONCE, large[2:])
        assert tx.waiting
        await tx.many(NONCE, [{"key_id": "l", "nonce": bytes(WAITING_BYTES - 3 * MIB + 1), "expires_at": 1}])
        assert not tx.waiting
        assert len(await tx.all(KEPT)) == 4


async def test_the_commit_carries_what_still_waits(tmp_path: Path) -> None:
    async with opened(tmp_path) as db:
        async with db.write() as tx:
            await tx.many(NONCE, [nonce("a")])
        assert await kept(db) == ["a"]


async def test_what_waits_goes_with_its_transaction(tmp_path: Path) -> None:
    async with opened(tmp_path) as db:
        with pytest.raises(ZeroDivisionError):
            async with db.write() as tx:
                await tx.many(NONCE, [nonce("a")])
                raise ZeroDivisionError
        async with db.write() as tx:
            await tx.run(NONCE, **nonce("b"))
        assert await kept(db) == ["b"]


async def test_a_refused_row_is_not_blamed_on_the_statement_that_carries_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as db:
        with pytest.raises(LateViolation, match="nonce"):
            async with db.write() as tx:
                await tx.many(NONCE, [nonce("a"), nonce("a")])
                with contextlib.suppress(UniqueViolation):
                    await tx.run(NONCE, **nonce("b"))
        assert await kept(db) == []


async def test_a_refused_row_at_the_commit_takes_everything_back(tmp_path: Path) -> None:
    async with opened(tmp_path) as db:
        with pytest.raises(LateViolation):
            async with db.write() as tx:
                await tx.run(NONCE, **nonce("a"))
                tx.after_commit(lambda: pytest.fail("nothing was committed"))
                await tx.many(NONCE, [nonce("a")])
        async with db.write() as tx:
            await tx.run(NONCE, **nonce("z"))
        assert await kept(db) == ["z"]


async def test_each_kind_of_constraint_has_an_error_of_its_own(tmp_path: Path) -> None:
    async with opened(tmp_path) as db:
        with pytest.raises(ForeignKeyViolation, match="FOREIGN KEY"):
            async with db.write() as tx:
                await tx.run(insert(tables["ref"]), **ref())
        with pytest.raises(NotNullViolation, match=r"ref\.name"):
            async with db.write() as tx:
                await tx.run(insert(tables["ref"]), **ref(name=None))
        with pytest.raises(UniqueViolation, match=r"nonce\.nonce"):
            async with db.write() as tx:
                await tx.run(NONCE, **nonce("x"))
                await tx.run(NONCE, **nonce("x"))
