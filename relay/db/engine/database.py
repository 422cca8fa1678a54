"""The thin layer: SQLAlchemy Core describes and compiles, the drivers execute (design/relay, Data).

    async with db.read() as tx:
        row = await tx.one(statements.REPO, id=repo_id)
    async with db.write("repo 3f…") as tx:  # commits on leaving, rolls back on an exception
        won = await tx.run(statements.MOVE_REF, id=..., old=..., new=...)

Statements are module constants in `relay/db/<noun>.py`, compiled once for each dialect. A list parameter
bound with `bindparam(..., expanding=True)` is expanded and, when long, split into several executions.
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


def positions(
    rows: Iterable[Mapping[str, Any]], order: Sequence[str], defaults: Mapping[str, Any]
) -> list[Sequence[Any]]:
    """Positional values of many rows. What a row does not name has its default, else None."""
    named = list(rows)
    if len(order) > 1:
        with suppress(KeyError):
            return list(map(itemgetter(*order), named))
    return [[{**defaults, **row}.get(name) for name in order] for row in named]


class Compiled:
    """A statement as SQL text of one dialect, its parameter order and the parameters that are lists."""

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
        """Expand a list that the statement itself holds, as in `column.in_(("a", "b"))`."""
        items = {f"{name}_{i}": item for i, item in enumerate(self.defaults.pop(name))}
        self.lists.discard(name)
        self.defaults.update(items)
        self.sql = self.sql.replace(f"__[POSTCOMPILE_{name}]", ",".join("?" * len(items)))
        self.order = [key for known in self.order for key in (items if known == name else [known])]


class Author(NamedTuple):
    """Who does what a transaction writes: an account, "operator", or "" for the node itself; the key that
    signed the request; what an agent calls its turn."""

    actor: str = ""
    device_key_id: str | None = None
    turn: str | None = None


NODE = Author()


class Tx(Protocol):
    """Statements inside one transaction. Rows are tuples in the statement's column order. `author` stands in
    every event that the transaction writes."""

    author: Author

    async def all(self, statement: ClauseElement, **params: Any) -> list[Row]: ...
    async def one(self, statement: ClauseElement, **params: Any) -> Row | None: ...
    async def value(self, statement: ClauseElement, **params: Any) -> Any:
        """First column of the first row, or None."""

    async def run(self, statement: ClauseElement, **params: Any) -> int:
        """Number of rows the statement changed."""

    async def many(self, statement: ClauseElement, rows: Iterable[dict[str, Any]]) -> None:
        """Once for each row, before the next statement or the commit at the latest."""

    def stream(self, statement: ClauseElement, **params: Any) -> AsyncIterator[Row]:
        """Rows as they come, in a transaction of `Database.read`."""

    def after_commit(self, call: Callable[[], None]) -> None:
        """Have `call` run once the transaction is durable, and never when it rolls back."""

    def wake(self) -> None:
        """Have everybody who follows the event log look at it after the commit, here and in other
        processes."""

    async def stamp(self) -> int | None:
        """An id for a row of a log that others follow: larger than every one before it in this transaction
        and in those that ended before this one began. None: the database counts by itself, in the order of
        commits."""


class Database(Protocol):
    dialect: str
    shared: bool  # whether other processes may use it meanwhile

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    def read(self, snapshot: bool = False) -> AbstractAsyncContextManager[Tx]:
        """For reading; writes fail. `snapshot`: all statements see one state (costs two round trips more)."""

    async def lookup(self, statement: ClauseElement, **params: Any) -> Row | None:
        """One row, by itself, as the last commit left it. For statements that touch a handful of rows by
        their keys: SQLite reads them on the spot and no other request goes on meanwhile."""

    def write(self, *names: str) -> AbstractAsyncContextManager[Tx]:
        """Of the writers that name the same thing one runs at a time, in all processes, and each sees what
        the one before it committed. Durable when the context is left without an exception."""

    def alone(self, name: str, waits: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        """Of the processes of this database one at a time is inside. `waits` is called when another one is.
        Unavailable when the database cannot be reached."""

    async def horizon(self, tx: Tx) -> int | None:
        """No row stamped below this will appear that is not there already. None: every row that will ever be
        below another is there when that one is."""

    def on_wake(self, call: Callable[[], None]) -> None:
        """Have `call` run when a transaction has woken the followers of the log (`Tx.wake`), in this process
        or another, and after hints of others may have been missed."""

    def tell(self, text: str) -> None:
        """Have the other processes hear a text of at most 7900 bytes, soon, if they listen: it is kept
        nowhere."""

    def on_tell(self, call: Callable[[str], None]) -> None:
        """Have `call` run with what another process tells."""

    async def schema_version(self) -> str | None: ...


class Contended(Exception):
    """The database gave this transaction up for another one; the whole of it may be tried again."""


class Violation(Exception):
    """A constraint refused a row; `constraint` names it, or its columns, as the driver says."""

    def __init__(self, constraint: str) -> None:
        super().__init__(constraint)
        self.constraint = constraint


class UniqueViolation(Violation):
    """There is a row with this key already."""


class ForeignKeyViolation(Violation):
    """The row refers to one that does not exist, or others refer to the row that was to be deleted."""


class NotNullViolation(Violation):
    """The row lacks a value."""
