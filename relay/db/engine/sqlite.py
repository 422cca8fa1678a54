"""SQLite through aiosqlite: one writer connection behind a lock, and readers that cannot write.

The journal mode is WAL. Writers use BEGIN IMMEDIATE (with DEFERRED, 65 % of the transactions got SQLITE_BUSY;
see design/relay) and synchronous=FULL, so that a change survives a power loss once it is acknowledged.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import aiosqlite
from sqlalchemy.dialects import sqlite as sqlite_dialect
from sqlalchemy.sql import ClauseElement

from localstore.core.errors import Unavailable
from localstore.core.model.limits import MIB
from relay.base.logs import logger
from relay.db.engine.database import (
    LIST_CHUNK,
    NODE,
    Compiled,
    ForeignKeyViolation,
    NotNullViolation,
    Row,
    Tx,
    UniqueViolation,
    Violation,
    to_positions,
)

_VIOLATIONS: dict[str, type[Violation]] = {
    "SQLITE_CONSTRAINT_PRIMARYKEY": UniqueViolation,
    "SQLITE_CONSTRAINT_ROWID": UniqueViolation,
    "SQLITE_CONSTRAINT_UNIQUE": UniqueViolation,
    "SQLITE_CONSTRAINT_FOREIGNKEY": ForeignKeyViolation,
    "SQLITE_CONSTRAINT_NOTNULL": NotNullViolation,
}
_DIALECT = sqlite_dialect.dialect(paramstyle="qmark")
_COMPILED: dict[ClauseElement, Compiled] = {}
_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA busy_timeout=10000",
    "PRAGMA foreign_keys=ON",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA cache_size=-32000",
    "PRAGMA mmap_size=268435456",
)
ROWS_AT_ONCE = 1000  # of a stream
WAITING_BYTES = 4 * MIB  # of rows that go along with the next statement; more go at once
Waiting = tuple[str, list[Sequence[Any]]]  # SQL, and the values of each of its rows
_DISK_CODES = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def compile_statement(statement: ClauseElement) -> Compiled:
    form = _COMPILED.get(statement)
    if form is None:
        form = _COMPILED[statement] = Compiled(statement, _DIALECT)
    return form


def _expand(statement: ClauseElement, params: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yields (SQL, positional values) for each run of a statement. A list parameter with many items is split,
    and the statement is then run once for each part of the list."""
    form = compile_statement(statement)
    values = {**form.defaults, **params}
    if not form.lists:
        yield form.sql, [values[name] for name in form.order]
        return
    (name,) = form.lists  # one list a statement keeps the slices unambiguous
    items = list(values[name])
    for start in range(0, len(items), LIST_CHUNK):
        part = items[start : start + LIST_CHUNK]
        sql = form.sql.replace(f"__[POSTCOMPILE_{name}]", ",".join("?" * len(part)))
        ordered: list[Any] = []
        for key in form.order:
            ordered.extend(part if key == name else [values[key]])
        yield sql, ordered


class _Connection(aiosqlite.Connection):
    """A connection with its own thread. Handing work to the thread takes 100 µs and most statements take 5
    µs, so statements without a result are sent together with the next statement."""

    async def carry_out(
        self, waiting: Sequence[Waiting], sql: str, values: Sequence[Any] = ()
    ) -> tuple[list[Row], int]:
        """Run the queued statements `waiting`, then `sql`, in one call on the connection's thread. Returns
        (rows of `sql`, number of rows that `sql` changed)."""
        in_thread: Any = self._execute
        outcome: tuple[list[Row], int] = await in_thread(self._carried_out, waiting, sql, values)
        return outcome

    def _carried_out(
        self, waiting: Sequence[Waiting], sql: str, values: Sequence[Any]
    ) -> tuple[list[Row], int]:
        for text, rows in waiting:
            try:
                self._conn.executemany(text, rows)
            except sqlite3.IntegrityError as error:
                raise LateViolation(str(error)) from None
        cursor = self._conn.execute(sql, values)
        return cursor.fetchall(), cursor.rowcount


def _violation(error: sqlite3.IntegrityError) -> Exception:
    """Translate a constraint error of the driver to an error of `relay.db.engine.database`. An error that has
    no counterpart there, such as one of a CHECK, is returned unchanged."""
    kind = _VIOLATIONS.get(error.sqlite_errorname)
    return kind(str(error)) if kind else error


class LateViolation(Exception):
    """A constraint refused a statement that `Tx.many` had queued. The error appears only when a later
    statement runs, although the later one is not its cause."""


class SqliteTx:
    """A transaction on one connection; see `relay.db.engine.database.Tx`. `waiting`: statements that `many`
    has queued, to be run together with the next statement or the commit."""

    def __init__(self, connection: _Connection, wakes: Sequence[Callable[[], None]] = ()) -> None:
        self._connection = connection
        self.author = NODE
        self.waiting: list[Waiting] = []
        self._bytes = 0  # of what waits
        self.committed: list[Callable[[], None]] = []
        self._wakes, self._woken = wakes, False

    def after_commit(self, call: Callable[[], None]) -> None:
        self.committed.append(call)

    def wake(self) -> None:
        if not self._woken:
            self.committed += self._wakes
        self._woken = True

    async def stamp(self) -> int | None:
        return None

    async def all(self, statement: ClauseElement, **params: Any) -> list[Row]:
        rows: list[Row] = []
        for sql, values in _expand(statement, params):
            more, _ = await self._carry_out(sql, values)
            rows += more
        return rows

    async def one(self, statement: ClauseElement, **params: Any) -> Row | None:
        rows = await self.all(statement, **params)
        return rows[0] if rows else None

    async def value(self, statement: ClauseElement, **params: Any) -> Any:
        row = await self.one(statement, **params)
        return row[0] if row else None

    async def run(self, statement: ClauseElement, **params: Any) -> int:
        changed = 0
        for sql, values in _expand(statement, params):
            _, count = await self._carry_out(sql, values)
            changed += count
        return changed

    async def many(self, statement: ClauseElement, rows: Iterable[dict[str, Any]]) -> None:
        form = compile_statement(statement)
        values = to_positions(rows, form.order, form.defaults)
        if values:
            self.waiting.append((form.sql, values))
            self._bytes += sum([len(value) for row in values for value in row if type(value) is bytes])
            if self._bytes > WAITING_BYTES:
                await self._carry_out("SELECT 1", ())

    async def stream(self, statement: ClauseElement, **params: Any) -> AsyncIterator[Row]:
        for sql, values in _expand(statement, params):
            async with self._connection.execute(sql, values) as cursor:
                while batch := await cursor.fetchmany(ROWS_AT_ONCE):
                    for row in batch:
                        yield row

    async def _carry_out(self, sql: str, values: Sequence[Any]) -> tuple[list[Row], int]:
        waiting, self.waiting, self._bytes = self.waiting, [], 0
        try:
            return await self._connection.carry_out(waiting, sql, values)
        except sqlite3.IntegrityError as error:
            raise _violation(error) from None


class NearTx(SqliteTx):
    """A transaction whose statements run on the event loop; each must read only a few rows by key (see
    `Database.read`). `near`: the connection of the event loop. A statement that would have to wait is run by
    a reader thread instead."""

    def __init__(self, database: SqliteDatabase, near: sqlite3.Connection) -> None:
        self._database, self._near = database, near
        self.author = NODE

    async def stream(self, statement: ClauseElement, **params: Any) -> AsyncIterator[Row]:
        async with self._database.read() as tx:
            async for row in tx.stream(statement, **params):
                yield row

    async def _carry_out(self, sql: str, values: Sequence[Any]) -> tuple[list[Row], int]:
        try:
            return self._near.execute(sql, values).fetchall(), 0
        except sqlite3.OperationalError:
            async with self._database.read() as tx:
                return await tx._carry_out(sql, values)


class SqliteDatabase:
    """A database in one file, for one process. `readers`: number of read connections that are kept."""

    dialect = "sqlite"
    shared = False

    def __init__(self, path: Path, readers: int = 2) -> None:
        self.path = path
        self._readers = readers
        self._idle: asyncio.Queue[_Connection] = asyncio.Queue()
        self._all: list[_Connection] = []
        self._writer: _Connection | None = None
        self._near: sqlite3.Connection | None = None  # of the event loop's own thread
        self._lock = asyncio.Lock()
        self._wakes: list[Callable[[], None]] = []

    async def open(self) -> None:
        self._writer = await self._connect("PRAGMA synchronous=FULL")
        for _ in range(self._readers):
            self._idle.put_nowait(await self._connect("PRAGMA query_only=ON"))
        self._near = self._open_plain()
        for pragma in (*_PRAGMAS, "PRAGMA query_only=ON", "PRAGMA busy_timeout=0"):
            self._near.execute(pragma)

    async def _connect(self, *pragmas: str) -> _Connection:
        connection = _Connection(self._open_plain, ROWS_AT_ONCE)
        await connection
        self._all.append(connection)
        for pragma in (*_PRAGMAS, *pragmas):
            await connection.execute(pragma)
        return connection

    def _open_plain(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None, cached_statements=512)

    async def close(self) -> None:
        """Close every connection; open ones would keep the process alive."""
        for connection in self._all:
            await connection.close()
        self._all.clear()
        self._writer = None
        if self._near is not None:
            self._near.close()
            self._near = None

    async def lookup(self, statement: ClauseElement, **params: Any) -> Row | None:
        """Read a row on the event loop, as `Database.lookup` describes. On a thread the read would take ten
        times as long. In WAL mode a reader has to wait only while SQLite recovers the write-ahead log; the
        read then runs on a reader thread instead."""
        if self._near is None:
            raise RuntimeError("the database is not open")
        return await NearTx(self, self._near).one(statement, **params)

    @contextlib.asynccontextmanager
    async def read(self, snapshot: bool = False, *, near: bool = False) -> AsyncIterator[SqliteTx]:
        if near and not snapshot and self._near is not None:
            yield NearTx(self, self._near)
            return
        connection = await self._idle.get()
        try:
            if not snapshot:
                yield SqliteTx(connection)
                return
            try:
                await connection.execute("BEGIN")
                yield SqliteTx(connection)
            finally:
                # A BEGIN whose caller was cancelled is carried out all the same.
                await asyncio.shield(self._end_read(connection))
        finally:
            self._idle.put_nowait(connection)

    @contextlib.asynccontextmanager
    async def write(self, *names: str) -> AsyncIterator[SqliteTx]:
        """A context with a write transaction. `names`, which would be locked in PostgreSQL, have no effect,
        because SQLite has only one writer."""
        if self._writer is None:
            raise RuntimeError("the database is not open")
        async with self._lock:
            tx = SqliteTx(self._writer, self._wakes)
            try:
                await self._writer.execute("BEGIN IMMEDIATE")
                yield tx
            except BaseException as error:
                # A client that hangs up cancels its handler, at BEGIN too; the roll-back must still happen.
                await asyncio.shield(self._roll_back(self._writer))
                if _disk_failed(error):
                    raise _write_error(error) from None
                raise
            await asyncio.shield(self._commit(self._writer, tx))

    @staticmethod
    async def _end_read(reader: _Connection) -> None:
        with contextlib.suppress(sqlite3.OperationalError):  # BEGIN itself had failed
            await reader.execute("COMMIT")

    @staticmethod
    async def _roll_back(writer: _Connection) -> None:
        with contextlib.suppress(sqlite3.OperationalError):  # BEGIN itself had failed
            await writer.execute("ROLLBACK")

    @classmethod
    async def _commit(cls, writer: _Connection, tx: SqliteTx) -> None:
        try:
            await writer.carry_out(tx.waiting, "COMMIT")
        except (sqlite3.Error, LateViolation) as error:
            await cls._roll_back(writer)  # a commit without room may leave its transaction open
            if _disk_failed(error):
                raise _write_error(error) from None
            raise
        for call in tx.committed:
            call()

    @contextlib.asynccontextmanager
    async def alone(self, name: str, waits: Callable[[], None]) -> AsyncIterator[None]:
        """A context that starts at once, without a lock, because only one process uses a SQLite database."""
        yield

    async def horizon(self, tx: Tx) -> int | None:
        return None

    def on_wake(self, call: Callable[[], None]) -> None:
        self._wakes.append(call)

    def tell(self, text: str) -> None:
        """Does nothing, because no other process uses this database and could receive the text."""

    def on_tell(self, call: Callable[[str], None]) -> None:
        """Does nothing, because no other process uses this database and could send a text."""

    async def damages(self) -> list[str]:
        return await asyncio.to_thread(self._damages)

    def _damages(self) -> list[str]:
        with contextlib.closing(self._open_plain()) as connection:
            try:
                lines = connection.execute("PRAGMA quick_check(20)").fetchall()
            except sqlite3.DatabaseError as error:
                return [str(error)]
        return [line for (finding,) in lines if finding != "ok" for line in str(finding).splitlines()]

    async def schema_version(self) -> str | None:
        async with self.read() as tx:
            tables = await tx._connection.execute_fetchall(
                "SELECT name FROM sqlite_master WHERE type='table' AND name='alembic_version'"
            )
            if not tables:
                return None
            rows = await tx._connection.execute_fetchall("SELECT version_num FROM alembic_version")
            return next((str(row[0]) for row in rows), None)


def _disk_failed(error: BaseException) -> bool:
    """Whether the file could not be written: disk full, failing or read-only."""
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF in _DISK_CODES


def _write_error(error: BaseException) -> Unavailable:
    logger().error("the database cannot be written", reason=str(error))
    return Unavailable(
        f"the database of this server cannot be written ({error}); nothing was changed, try again later"
    )
