"""Reads lists in pages, in the order of an index: each page starts after the key of the previous page's last
item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Boolean, Column, ColumnElement, Select, and_, asc, bindparam, desc, or_, tuple_

from relay.db.engine.database import Row

T = TypeVar("T", bound=msgspec.Struct)


class Keyset:
    """The statements of a list that is read in pages. `first`: the statement of the first page; `next`: the
    statement of later pages; both take `limit`. `names`: the parameters of `next`, which take the key of the
    previous page's last item; `blank`: an empty value of each parameter's type. `order`: names of the columns
    by which the list is ordered, which together are unique; a leading minus means descending."""

    def __init__(self, statement: Select[Any], *order: str) -> None:
        selected: list[Any] = list(statement.selected_columns)
        places = {getattr(column, "name", ""): place for place, column in enumerate(selected)}
        self._places, self._selected = places, selected
        self._key = [places[name.lstrip("-")] for name in order]
        by = [(selected[place], name[0] == "-") for place, name in zip(self._key, order, strict=True)]
        self.names = tuple(f"after_{column.name}" for column, _ in by)
        self.blank = tuple(column.type.python_type() for column, _ in by)
        ordered = statement.order_by(*(desc(column) if down else asc(column) for column, down in by))
        self.first = ordered.limit(bindparam("limit"))
        self.next = ordered.where(_behind(by)).limit(bindparam("limit"))

    def into(self, shape: type[T]) -> Callable[[Row], T]:
        """A function that turns a row into the struct `shape`, whose members are among the selected columns.
        It turns the numbers that SQLite returns for boolean columns into booleans."""
        members = [(name, self._places[name]) for name in shape.__struct_fields__]
        flags = {name for name, place in members if isinstance(self._selected[place].type, Boolean)}
        return lambda row: shape(
            **{name: bool(row[place]) if name in flags else row[place] for name, place in members}
        )

    def key(self, row: Row) -> tuple[Any, ...]:
        """The key of the row, from which the next page starts."""
        return tuple(row[place] for place in self._key)


def _behind(by: list[tuple[Any, bool]]) -> ColumnElement[bool]:
    """The condition that selects the rows after a given key in the order `by`: pairs of (column, whether
    descending). If all columns have the same direction, the condition is a single comparison of rows, for
    which the database can use an index."""
    if len({down for _, down in by}) == 1:
        columns = tuple_(*(column for column, _ in by)) if len(by) > 1 else by[0][0]
        binds = [_bound(column) for column, _ in by]
        there = tuple_(*binds) if len(by) > 1 else binds[0]
        descending = by[0][1]
        return columns < there if descending else columns > there
    (column, down), rest = by[0], by[1:]
    past = column < _bound(column) if down else column > _bound(column)
    return or_(past, and_(column == _bound(column), _behind(rest)))


def _bound(column: Column[Any]) -> Any:
    return bindparam(f"after_{column.name}", type_=column.type)
