"""What a reader that was given up leaves behind: nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

from relay.db.engine.database import Database
from relay.db.identity import nonce
from tests.relay.node_fixture import database


async def _read(db: Database, *, snapshot: bool) -> int:
    async with db.read(snapshot) as tx:
        return int(await tx.one(nonce.SPENT, key_id="k", nonce="n") is not None)


async def _given_up_at_its_beginning(db: Database) -> None:
    task = asyncio.create_task(_read(db, snapshot=True))
    await asyncio.sleep(0)  # it waits for BEGIN now
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _test(folder: Path) -> None:
    async with database(folder) as db:
        for _ in range(8):  # more than there are connections to read with
            await _given_up_at_its_beginning(db)
        async with db.write() as tx:
            await tx.run(nonce.INSERT, key_id="k", nonce="n", expires_at=1)
        assert [await _read(db, snapshot=False) for _ in range(8)] == [1] * 8, "a view of before was kept"
        assert [await _read(db, snapshot=True) for _ in range(8)] == [1] * 8


def test_a_snapshot_given_up_at_its_beginning_is_not_kept(tmp_path: Path) -> None:
    asyncio.run(_test(tmp_path))
