"""Where a node keeps things, in any mixture of back ends, and the operator's commands on it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from relay.config import S3
from relay.db.engine import connect
from relay.db.engine.database import Database
from relay.domain.upkeep.verification import audit
from relay.objects.store import ObjectStore
from relay.run import cli
from tests import buckets, databases
from tests.relay.domain.live.live_world import opened, world

OWNER = "test"  # as `buckets.packs` names the node
WITHOUT_GRACE = """
import sys
from relay.run import cli
if sys.argv[1] == "gc":
    import relay.domain.storage.collect as collect
    collect.collect.__kwdefaults__.update(grace=-60_000, quiet=int(sys.argv.pop()))
sys.exit(cli.main(sys.argv[1:]))
"""


@dataclass(frozen=True)
class Place:
    """A node's data folder, the URL of its database, and its bucket where packs lie in one."""

    data: Path
    url: str
    s3: S3 | None

    @property
    def variables(self) -> dict[str, str]:
        told = buckets.told(self.s3) if self.s3 else {}
        return {"DATABASE_URL": self.url, "TR_PUBLIC_URL": OWNER, **told}

    def relay(self, *words: object) -> int:
        """Run a command of `relay` on it, in this process; the exit code."""
        with mock.patch.dict(os.environ, self.variables):
            return cli.main([*map(str, words), "--data", str(self.data)])

    def process(self, *words: object) -> subprocess.Popen[str]:
        """The same in a process of its own, whose collector gives nothing a grace; of bucket objects it takes
        all that no row speaks of, of files those that are old."""
        quiet = ["-60000" if self.s3 else "60000"] if words[0] == "gc" else []
        return subprocess.Popen(
            [sys.executable, "-c", WITHOUT_GRACE, *map(str, words), "--data", str(self.data), *quiet],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **self.variables},
        )

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[Database, ObjectStore]]:
        db = connect.make_database(self.url)
        await db.open()
        packs = await buckets.packs(where=self.s3) if self.s3 else None
        store = ObjectStore(self.data, db, packs, verify=True)
        try:
            yield db, store
        finally:
            await store.close()
            await db.close()

    def findings(self) -> list[str]:
        """What the audit says."""

        async def run() -> list[str]:
            async with self.opened() as (db, store):
                return [one async for one in audit(db, store)]

        return asyncio.run(run())

    def age(self) -> None:
        """As if nobody had written to its packs for years; those of a bucket keep their time."""
        for path in (self.data / "objects").glob("*"):
            os.utime(path, (1, 1))


def filled(data: Path) -> Place:
    """A node with a sealed history, a live edit and objects that nobody refers to, in many packs."""
    data.mkdir()
    asyncio.run(_fill(data))
    (data / "signer.keys").write_text("1 00")
    (data / "secrets").mkdir()
    (data / "secrets" / "tr_enroll_challenge").write_text("secret")
    bucket = buckets.bucket_of(data) if buckets.EVERYWHERE else None
    return Place(data, (data / "database").read_text(), bucket)


def empty(data: Path, postgres: bool = databases.POSTGRES, s3: bool = buckets.EVERYWHERE) -> Place:
    """Somewhere to restore to."""
    return Place(data, databases.empty_url(data, postgres), buckets.bucket() if s3 else None)


async def _fill(data: Path) -> None:
    async with world(data) as made:
        made.node.objects.packs._roll_bytes = 30_000  # type: ignore[attr-defined]  # of pack files
        device = await made.device()
        head = None
        for number in range(6):
            await device.send(await device.create(f"d/{number}.txt", os.urandom(6000).hex().encode()))
            head = (await device.seal(head)).id
            for _ in range(4):
                await made.node.objects.put(made.repo_id, os.urandom(9000))
        await device.send(await device.create("live.txt", b"live"))


async def more(place: Place) -> None:
    """Some new objects, in new packs."""
    async with opened(place.data) as node:
        node.objects.packs._roll_bytes = 30_000  # type: ignore[attr-defined]
        repo_id = (await rows(node.db, "repo"))[0][0]
        for _ in range(6):
            await node.objects.put(repo_id, os.urandom(20_000))


async def rows(db: Database, name: str) -> list[tuple[Any, ...]]:
    """Every row of a table, in the order of its key."""
    from sqlalchemy import select

    from relay.db.schema import metadata

    table = metadata.tables[name]
    async with db.read() as tx:
        found = await tx.all(select(table).order_by(*table.primary_key.columns))
    return [tuple(row) for row in found]
