"""The audit counts again what accounts use, and repairs the numbers if it is asked to."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import update

from relay.db.schema import tables
from relay.domain.upkeep.verification import usage
from relay.run.maintenance import Maintenance
from tests.relay.domain.live.live_world import World, world


async def findings(w: World) -> list[str]:
    return [line async for line in usage.check(w.node.db, w.node.objects)]


async def test_wrong_numbers_are_named_and_repaired(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        sizes = [10, 200, 3000]
        for size in sizes:
            await w.put(os.urandom(size))
        assert await findings(w) == []
        async with w.node.db.write() as tx:
            await tx.run(update(tables["repo_usage"]).values(bytes=7))
            await tx.run(update(tables["account_usage"]).values(bytes=8, repositories=5, deleted_objects=1))
        assert await findings(w) == [
            f"repository {w.repo_id}: (7, 3) bytes and objects are counted, (3210, 3) are there",
            f"account {w.owner}: 8 bytes are counted, 3210 are there",
            f"account {w.owner}: 5 repositories are counted, 1 are there",
            f"account {w.owner}: 1 deleted objects are counted, 0 are there",
        ]
        said: list[str] = []
        maintenance = Maintenance(tmp_path, w.node.db, w.node.objects, serving=False)
        assert await maintenance.audit(said.append) == 1
        assert await maintenance.audit(said.append, repair=True) == 0
        assert said[-2:] == ["corrected the usage of 1 accounts", "no errors were found"]
        assert await findings(w) == []


async def test_a_repository_that_was_deleted_counts_among_what_is(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.put(b"four")
        async with w.node.db.write() as tx:
            await tx.run(update(tables["repo"]).values(state="deleted"))
        assert len(await findings(w)) == 7
        await usage.repair(w.node.db)
        assert await findings(w) == []
        await w.put(b"more bytes")  # what is counted goes on from there
        assert await findings(w) == []
