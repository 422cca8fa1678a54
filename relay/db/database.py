"""The thin layer: SQLAlchemy Core describes and compiles, the drivers execute (design/relay, Data).

    async with db.read() as tx:
        row = await tx.one(statements.REPO, id=repo_id)
    async with db.write() as tx:            # one writer; commits on leaving, rolls back on an exception
        won = await tx.run(statements.MOVE_REF, id=..., old=..., new=...)

Statements are module constants in `relay/db/<noun>.py`, compiled once for each dialect. A list parameter
bound with `bindparam(..., expanding=True)` is expanded and, when long, split into several executions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from sqlalchemy.engine import Dialect
from sqlalchemy.sql import ClauseElement

Row = Sequence[Any]
LIST_CHUNK = 10_000


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


class Tx(Protocol):
    """Statements inside one transaction. Rows are tuples in the statement's column order."""

    async def all(self, statement: ClauseElement, **params: Any) -> list[Row]: ...
    async def one(self, statement: ClauseElement, **params: Any) -> Row | None: ...
    async def value(self, statement: ClauseElement, **params: Any) -> Any:
        """First column of the first row, or None."""

    async def run(self, statement: ClauseElement, **params: Any) -> int:
        """Number of rows the statement changed."""

    async def many(self, statement: ClauseElement, rows: Iterable[dict[str, Any]]) -> None: ...
    def stream(self, statement: ClauseElement, **params: Any) -> AsyncIterator[Row]: ...
    def after_commit(self, call: Callable[[], None]) -> None:
        """Have `call` run once the transaction is durable, and never when it rolls back."""


class Database(Protocol):
    dialect: str

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    def read(self, snapshot: bool = False) -> AbstractAsyncContextManager[Tx]:
        """For reading; writes fail. `snapshot`: all statements see one state (costs two round trips more)."""

    def write(self) -> AbstractAsyncContextManager[Tx]:
        """The one writer. Durable when the context is left without an exception."""

    async def schema_version(self) -> str | None: ...


class UniqueViolation(Exception):
    """A unique constraint refused a row; `constraint` names columns or the constraint, as the driver says."""

    def __init__(self, constraint: str) -> None:
        super().__init__(constraint)
        self.constraint = constraint
