"""`relay gc`, `audit`, `backup`: through the running relay, or on the folder itself when none serves it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from relay import admin, config, data, migrations
from relay.db.sqlite import SqliteDatabase
from relay.environment import StartRefused
from relay.keeper import Keeper
from relay.objects.place import open_packs
from relay.objects.store import ObjectStore


def run(variables: Mapping[str, str], folder: Path | None, request: admin.Request) -> int:
    """Carry `request` out and print what it says; the exit code."""
    return asyncio.run(_run(variables, folder, request))


async def _run(variables: Mapping[str, str], folder: Path | None, request: admin.Request) -> int:
    storage = config.storage(variables, folder)
    answered = await admin.ask(storage.data, request, _say)
    return answered if answered is not None else await _alone(variables, storage, request)


async def _alone(variables: Mapping[str, str], storage: config.Storage, request: admin.Request) -> int:
    if not storage.data.is_dir():
        raise StartRefused(f"there is no data folder {storage.data}; name it with --data")
    url = config.migration_url(variables, storage.data)
    with data.only_process(storage.data):
        migrations.check(url)
        db = SqliteDatabase(config.sqlite_path(url))
        try:
            await db.open()
            store = ObjectStore(storage.data, db, await open_packs(storage))
            try:
                keeper = Keeper(storage.data, db, store, serving=False)
                return await admin.carry_out(keeper, request, _say)
            finally:
                await store.close()
        finally:
            await db.close()


def _say(line: str) -> None:
    print(line, flush=True)
