"""A thin layer over both kinds of database. SQLAlchemy Core describes statements and compiles them to SQL;
the drivers execute them (design/relay, Data).

    async with db.read() as tx:
        row = await tx.one(statements.REPO, id=repo_id)
    async with db.write("repo 3f…") as tx:  # commits on leaving, rolls back on an exception
        won = await tx.run(statements.MOVE_REF, id=..., old=..., new=...)

Statements are constants of the modules in `relay.db` and `relay/domain/*/rows`, compiled once for each
dialect. A list parameter bound with `bindparam(..., expanding=True)` is expanded and, when long, split into
several executions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from sqlalchemy.engine import Dialect
from sqlalchemy.sql import ClauseElement

Row = Sequence[Any]
Statement = ClauseElement
Look = Callable[..., Awaitable[Row | None]]  # `Tx.one` or `Database.lookup`: a statement and its parameters
LIST_CHUNK = 10_000


def to_positions(
    rows: Iterable[Mapping[str, Any]], order: Sequence[str], defaults: Mapping[str, Any]
) -> list[Sequence[Any]]:
    """Turn rows from dicts into lists, with the values in the order of the columns `order`. A column that a
    row lacks gets its value in `defaults`, otherwise None."""
    named = list(rows)
    if len(order) > 1:
        with suppress(KeyError):
            return list(map(itemgetter(*order), named))
    return [[{**defaults, **row}.get(name) for name in order] for row in named]


class Compiled:
    """A statement compiled for one dialect: the SQL text, the order of its parameters, and which of the
    parameters are lists."""

    __slots__ = ("defaults", "lists", "order", "sql")

    def __init__(self, statement: ClauseElement, dialect: Dialect) -> None:
        compiled: Any = statement.compile(dialect=dialect)
        self.sql = str(compiled)
        self.order: list[str] = list(compiled.positiontup or [])
        self.lists = {name for bind, name in compiled.bind_names.items() if bind.expanding}
        self.defaults = {
            n: bind.effective_value for bind, n in compiled.bind_names.items() if not bind.required
        }
        for name in self.lists & self.defaults.keys():
            self._spell_out(name)

    def _spell_out(self, name: str) -> None:
        """Write one placeholder for each item of the list parameter `name` into the SQL. For lists that are
        constant in the statement, as in `column.in_(("a", "b"))`."""
        items = {f"{name}_{i}": item for i, item in enumerate(self.defaults.pop(name))}
        self.lists.discard(name)
        self.defaults.update(items)
        self.sql = self.sql.replace(f"__[POSTCOMPILE_{name}]", ",".join("?" * len(items)))
        self.order = [
            key for parameter in self.order for key in (items if parameter == name else [parameter])
        ]


class Author(NamedTuple):
    """Who writes in a transaction. `actor`: an account's id, "operator", or "" for the node itself.
    `device_key_id`: the key that signed the request. `turn`: the name that a program gave to the piece of its
    work to which the request belongs."""

    actor: str = ""
    device_key_id: str | None = None
    turn: str | None = None


NODE = Author()


class Tx(Protocol):
    """Statements inside one transaction. Rows are tuples in the statement's column order. `author` is
    recorded with every event that the transaction writes."""

    author: Author

    async def all(self, statement: ClauseElement, **params: Any) -> list[Row]: ...
    async def one(self, statement: ClauseElement, **params: Any) -> Row | None: ...
    async def value(self, statement: ClauseElement, **params: Any) -> Any:
        """First column of the first row, or None."""

    async def run(self, statement: ClauseElement, **params: Any) -> int:
        """Run a statement. Returns the number of rows it changed."""

    async def many(self, statement: ClauseElement, rows: Iterable[dict[str, Any]]) -> None:
        """Run a statement for each row. It runs before the next statement or the commit, not necessarily at
        once."""

    def stream(self, statement: ClauseElement, **params: Any) -> AsyncIterator[Row]:
        """Yields the rows of a SELECT as they arrive. Only in a transaction of `Database.read`."""

    def after_commit(self, call: Callable[[], None]) -> None:
        """Run `call` once the transaction is durable. It does not run if the transaction rolls back."""

    def wake(self) -> None:
        """After the commit, wake the followers of the event log, in this and other processes."""

    async def stamp(self) -> int | None:
        """An id for a new event. It is larger than all ids of this transaction and of transactions that ended
        before this one began. Returns None if the database numbers events itself, in the order of commits."""


class Database(Protocol):
    dialect: str
    shared: bool  # whether other processes may use the database at the same time

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    def read(self, snapshot: bool = False, *, near: bool = False) -> AbstractAsyncContextManager[Tx]:
        """A context with a read-only transaction, in which writes fail. `snapshot`: all statements see the
        same state (two more round trips). `near`: every statement reads only a few small rows by key. SQLite
        then runs them on the event loop, where each takes 10 µs; to pass a statement to a thread takes 50
        µs."""

    async def lookup(self, statement: ClauseElement, **params: Any) -> Row | None:
        """The first row of the last committed state, read outside of a transaction; None if there is no row.
        Only for statements that read a handful of rows by key, because SQLite runs them on the event loop."""

    def write(self, *names: str) -> AbstractAsyncContextManager[Tx]:
        """A context with a write transaction. Writers that share one of `names` run one at a time, in all
        processes, and each sees what the previous writer committed. The writes are durable once the context
        ends without an exception."""

    def alone(self, name: str, waits: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        """A context that holds the lock `name`, which only one process of the database can hold at a time.
        `waits`: called when another process holds the lock. Raises Unavailable when the database cannot be
        reached."""

    async def horizon(self, tx: Tx) -> int | None:
        """The id (`Tx.stamp`) below which no new event can appear any more. Returns None if events always
        appear in the order of their ids."""

    def on_wake(self, call: Callable[[], None]) -> None:
        """Run `call` whenever a transaction of any process has written events (`Tx.wake`), and whenever such
        news of other processes may have been missed."""

    def tell(self, text: str) -> None:
        """Send a text of at most 7900 bytes to the other processes that listen now; it is not stored."""

    def on_tell(self, call: Callable[[str], None]) -> None:
        """Run `call` with each text that another process sends (`tell`)."""

    async def schema_version(self) -> str | None: ...

    async def damages(self) -> list[str]:
        """The errors that the database finds in its own files, at most twenty. PostgreSQL returns none,
        because its server checks its files itself."""


class Contended(Exception):
    """The database aborted this transaction because it conflicts with another one. The whole transaction may
    be retried."""


class Violation(Exception):
    """The database refused a row because of a constraint. `constraint`: the name of the constraint, or its
    columns, as the driver reports them."""

    def __init__(self, constraint: str) -> None:
        super().__init__(constraint)
        self.constraint = constraint


class UniqueViolation(Violation):
    """The database refused a row because another row has the same key."""


class ForeignKeyViolation(Violation):
    """The database refused a change because a row would then refer to a missing row."""


class NotNullViolation(Violation):
    """The database refused a row because a required value is missing."""
