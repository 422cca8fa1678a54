"""The commands `relay gc`, `audit` and `backup`. They run in the relay that serves the data folder, or
directly on the folder if no relay does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from relay import config, migrations
from relay.base import database_url as urls
from relay.base.environment import StartRefused
from relay.db.engine import connect
from relay.objects.place import open_packs
from relay.objects.store import ObjectStore
from relay.run import admin, data_folder
from relay.run.maintenance import Maintenance


def run(variables: Mapping[str, str], folder: Path | None, request: admin.Request) -> int:
    """Carry out `request` and print its report. Returns the exit code."""
    return asyncio.run(_run(variables, folder, request))


async def _run(variables: Mapping[str, str], folder: Path | None, request: admin.Request) -> int:
    storage = config.read_storage(variables, folder)
    answered = await admin.ask(storage.data, request, _say)
    return answered if answered is not None else await _carry_out_here(variables, storage, request)


async def _carry_out_here(
    variables: Mapping[str, str], storage: config.Storage, request: admin.Request
) -> int:
    if not storage.data.is_dir():
        raise StartRefused(f"there is no data folder {storage.data}; name it with --data")
    _, url = config.migration_urls(variables, storage.data)
    shared = urls.is_postgres(url)  # then others may serve it meanwhile, from other folders
    with data_folder.serving(storage.data, shared):
        await asyncio.to_thread(migrations.check, url)
        db = connect.make_database(url)
        try:
            await db.open()
            store = ObjectStore(storage.data, db, await open_packs(storage))
            try:
                maintenance = Maintenance(storage.data, db, store, serving=shared)
                return await admin.carry_out(maintenance, request, _say)
            finally:
                await store.close()
        finally:
            await db.close()


def _say(line: str) -> None:
    print(line, flush=True)
