"""Compiles statements to PostgreSQL's SQL for asyncpg: with numbered, typed parameters, and with arrays for
lists."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ARRAY
from sqlalchemy.dialects.postgresql.asyncpg import PGCompiler_asyncpg, PGDialect_asyncpg
from sqlalchemy.sql import ClauseElement, bindparam, operators
from sqlalchemy.sql.elements import BindParameter

_COMPARISONS: dict[Any, str] = {operators.in_op: "= ANY", operators.not_in_op: "<> ALL"}


class _Compiler(PGCompiler_asyncpg):
    """Compiles `x IN (:list)` to `x = ANY (:list)`, so that one SQL text works for lists of every length."""

    def visit_binary(self, binary: Any, *args: Any, **options: Any) -> str:
        given, comparison = binary.right, _COMPARISONS.get(binary.operator)
        if comparison is None or not (isinstance(given, BindParameter) and given.expanding):
            return str(super().visit_binary(binary, *args, **options))  # type: ignore[no-untyped-call]
        value: dict[str, Any] = {} if given.required else {"value": given.effective_value}
        items: BindParameter[Any] = bindparam(given.key, type_=ARRAY(binary.left.type), **value)
        return f"{self.process(binary.left, **options)} {comparison} ({self.process(items, **options)})"


class _Dialect(PGDialect_asyncpg):
    statement_compiler = _Compiler
    supports_statement_cache = False
    # What a statement sends and gives back is what it says, no generated key beside it.
    insert_returning = False
    preexecute_autoincrement_sequences = False


_DIALECT: Any = _Dialect()  # type: ignore[no-untyped-call]


class Statement:
    """A statement compiled for PostgreSQL: the SQL text, the names of the parameters $1, $2 … in order, and
    the values that are written in the statement itself."""

    __slots__ = ("defaults", "order", "sql")

    def __init__(self, statement: ClauseElement) -> None:
        compiled: Any = statement.compile(dialect=_DIALECT)
        self.sql = str(compiled)
        self.order: list[str] = list(compiled.positiontup or [])
        self.defaults = {
            name: bind.effective_value for bind, name in compiled.bind_names.items() if not bind.required
        }

    def values(self, params: dict[str, Any]) -> list[Any]:
        """The values of the parameters $1, $2 … in this order. If `params` has no value for a parameter, the
        value written in the statement is used; KeyError is raised if there is none."""
        return [params[name] if name in params else self.defaults[name] for name in self.order]


_COMPILED: dict[ClauseElement, Statement] = {}


def compile_statement(statement: ClauseElement) -> Statement:
    form = _COMPILED.get(statement)
    if form is None:
        form = _COMPILED[statement] = Statement(statement)
    return form
