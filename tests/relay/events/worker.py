"""One process of a relay's background, on a database that others use too: followers and jobs. It is killed.

python -m tests.relay.events.worker URL WHAT
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, MetaData, String, Table, insert

from relay.db.engine import connect
from relay.db.engine.database import Database, Tx
from relay.events import followers, jobs
from relay.events.followers import Followers
from relay.events.jobs import Jobs, Pace
from relay.events.log import Logged

KINDS = ("thing.happen", "thing.end")
LEDGER = Table("ledger", MetaData(), Column("what", String))  # no key: what is done twice stands twice
CREATE = "CREATE TABLE ledger (what VARCHAR)"


async def note(tx: Tx, events: Sequence[Logged]) -> None:
    await tx.many(insert(LEDGER), [{"what": str(event.id)} for event in events])
    await asyncio.sleep(0.002)  # a moment to die in


async def follow(db: Database) -> None:
    following = Followers(db)
    following.register("note", note, KINDS, followers.BATCH_SIZE)
    await following.start()


async def work(db: Database) -> None:
    async def hang(_: dict[str, Any]) -> None:
        await asyncio.Event().wait()

    async def do(data: dict[str, Any]) -> None:
        async with db.write() as tx:
            await tx.many(insert(LEDGER), [{"what": str(data["n"])}])

    doing = Jobs(db)
    doing.register("hang", hang, Pace(slots=2, deadline=600_000))
    doing.register("do", do, Pace(slots=4))
    await doing.start()


async def main(url: str, what: str) -> None:
    followers.POLL, followers.BATCH_SIZE = 0.05, 7
    jobs.POLL, jobs.LEASE, jobs.RENEW = 50, 1500, 300
    db = connect.make_database(url)
    await db.open()
    await {"follow": follow, "work": work}[what](db)
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
