"""Maintenance of a node: the collector, the audit, backups. Only one of them runs at a time; normal work
continues.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from localstore.core.errors import SvcError, Unavailable
from relay.backup.make import make
from relay.base.logs import logger
from relay.db.engine.database import Contended, Database
from relay.domain.storage.collect import collect
from relay.domain.upkeep.verification import audit, usage
from relay.objects.store import ObjectStore

PAUSE = 10.0  # seconds; see `collect`
Say = Callable[[str], None]


class Maintenance:
    """Runs maintenance. `serving`: whether clients read and write at the same time. Each method returns an
    exit code, and reports its progress by calling `say` with lines."""

    def __init__(self, data: Path, db: Database, store: ObjectStore, *, serving: bool) -> None:
        self._data, self._db, self._store = data, db, store
        self._pause = PAUSE if serving else 0
        self._alone = asyncio.Lock()
        self._daily: asyncio.Task[None] | None = None

    async def gc(self, say: Say, dry_run: bool = False) -> int:
        async with self._hold_lock(say):
            try:
                await collect(self._db, self._store, say, dry_run=dry_run, pause=self._pause)
            except Contended:
                raise Unavailable("the collector gave way to another request; run it again") from None
        return 0

    async def audit(self, say: Say, repair: bool = False) -> int:
        """Verify everything that is stored (`relay.domain.upkeep.verification`). Returns the exit code.
        `repair`: first correct the recorded usage of accounts and repositories."""
        findings = 0
        async with self._hold_lock(say):
            if repair:
                say(f"corrected the usage of {await usage.repair(self._db)} accounts")
            async for finding in audit(self._db, self._store):
                findings += 1
                say(finding)
        say(f"{findings} findings" if findings else "no errors were found")
        return 1 if findings else 0

    async def backup(self, target: Path, say: Say) -> int:
        async with self._hold_lock(say):
            await make(self._data, self._db, self._store.packs, target, say)
        say("it contains the signer's key and the secrets of the data folder: keep it private")
        return 0

    @contextlib.asynccontextmanager
    async def _hold_lock(self, say: Say) -> AsyncIterator[None]:
        """A context that holds the lock for maintenance, which only one process of the database can hold."""

        def waits() -> None:
            say("another relay collects, audits or backs up; waiting for it")

        async with self._alone, self._db.alone("maintenance", waits):
            yield

    def start_daily(self) -> None:
        """Start the collector in the background unless it is running."""
        if self._daily is None or self._daily.done():
            self._daily = asyncio.create_task(self._collect())

    async def stop(self) -> None:
        if self._daily is not None:
            self._daily.cancel()
            await asyncio.gather(self._daily, return_exceptions=True)

    async def _collect(self) -> None:
        try:
            await self.gc(lambda line: logger().info("gc", said=line))
        except SvcError as error:
            logger().error("gc stopped", reason=error.detail)
