"""PostgreSQL through asyncpg. Any number of processes may use the database.

A write transaction names what it changes (`db.write("repo 3f…")`). Transactions that share a name run one at
a time, in all processes. Each uses READ COMMITTED and sees everything that the previous one committed. So
transactions that share a name have the guarantees of SQLite's single writer (design/relay, Two databases).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Any

import asyncpg
from sqlalchemy import literal_column, select
from sqlalchemy.sql import ClauseElement

from localstore.core.errors import Unavailable
from relay.db.engine.database import (
    NODE,
    Contended,
    ForeignKeyViolation,
    NotNullViolation,
    Row,
    Tx,
    UniqueViolation,
    to_positions,
)
from relay.db.engine.named_locks import Names
from relay.db.engine.postgres_pool import Pool
from relay.db.engine.postgres_sql import compile_statement
from relay.db.engine.postgres_wake import Waker

READERS, WRITERS = 8, 8  # connections of one process, at most
STAMP_BITS = 10  # events that one transaction may write: 2**10
UNDER_WAY = 10_000  # upper bound of transactions that began after the latest finished one
STREAM_ROWS = 1000
_SETTINGS = {
    "application_name": "relay",
    "jit": "off",
    "idle_in_transaction_session_timeout": "120000",  # ms: releases the locks of a process that hangs
}
_RENUMBER = (
    "CREATE TEMPORARY TABLE renumbered ON COMMIT DROP AS SELECT id AS old,"
    " row_number() OVER (ORDER BY id) - count(*) OVER () - 1 AS new FROM event",
    "UPDATE cursor SET at = -1 - (SELECT count(*) FROM renumbered WHERE old > cursor.at)",
    # Ids must stay unique during the update: move them far below all others first.
    "UPDATE event SET id = new - (1::bigint << 62) FROM renumbered WHERE id = old",
    "UPDATE event SET id = id + (1::bigint << 62)",
)
_OLDEST: ClauseElement = select(literal_column("pg_snapshot_xmin(pg_current_snapshot())::text::bigint"))
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # asyncpg, when the connection breaks under a statement
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    OSError,
    TimeoutError,
)


class PostgresTx:
    """Statements on one connection; see `relay.db.engine.database.Tx`."""

    def __init__(self, connection: Any, wakes: Callable[[], None] = lambda: None) -> None:
        self._connection = connection
        self.author = NODE
        self._stamp: int | None = None
        self.committed: list[Callable[[], None]] = []
        self._wakes, self._woken = wakes, False

    def after_commit(self, call: Callable[[], None]) -> None:
        self.committed.append(call)

    def wake(self) -> None:
        if not self._woken:
            self.committed.append(self._wakes)
        self._woken = True

    async def all(self, statement: ClauseElement, **params: Any) -> list[Row]:
        form = compile_statement(statement)
        with _translate_errors():
            rows: list[Row] = await self._connection.fetch(form.sql, *form.values(params))
        return rows

    async def one(self, statement: ClauseElement, **params: Any) -> Row | None:
        rows = await self.all(statement, **params)
        return rows[0] if rows else None

    async def value(self, statement: ClauseElement, **params: Any) -> Any:
        row = await self.one(statement, **params)
        return row[0] if row else None

    async def run(self, statement: ClauseElement, **params: Any) -> int:
        form = compile_statement(statement)
        with _translate_errors():
            status: str = await self._connection.execute(form.sql, *form.values(params))
        return int(status.rpartition(" ")[2])

    async def many(self, statement: ClauseElement, rows: Iterable[dict[str, Any]]) -> None:
        form = compile_statement(statement)
        values = to_positions(rows, form.order, form.defaults)
        if values:
            with _translate_errors():
                await self._connection.executemany(form.sql, values)

    async def stream(self, statement: ClauseElement, **params: Any) -> AsyncIterator[Row]:
        form = compile_statement(statement)
        with _translate_errors():
            async with self._connection.transaction():  # where one runs, this is a savepoint
                async for row in self._connection.cursor(
                    form.sql, *form.values(params), prefetch=STREAM_ROWS
                ):
                    yield row

    async def stamp(self) -> int:
        """An id for an event. Its upper bits are the transaction id, which only grows; its lower bits count
        within the transaction."""
        if self._stamp is None:
            with _translate_errors():
                transaction = await self._connection.fetchval("SELECT pg_current_xact_id()::text::bigint")
            self._stamp = transaction << STAMP_BITS
        else:
            self._stamp += 1
        return self._stamp


class PostgresDatabase:
    """A pool of read-only connections and a pool for write transactions."""

    dialect = "postgresql"
    shared = True

    def __init__(self, url: str, readers: int = READERS, writers: int = WRITERS) -> None:
        self._url = url
        self._readers = Pool(lambda: self._connect(default_transaction_read_only="on"), readers)
        self._writers = Pool(self._connect, writers)
        self._names = Names()
        self._waker = Waker(self._connect)

    async def open(self) -> None:
        with _translate_errors():
            await self._renumber_foreign_stamps()
        self._waker.start()

    async def _connect(self, **settings: str) -> Any:
        return await asyncpg.connect(
            self._url,
            server_settings={**_SETTINGS, **settings},
            statement_cache_size=512,
            max_cached_statement_lifetime=0,
        )

    async def _renumber_foreign_stamps(self) -> None:
        """Give all events new ids if their ids come from another PostgreSQL cluster, as after restoring a
        dump. Ids are made of the transaction ids of a cluster, so these ids could be higher than those of new
        events. The new ids are below zero and keep the order. The positions of followers are adapted, and
        connected clients are made to load everything again."""
        connection = await self._writers.acquire()
        try:
            if await connection.fetchval("SELECT to_regclass('cursor') IS NULL"):
                return  # not migrated: `relay.migrations.check` says so
            latest = await connection.fetchval("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
            bound = (latest + UNDER_WAY) << STAMP_BITS
            if not await connection.fetchval("SELECT EXISTS (SELECT FROM event WHERE id >= $1)", bound):
                return
            async with connection.transaction():
                await connection.execute("LOCK TABLE event, cursor IN EXCLUSIVE MODE")
                for statement in _RENUMBER:
                    await connection.execute(statement)
        finally:
            self._writers.release(connection)

    async def close(self) -> None:
        await self._waker.stop()
        await self._readers.close()
        await self._writers.close()

    @contextlib.asynccontextmanager
    async def read(self, snapshot: bool = False, *, near: bool = False) -> AsyncIterator[PostgresTx]:
        with _translate_errors():
            connection = await self._readers.acquire()
        if not snapshot:
            try:
                yield PostgresTx(connection)
            finally:
                self._readers.release(connection)
            return
        # The driver's own, so that `stream` can open cursors inside.
        transaction = connection.transaction(isolation="repeatable_read", readonly=True)
        try:
            with _translate_errors():
                await transaction.start()
            yield PostgresTx(connection)
        finally:
            await asyncio.shield(self._end(self._readers, connection, transaction.rollback))

    async def lookup(self, statement: ClauseElement, **params: Any) -> Row | None:
        async with self.read() as tx:
            return await tx.one(statement, **params)

    @contextlib.asynccontextmanager
    async def write(self, *names: str) -> AsyncIterator[PostgresTx]:
        async with self._names.hold(names):  # lock in this process first, so that waiters hold no connection
            with _translate_errors():
                connection = await self._writers.acquire()
            tx = PostgresTx(connection, self._waker.wake)
            try:
                with _translate_errors():
                    await connection.execute(_begin(names))
                yield tx
            except BaseException:
                # A client that hangs up cancels its handler, at BEGIN too; the roll-back must still happen.
                await asyncio.shield(
                    self._end(self._writers, connection, partial(connection.execute, "ROLLBACK"))
                )
                raise
            await asyncio.shield(self._commit(connection, tx))

    async def _commit(self, connection: Any, tx: PostgresTx) -> None:
        try:
            with _translate_errors():
                await connection.execute("COMMIT")
        finally:
            self._writers.release(connection)
        for call in tx.committed:
            call()

    @staticmethod
    async def _end(pool: Pool, connection: Any, leave: Callable[[], Awaitable[object]]) -> None:
        """Leave the transaction by awaiting `leave`, and return the connection to the pool. A lost connection
        has no transaction to leave."""
        try:
            with contextlib.suppress(*_LOST):
                await leave()
        finally:
            pool.release(connection)

    @contextlib.asynccontextmanager
    async def alone(self, name: str, waits: Callable[[], None]) -> AsyncIterator[None]:
        """A context that holds an advisory lock of PostgreSQL on a separate connection. The server releases
        the lock when the connection is lost. `waits`: called if another process holds the lock."""
        with _translate_errors():
            connection = await self._connect()
        try:
            with _translate_errors():
                if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", lock_key(name)):
                    waits()
                    await connection.execute(f"SELECT pg_advisory_lock({lock_key(name)})")
            yield
        finally:
            connection.terminate()

    async def horizon(self, tx: Tx) -> int:
        """The id below which no new event can appear; see `Database.horizon`. It is the first id that the
        oldest running transaction can give an event or, if none runs, the next transaction."""
        oldest: int = await tx.value(_OLDEST)
        return oldest << STAMP_BITS

    def on_wake(self, call: Callable[[], None]) -> None:
        self._waker.calls.append(call)

    def tell(self, text: str) -> None:
        self._waker.tell(text)

    def on_tell(self, call: Callable[[str], None]) -> None:
        self._waker.hears.append(call)

    async def damages(self) -> list[str]:
        return []

    async def schema_version(self) -> str | None:
        async with self.read() as tx:
            with _translate_errors():
                if await tx._connection.fetchval("SELECT to_regclass('alembic_version') IS NULL"):
                    return None
                version = await tx._connection.fetchval("SELECT version_num FROM alembic_version")
        return None if version is None else str(version)


def _begin(names: Iterable[str]) -> str:
    """The SQL that begins a transaction and takes the locks of these names, always in the same order, in one
    round trip. Statements after it see everything that earlier holders of the locks committed."""
    keys = sorted({lock_key(name) for name in names})
    return ";".join(["BEGIN", *(f"SELECT pg_advisory_xact_lock({key})" for key in keys)])


def lock_key(name: str) -> int:
    """The number of the advisory lock for a name: 64 bits. A collision only makes two names wait for each
    other."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    """A context that turns the driver's errors into errors of `relay.db.engine.database`, and a lost
    connection into Unavailable."""
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        raise UniqueViolation(str(error.constraint_name or error)) from None
    except asyncpg.ForeignKeyViolationError as error:
        raise ForeignKeyViolation(str(error.constraint_name or error)) from None
    except asyncpg.NotNullViolationError as error:
        raise NotNullViolation(str(error.column_name or error)) from None
    except (asyncpg.SerializationError, asyncpg.DeadlockDetectedError) as error:
        raise Contended(str(error)) from None
    except _LOST as error:
        raise Unavailable("the database cannot be reached; try again") from error
